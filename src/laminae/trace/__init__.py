"""The one state primitive: immutable sorted runs per operator and shard, and manifests that name them.

Pure numpy and pyarrow. Nothing here knows SQL, Spark or the catalog.
"""
