"""Materialized views on Spark: operator trees as plans of one job, kernels in its tasks, their state in traces."""
