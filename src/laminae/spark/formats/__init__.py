"""JSON, Avro, CSV, Parquet and Debezium records to rows of the current schema, as Spark expressions.

A record without a row gets a reason; nothing is raised for it. It knows no source and no epoch.
"""
