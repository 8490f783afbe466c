"""Delivery of committed segments to sinks, and the outbox that tracks the progress of each sink.

It must not read uncommitted data or change state: a sink that fails lags, and nothing waits for it.
"""

from laminae.spark.sinks.outbox import Outbox
from laminae.spark.sinks.registry import Delivery
from laminae.spark.sinks.segment import Segment

__all__ = ["Delivery", "Outbox", "Segment"]
