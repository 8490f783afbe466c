"""Changelogs as Z-sets: rows with integer weights, their aggregates and their forms on the wire.

It needs numpy, pyarrow and orjson alone; nothing here knows Spark, files or the catalog.
"""
