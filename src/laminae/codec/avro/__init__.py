"""Avro schemas and values to columns and back, without Spark.

It must not judge compatibility, which is the task of `laminae.schema.avro`.
"""
