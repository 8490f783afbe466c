"""Aggregates that take values back: of one group (`linear.py`, `keeping.py`) and of many at once (`grouped*.py`)."""
