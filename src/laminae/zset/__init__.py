"""Changelogs as Z-sets: rows with integer weights, their aggregates and their wire formats.

Depends on numpy, pyarrow and orjson only; nothing here may know Spark, files or the catalog.
"""

from laminae.zset.changelog import from_change_feed, to_change_feed
from laminae.zset.consolidate import consolidate
from laminae.zset.debezium.envelope import CdcEnvelope, CdcSource, encode_many, read_event
from laminae.zset.debezium.messages import Messages, encode_changelog
from laminae.zset.library.aggregator import RetractableAggregator
from laminae.zset.library.buffer import ChangelogBuffer, ChangelogColumns, ChangelogRef
from laminae.zset.library.emitted import EmittedRows
from laminae.zset.library.grouped import GroupedAvg, GroupedCount, GroupedSum
from laminae.zset.library.grouped_values import GroupedDistinct, GroupedMax, GroupedMin
from laminae.zset.library.keeping import CountDistinctAggregator, MaxAggregator, MinAggregator
from laminae.zset.library.late import LateDataRetractionGenerator, RetractionKey, WindowId
from laminae.zset.library.linear import AvgAggregator, CountAggregator, CountValueAggregator, SumAggregator
from laminae.zset.net_changes import net_changes
from laminae.zset.operation import CdcOperation
from laminae.zset.outcome import Delete, Insert, NoChange, Outcome, Update
from laminae.zset.record import ChangelogRecord

__all__ = [
    "AvgAggregator",
    "CdcEnvelope",
    "CdcOperation",
    "CdcSource",
    "ChangelogBuffer",
    "ChangelogColumns",
    "ChangelogRecord",
    "ChangelogRef",
    "CountAggregator",
    "CountDistinctAggregator",
    "CountValueAggregator",
    "Delete",
    "EmittedRows",
    "GroupedAvg",
    "GroupedCount",
    "GroupedDistinct",
    "GroupedMax",
    "GroupedMin",
    "GroupedSum",
    "Insert",
    "LateDataRetractionGenerator",
    "MaxAggregator",
    "Messages",
    "MinAggregator",
    "NoChange",
    "Outcome",
    "RetractableAggregator",
    "RetractionKey",
    "SumAggregator",
    "Update",
    "WindowId",
    "consolidate",
    "encode_changelog",
    "encode_many",
    "from_change_feed",
    "net_changes",
    "read_event",
    "to_change_feed",
]
