"""Schemas as values: columns and their ids, diff, compatibility verdicts, apply, projection, widening, Avro resolution.

Needs pyarrow and numpy alone. It reads no catalog and no data but the batches that it projects.
"""
