"""A directory of files as a source.

It must not move, change or delete the files it reads.
"""
