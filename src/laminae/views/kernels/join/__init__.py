"""Equi-joins: pairs and partner counts, computed from the traces of the two sides.

No counter of partners is stored, so none can drift. Expressions are evaluated by Spark before and after the kernel.
"""
