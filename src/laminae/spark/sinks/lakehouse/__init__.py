"""Sinks that write each epoch as a commit of a Delta or Iceberg table.

A commit must carry its epoch, so that a repeated delivery is skipped.
"""
