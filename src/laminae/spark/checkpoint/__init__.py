"""Checkpoints of any Spark query: check them against a changed query, migrate them, start the query, look inside.

`laminae.state` has the public names; what is decided there without Spark is carried out here.
"""

from __future__ import annotations

from laminae.spark.checkpoint.checking import check_checkpoint
from laminae.spark.checkpoint.inspecting import inspect_checkpoint
from laminae.spark.checkpoint.migrating import migrate_checkpoint
from laminae.spark.checkpoint.starting import start

__all__ = ["check_checkpoint", "inspect_checkpoint", "migrate_checkpoint", "start"]
