"""Spark's UnsafeRow in Python, byte for byte as the JVM writes it: decode, encode, and migrate whole batches.

Nothing here imports Spark.
"""

from __future__ import annotations

from laminae.state.codec.decode import row_decoder
from laminae.state.codec.encode import row_encoder
from laminae.state.codec.migrate import Migration
from laminae.state.codec.values import CalendarInterval, VariantValue

__all__ = ["CalendarInterval", "Migration", "VariantValue", "row_decoder", "row_encoder"]
