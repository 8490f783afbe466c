"""Decisions: statement to plan to commit, the plan of an epoch, options, retention, the catalog's relations.

Pure functions of values; its effects are catalog reads, `commit`, and questions to a schema registry. No Spark here.
"""
