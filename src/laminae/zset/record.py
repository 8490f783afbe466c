"""One changed row with its weight. The weight defines the change; the operation names it and always has the same sign.

Large numbers of changes are stored as columns of an Arrow table (`changelog.py`) or references in a buffer
(`buffer.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from laminae.zset.operation import CdcOperation, agreed

Row = TypeVar("Row")

_DERIVED = cast(CdcOperation, None)


@dataclass(frozen=True, slots=True)
class ChangelogRecord(Generic[Row]):
    """Adds `weight` copies of `data` (removes them if negative), at event time `timestamp` in milliseconds.

    Without an operation it is +I or -D by the sign; an operation of the other sign is a ValueError.
    """

    data: Row
    weight: int
    timestamp: int
    operation: CdcOperation = _DERIVED

    def __post_init__(self) -> None:
        object.__setattr__(self, "operation", agreed(self.weight, self.operation))

    @classmethod
    def insert(cls, data: Row, timestamp: int) -> ChangelogRecord[Row]:
        return cls(data, 1, timestamp, CdcOperation.INSERT)

    @classmethod
    def delete(cls, data: Row, timestamp: int) -> ChangelogRecord[Row]:
        return cls(data, -1, timestamp, CdcOperation.DELETE)

    @classmethod
    def retraction(cls, old: Row, new: Row, timestamp: int) -> tuple[ChangelogRecord[Row], ChangelogRecord[Row]]:
        """The retraction of the old row and the insertion of the new one: -U first, then +U."""
        before = cls(old, -1, timestamp, CdcOperation.UPDATE_BEFORE)
        return before, cls(new, 1, timestamp, CdcOperation.UPDATE_AFTER)

    def is_insert(self) -> bool:
        return self.weight > 0

    def is_delete(self) -> bool:
        return self.weight < 0
