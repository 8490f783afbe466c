"""A table without a primary key: a multiset, in which duplicate rows count.

It must not decide what an event means: rows arrive with weights.
"""
