"""Everything that runs on Spark: the only package that imports pyspark. No module lies beside its packages."""
