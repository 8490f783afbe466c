"""Schemas that others write: the schema of a record's writer, and changes of an external table.

Both are mapped to the columns of a source by identity; nothing is judged here.
"""
