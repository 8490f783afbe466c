"""SELECT over the relations of `laminar_catalog`: their rows as Arrow tables, and DuckDB as the engine.

It reads the catalog alone; sources and views are read by Spark.
"""
