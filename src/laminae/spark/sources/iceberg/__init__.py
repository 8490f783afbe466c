"""An Iceberg table as a source.

It must not write to the table.
"""
