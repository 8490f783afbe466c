"""Rows and changes as messages of a Kafka topic, each with headers that name it for ever."""
