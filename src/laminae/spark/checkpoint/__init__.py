"""Checkpoints of any Spark query: check against a changed query, migrate, start the query, inspect.

`laminae.state` has the public names and decides without Spark; this package executes those decisions.
"""

from __future__ import annotations

from laminae.spark.checkpoint.check import check_checkpoint
from laminae.spark.checkpoint.inspect import inspect_checkpoint
from laminae.spark.checkpoint.migrate import migrate_checkpoint
from laminae.spark.checkpoint.start_query import start

__all__ = ["check_checkpoint", "inspect_checkpoint", "migrate_checkpoint", "start"]
