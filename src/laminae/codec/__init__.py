"""Record formats without Spark: which schema version a record has, and how its field names resolve.

It must not read or write records itself: decoding runs in `laminae.spark.formats`, on the plans made here.
"""
