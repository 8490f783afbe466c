"""From committed segments to sinks: what a delivery is, and the outbox that keeps each sink's progress."""

from laminae.spark.delivery.deliver import Delivery
from laminae.spark.delivery.outbox import Outbox
from laminae.spark.delivery.segment import Segment

__all__ = ["Delivery", "Outbox", "Segment"]
