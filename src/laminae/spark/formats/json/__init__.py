"""Decodes JSON records into rows: the fast check, the exact check, and the reason a record is rejected.

Both checks must give the same rows; the fast one may only be faster.
"""
