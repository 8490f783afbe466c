"""The stateful operators as pure kernels: a step takes a delta and a manifest, and gives a delta and a manifest.

They run inside Spark tasks and are tested without Spark. A step never changes what the old manifest names.
"""
