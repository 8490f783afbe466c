"""GROUP BY and DISTINCT: accumulators, value sets, and the output columns computed from them.

It must not see sources or queries: keys and aggregates arrive as a specification.
"""
