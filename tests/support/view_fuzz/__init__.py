"""A differential fuzzer: random views over random sources against the same query text in a plain Spark batch.

`case` draws a case from a seed, `run` runs it through laminae, `oracle` answers the same queries with Spark alone.
To see one case again: `python -m tests.support.view_fuzz SEED [VIEW]`.
"""
