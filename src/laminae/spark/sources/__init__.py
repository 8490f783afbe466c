"""Transports: push, files, Kafka, Iceberg, Delta, rate. Each is a numbered log with offsets, ranges and raw records.

It computes no view and commits nothing; records are decoded by `laminae.spark.formats`.
"""
