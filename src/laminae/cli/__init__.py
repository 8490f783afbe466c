"""The command line: a thin front over `connect()`. Exit codes: 0 done, 1 the answer is no, 2 wrong use."""

from laminae.cli.app import main

__all__ = ["main"]
