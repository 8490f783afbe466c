"""The public API: `connect()`, Database and Result. It wires the parts together and contains no logic.

It must not decide anything: parsing, planning and running belong to the packages below it.
"""
