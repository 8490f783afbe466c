"""The Kafka sink: rows and changes as messages of a topic, each with headers that identify it permanently.

It must not send a message without these headers: they are how a consumer skips duplicates.
"""
