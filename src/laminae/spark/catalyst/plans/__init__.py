"""Plans of Spark: logical plans to look at, and physical plans that are made once and run again in every epoch.

Spark's plan nodes do not leave this package.
"""
