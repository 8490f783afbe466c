"""The Debezium change event format: one envelope, or a whole changelog as messages.

It must not know tables or state: it converts between rows and events.
"""
