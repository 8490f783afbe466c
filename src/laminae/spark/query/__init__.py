"""SELECT on Spark: which relations and functions a query uses, by Spark's own parser, and its result as Arrow.

It must not write anything, and refuses every plan node and function that is not on a list.
"""
