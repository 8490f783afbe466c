"""Spark's streaming internals: micro-batch streams, its Kafka connector, running queries and their state.

JVM objects do not leave this package.
"""
