"""The databases that can hold a catalog, behind one protocol: SQLite and PostgreSQL.

A driver runs statements and transactions. It must not know what the tables mean.
"""
