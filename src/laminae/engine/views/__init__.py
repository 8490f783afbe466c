"""Semantics of views while their sources evolve: resolution, impact of a change, order, watermarks, replacement.

Pure functions over definitions. Nothing here computes rows or touches state.
"""
