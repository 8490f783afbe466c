"""Decodes CSV files into rows.

It must not list or open directories: the source passes the files of a range.
"""
