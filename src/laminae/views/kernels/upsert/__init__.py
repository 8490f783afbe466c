"""A table with a primary key: ordered change events become changes of rows.

It must not decode events: rows arrive with their key, order and operation.
"""
