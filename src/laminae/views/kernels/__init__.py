"""Stateful operators as pure kernels: a step takes a delta and a manifest and returns changes and a new manifest.

Kernels run inside Spark tasks and are tested without Spark. A step never modifies the runs that the old manifest
references.
"""
