"""Decodes Debezium change events, in JSON and Avro, into rows and the operation to apply to each.

It must not keep rows: the table of a source is in `laminae.spark.source_tables`.
"""
