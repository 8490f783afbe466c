"""Reading views as relations: their rows, their changelogs, their dead letters.

It must not write anything.
"""
