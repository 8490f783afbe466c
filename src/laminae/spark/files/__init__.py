"""Files whose records are not lines of bytes: CSV with its header, Parquet with its footer. Read by groups of a schema.

A group is one ordinary Spark scan; the driver reads headers and footers, no Python sees a row.
"""
