"""Rows with long values that change, go and move between a few keys, and the events that Debezium sends of them.

A value that a change leaves alone is not sent. Events go by their keys to partitions, whose readers drift apart, and a
connector that is killed sends again what it has not written down. `Read` says what a reader can know of the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

KEYS = (0, 1, 2, 3)
PARTITIONS = 3
PUT, DELETE, MOVE, TRUNCATE = "put", "delete", "move", "truncate"
LONG = ("body", "tags")
Row = tuple[int, str | None, str | None]
"""A number, and the long values."""


@dataclass(frozen=True, slots=True)
class Event:
    """Number `at` of its history. `lsn` is that of the change, `row` the whole row after it, `lacks` what is not sent.

    `moves`: its row has two keys. `source` is the number of the event before it of the row that goes on.
    """

    at: int
    op: str
    key: int | None
    lsn: int
    row: Row | None = None
    lacks: tuple[str, ...] = ()
    moves: bool = False
    source: int | None = None

    def sent(self) -> dict[str, object]:
        row = dict(zip(("n", *LONG), self.row or (None, None, None), strict=True))
        return {"id": self.key, **row, **dict.fromkeys(self.lacks)}

    @property
    def row_key(self) -> int:
        """The key of an event about a row: only a truncation has none."""
        assert self.key is not None, self
        return self.key

    @property
    def is_insert_of_moved_row(self) -> bool:
        return self.op == "c" and self.moves


def history(dice: random.Random, most: int = 20) -> list[Event]:
    """The events of some changes in the order of the database; the first changes come as the rows of a snapshot."""
    table: dict[int, Event] = {}
    events: list[Event] = []
    count = dice.randint(0, most)
    before_snapshot = dice.randint(0, count // 3)

    def send(
        op: str,
        key: int | None,
        lsn: int,
        *,
        row: Row | None = None,
        lacks: tuple[str, ...] = (),
        moves: bool = False,
        source: int | None = None,
    ) -> Event:
        events.append(Event(len(events), op, key, lsn, row, lacks, moves, source))
        return events[-1]

    for lsn in range(1, count + 1):
        if lsn == before_snapshot + 1 and events:
            rows = [(each.row_key, each.row) for each in table.values()]
            events.clear()
            table = {key: send("r", key, lsn - 1, row=row) for key, row in rows}
        free = [key for key in KEYS if key not in table]
        kinds = [PUT] * 5 + ([DELETE] * 2 + [MOVE] * 6 * bool(free) if table else []) + [TRUNCATE] * (lsn % 4 == 0)
        what, written = dice.choice(kinds), dice.choice([(), (), LONG, *((name,) for name in LONG)])
        key = dice.choice(KEYS) if what == PUT else dice.choice(sorted(table) or KEYS)
        old, is_null = table.get(key), dice.randint(0, 4) == 0
        body, tags = (_value(old, name, lsn, is_null, written) for name in LONG)
        row = (lsn, body, tags)
        lacks = () if old is None else tuple(name for name in LONG if name not in written)
        if what == PUT:
            # An insert sends all that it has.
            op, source = ("c", None) if old is None else ("u", old.at)
            table[key] = send(op, key, lsn, row=row, lacks=lacks, source=source)
        elif what == DELETE:
            send("d", table.pop(key).key, lsn)
        elif what == MOVE:
            other = dice.choice(free)
            last = table.pop(key)
            send("d", last.key, lsn, moves=True, source=last.at)
            table[other] = send("c", other, lsn, row=row, lacks=lacks, moves=True, source=last.at)
        else:
            table.clear()
            send("t", None, lsn)
    return events


def _value(old: Event | None, name: str, lsn: int, is_null: bool, written: tuple[str, ...]) -> str | None:
    if name in written:
        return None if is_null else f"{name} of {lsn}"
    return None if old is None or old.row is None else old.row[1:][LONG.index(name)]


def partitions_of(dice: random.Random, events: list[Event]) -> list[list[Event]]:
    """The log of each partition, by a connector that may be killed: it sends again what it has not written down.

    What was on its way then has come to one partition and not to another.
    """
    owner = {key: dice.randint(0, PARTITIONS - 1) for key in (*KEYS, None)}
    logs: list[list[Event]] = [[] for _ in range(PARTITIONS)]
    written_down = 0
    for _ in range(dice.randint(0, 2)):
        first = dice.randint(written_down, len(events))
        # Both events of a moved row have one place in the log of the database.
        while 0 < first < len(events) and events[first].lsn == events[first - 1].lsn:
            first -= 1
        for partition, log in enumerate(logs):
            sent = dice.randint(first, len(events))
            log += [each for each in events[written_down:sent] if owner[each.key] == partition]
        written_down = first
    for partition, log in enumerate(logs):
        log += [each for each in events[written_down:] if owner[each.key] == partition]
    return logs


def epochs_of(
    dice: random.Random, logs: list[list[Event]], *, deletes_first: bool = False
) -> list[list[tuple[int, Event]]]:
    """Events with their offsets; each epoch goes on in every partition where the last one ended, which may be anywhere.

    With `deletes_first` the insert of a moved row is never read in an earlier epoch than the delete.
    """
    count = dice.randint(0, 5)
    ends = [sorted(dice.randint(0, len(log)) for _ in range(count)) for log in logs]
    cuts = [list(cut) for cut in zip(*ends, strict=True)]
    if deletes_first:
        cuts = [_without_early_inserts(logs, cut) for cut in cuts]
    bounds = pairwise([[0] * len(logs), *cuts, [len(log) for log in logs]])
    return [
        [(at, log[at]) for log, *span in zip(logs, begins, ends, strict=True) for at in range(*span)]
        for begins, ends in bounds
    ]


def _without_early_inserts(logs: list[list[Event]], cut: list[int]) -> list[int]:
    while True:
        left = {each.lsn for log, end in zip(logs, cut, strict=True) for each in log[:end] if each.op == "d"}
        kept = [
            next((at for at, each in enumerate(log[:end]) if each.is_insert_of_moved_row and each.lsn not in left), end)
            for log, end in zip(logs, cut, strict=True)
        ]
        if kept == cut:
            return cut
        cut = kept


class Read:
    """What was read of a history, and what follows from that and nothing else."""

    def __init__(self, events: list[Event]) -> None:
        self.events, self.read = events, set[int]()
        self.deletes = {each.lsn: each.at for each in events if each.op == "d" and each.moves}

    def add(self, epoch: list[tuple[int, Event]]) -> None:
        self.read |= {event.at for _, event in epoch}

    def rows(self) -> dict[int, Row]:
        """By key, what its last event says."""
        last = {each.row_key: each for each in self._counting()}
        return {key: each.row for key, each in last.items() if each.row is not None}

    def rows_before_unread_truncations(self, key: int) -> list[Row | None]:
        unread = [each.lsn for each in self.events if each.op == "t" and each.at not in self.read]
        known = [self.events[at] for at in self.read]
        return [each.row for each in known if each.key == key and each.lsn < max(unread, default=0)]

    def keys_to_wait(self) -> set[int]:
        """Those that had an event with a value that nobody can know yet."""
        return {each.row_key for each in self._counting() if any(not self._is_known(each, name) for name in each.lacks)}

    def _counting(self) -> list[Event]:
        """In order, without what a truncation has taken away."""
        found = [self.events[at] for at in sorted(self.read)]
        floor = max((each.lsn for each in found if each.op == "t"), default=0)
        return [each for each in found if each.lsn >= floor and each.key is not None]

    def _is_known(self, event: Event, name: str) -> bool:
        if name not in event.lacks:
            return True
        if event.moves and self.deletes[event.lsn] not in self.read:
            return False
        assert event.source is not None, event
        return self._is_known(self.events[event.source], name)
