"""Debezium events and the schemas that they carry, without Spark.

It must not apply events to a table, which is the task of `laminae.views.kernels`.
"""
