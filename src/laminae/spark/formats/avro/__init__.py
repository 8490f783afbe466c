"""Decodes Avro records in the Confluent wire format into rows.

It must not ask a registry: writer schemas come with the plan of the epoch.
"""
