"""Spark's checkpoints as values: what their files say, and whether a changed query can go on with their state.

Pure: bytes come in through a port, reports go out. Reading, probing and rewriting are in `laminae.spark.checkpoint`.
"""
