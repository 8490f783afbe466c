"""Materialized views on Spark: operator trees planned as one job, kernels in its tasks, operator state in traces.

It must not decode records or commit: it reads decoded rows, and the epoch commits its result.
"""
