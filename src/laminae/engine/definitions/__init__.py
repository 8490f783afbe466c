"""Plans for statements that create, alter, drop and set objects.

A plan is a value with catalog updates. Nothing here commits one.
"""
