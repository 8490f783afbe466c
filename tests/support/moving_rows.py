"""Rows with long values that change, go and move between a few keys, and the events that Debezium sends of them.

A value that a change leaves alone is not sent. Events go by their keys to partitions, whose readers drift apart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from hypothesis import strategies as st

KEYS = (0, 1, 2, 3)
PARTITIONS = 2
PUT, DELETE, MOVE = "put", "delete", "move"
LONG = ("body", "tags")


@dataclass(frozen=True, slots=True)
class Event:
    """`lsn` is that of the change, and `lacks` the long values that were not sent. `moves`: its row has two keys."""

    op: str
    key: int
    lsn: int
    n: int | None = None
    body: str | None = None
    tags: str | None = None
    lacks: tuple[str, ...] = ()
    moves: bool = False


CHANGES = st.lists(
    st.tuples(
        st.sampled_from([PUT, PUT, DELETE, MOVE, MOVE]),
        st.sampled_from(KEYS),
        st.sampled_from(KEYS),
        st.sets(st.sampled_from(LONG)),
        st.booleans(),
    ),
    max_size=14,
)
"""What is done, to which key, the key it moves to, the long values that are written, and whether these are NULL."""


def played(changes) -> tuple[dict[int, Event], list[Event]]:
    """The table at the end, by key, and the events in the order of the database."""
    table: dict[int, Event] = {}
    events = []
    for lsn, (what, key, other, written, is_null) in enumerate(changes, 1):
        old, values = table.get(key), {name: None if is_null else f"{name} of {lsn}" for name in written}
        if what == PUT:
            table[key] = replace(old or Event("c", key, lsn), n=lsn, **values)
            # An insert sends all that it has.
            lacks = tuple(name for name in LONG if old is not None and name not in written)
            events.append(_sent(table[key], "c" if old is None else "u", lsn, lacks))
        elif what == DELETE and old is not None:
            events.append(Event("d", table.pop(key).key, lsn))
        elif what == MOVE and old is not None and other not in table:
            table[other] = replace(table.pop(key), key=other, n=lsn, **values)
            lacks = tuple(name for name in LONG if name not in written)
            events += [Event("d", key, lsn, moves=True), replace(_sent(table[other], "c", lsn, lacks), moves=True)]
    return table, events


def _sent(row: Event, op: str, lsn: int, lacks: tuple[str, ...]) -> Event:
    return replace(row, op=op, lsn=lsn, lacks=lacks, **dict.fromkeys(lacks))


@st.composite
def partitions_of(draw, events: list[Event]) -> list[list[Event]]:
    """The log of each partition, by a connector that may be killed: it sends again what it has not written down.

    What was on its way then has come to one partition and not to another.
    """
    owner = draw(st.fixed_dictionaries({key: st.integers(0, PARTITIONS - 1) for key in KEYS}))
    logs: list[list[Event]] = [[] for _ in range(PARTITIONS)]
    written_down = 0
    for _ in range(draw(st.integers(0, 2))):
        first = draw(st.integers(written_down, len(events)))
        # Both events of a moved row have one place in the log of the database.
        while 0 < first < len(events) and events[first].lsn == events[first - 1].lsn:
            first -= 1
        for partition, log in enumerate(logs):
            sent = draw(st.integers(first, len(events)))
            log += [each for each in events[written_down:sent] if owner[each.key] == partition]
        written_down = first
    for partition, log in enumerate(logs):
        log += [each for each in events[written_down:] if owner[each.key] == partition]
    return logs


@st.composite
def epochs_of(draw, logs: list[list[Event]], *, deletes_first: bool = True) -> list[list[tuple[int, Event]]]:
    """Events with their offsets; each epoch goes on in every partition where the last one ended.

    With `deletes_first` the insert of a moved row is never read in an earlier epoch than the delete.
    """
    count = draw(st.integers(0, 4))
    ends = [sorted(draw(st.lists(st.integers(0, len(log)), min_size=count, max_size=count))) for log in logs]
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
            next((at for at, each in enumerate(log[:end]) if _comes_early(each, left)), end)
            for log, end in zip(logs, cut, strict=True)
        ]
        if kept == cut:
            return cut
        cut = kept


def _comes_early(event: Event, left: set[int]) -> bool:
    return event.op == "c" and event.moves and event.lsn not in left
