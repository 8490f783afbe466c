"""What the query of a materialized view means: operator tree, functions, windows, emit strategy, identity of its state.

Values and pure functions; `kernels` are the stateful operators. How a view runs on Spark is for `laminae.spark.views`.
"""
