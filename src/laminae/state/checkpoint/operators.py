"""The stateful operators of Spark that can be carried over, by the name in their metadata. One table."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class KeyChange(Enum):
    """What may change in the key of an operator: rows are found and spread over partitions by it."""

    NOTHING = auto()
    INSIDE = auto()
    ANY = auto()


@dataclass(frozen=True, slots=True)
class OperatorRow:
    """What people call it, and what its key may do. `aggregates`: its values end with buffers of aggregates."""

    label: str
    key: KeyChange
    aggregates: bool = False


OPERATORS: dict[str, OperatorRow] = {
    "stateStoreSave": OperatorRow("aggregation", KeyChange.INSIDE, aggregates=True),
    "sessionWindowStateStoreSaveExec": OperatorRow("session window", KeyChange.NOTHING, aggregates=True),
    "dedupe": OperatorRow("dropDuplicates", KeyChange.ANY),
    "dedupeWithinWatermark": OperatorRow("dropDuplicatesWithinWatermark", KeyChange.ANY),
    "symmetricHashJoin": OperatorRow("stream-stream join", KeyChange.NOTHING),
    "transformWithStateExec": OperatorRow("transformWithState", KeyChange.NOTHING),
    "transformWithStateInPandasExec": OperatorRow("transformWithStateInPandas", KeyChange.NOTHING),
    "transformWithStateInPySparkExec": OperatorRow("transformWithState in Python", KeyChange.NOTHING),
}
