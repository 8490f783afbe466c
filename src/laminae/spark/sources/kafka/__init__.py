"""A Kafka topic as a source, and the connector jars and client settings that Kafka sources and sinks share.

It must not commit offsets to Kafka: the home records the offsets of every epoch.
"""
