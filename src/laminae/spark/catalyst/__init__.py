"""The one door to py4j and Spark's internals: expressions, types, plan templates, sessions.

It knows nothing of sources, formats, views or epochs.
"""
