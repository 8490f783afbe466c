"""A commit in progress: its transaction, and the counters that it has locked for all numbers it assigns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from laminae.errors import ConcurrentChange

if TYPE_CHECKING:
    from laminae.catalog.drivers.protocol import Transaction


@dataclass(slots=True)
class Counters:
    """The last assigned number of each kind. Read once and written once per commit."""

    definition_seq: int
    epoch: int
    object_id: int
    change_id: int


@dataclass(slots=True)
class Writing:
    transaction: Transaction
    counters: Counters
    # A source's definition_seq before this commit changed it: two updates of one commit do not conflict.
    found_seq: dict[int, int] = field(default_factory=dict)
    # The epoch that this commit creates, if any.
    epoch: int | None = None

    def next_object_id(self) -> int:
        self.counters.object_id += 1
        return self.counters.object_id

    def next_change_id(self) -> int:
        self.counters.change_id += 1
        return self.counters.change_id

    def next_epoch(self) -> int:
        self.counters.epoch += 1
        self.epoch = self.counters.epoch
        return self.epoch

    def is_read(self, source_id: int) -> bool:
        """Whether an epoch of the source is committed."""
        return bool(self.transaction.query("SELECT 1 FROM epochs WHERE source_id = ? LIMIT 1", source_id))

    def live_source(self, source_id: int, source_name: str, expected: int) -> tuple[int, int]:
        """(version, definition_seq before this commit). Raises ConcurrentChange if the source was dropped."""
        rows = self.transaction.query(
            "SELECT version, definition_seq FROM sources WHERE id = ? AND dropped_at IS NULL", source_id
        )
        if not rows:
            raise ConcurrentChange(name=source_name, expected=expected, found="that it was dropped")
        version, definition_seq = rows[0]
        return version, self.found_seq.setdefault(source_id, definition_seq)


def load_counters(transaction: Transaction) -> Counters:
    return Counters(*transaction.query("SELECT definition_seq, epoch, object_id, change_id FROM counters")[0])


def save_counters(transaction: Transaction, counters: Counters) -> None:
    transaction.execute(
        "UPDATE counters SET definition_seq = ?, epoch = ?, object_id = ?, change_id = ?",
        counters.definition_seq,
        counters.epoch,
        counters.object_id,
        counters.change_id,
    )
