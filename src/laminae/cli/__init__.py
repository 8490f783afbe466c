"""The command line: a thin layer over `connect()`. Exit codes: 0 success, 1 a refusal or failure, 2 wrong usage.

It must not reach past `connect()`: whatever a command does is available in Python.
"""

from laminae.cli.app import main

__all__ = ["main"]
