"""The state store of all operators: immutable sorted runs per operator and shard, and manifests that reference them.

Pure numpy and pyarrow. Nothing here may depend on SQL, Spark or the catalog.
"""
