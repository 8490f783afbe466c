"""Which kinds of moves between keys a run of a history has, so that a test can say that it has seen them all."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.support.moving_rows import Event

SPLIT, EARLY = "delete and insert in two epochs", "insert read in an earlier epoch than its delete"
ACROSS = "move to another shard"
AGAIN = "both events sent again in a later epoch"
PARTLY_AGAIN = "insert sent again, and its delete only then for the first time"
REUSED = "delete sent again when another row has its key"
CHAIN, LONG_CHAIN = "two moves of a row in one epoch", "two moves of a row in two epochs"
CHAIN_BACKWARDS = "delete of the first move read after the second move"
CIRCLE = "row that comes back to a key"
ONTO_DELETED = "move onto a key that was deleted"
THEN_UPDATED, UPDATED_LATER = (
    "then an update without values, same epoch",
    "then an update without values, a later epoch",
)
REFILLED = "update that sends all that a postponed row lacks"
TRUNCATED = "truncation while a move is under way"
CASES = (
    SPLIT,
    EARLY,
    ACROSS,
    AGAIN,
    PARTLY_AGAIN,
    REUSED,
    CHAIN,
    LONG_CHAIN,
    CHAIN_BACKWARDS,
    CIRCLE,
    ONTO_DELETED,
    THEN_UPDATED,
    UPDATED_LATER,
    REFILLED,
    TRUNCATED,
)


def cases_in(
    events: Sequence[Event], epochs: Sequence[Sequence[tuple[int, Event]]], shard_of: Mapping[int, int]
) -> Counter[str]:
    """Only moves that lack a value count."""
    found: Counter[str] = Counter()
    read: dict[int, list[int]] = {}
    for number, epoch in enumerate(epochs):
        for _, event in epoch:
            read.setdefault(event.at, []).append(number)
    for insert in events:
        if insert.is_insert_of_moved_row and insert.lacks:
            found.update(_cases_of(insert, events, read, shard_of))
    return found


def _cases_of(
    insert: Event, events: Sequence[Event], read: Mapping[int, Sequence[int]], shard_of: Mapping[int, int]
) -> set[str]:
    delete = events[insert.at - 1]
    came, left = min(read[insert.at]), min(read[delete.at])
    is_early = came < left
    nexts = [each for each in events if each.source == insert.at and each.op != "d"]
    others = [each for each in events if each.key == delete.key and each.row and each.lsn > delete.lsn]
    earlier = [each for each in events[: delete.at] if each.key == insert.key]
    cases = {
        SPLIT: came != left,
        EARLY: is_early,
        ACROSS: shard_of[insert.row_key] != shard_of[delete.row_key],
        AGAIN: max(read[insert.at]) > came and max(read[delete.at]) > left,
        PARTLY_AGAIN: is_early and max(read[insert.at]) > came,
        REUSED: any(min(read[each.at]) < max(read[delete.at]) for each in others) and max(read[delete.at]) > left,
        ONTO_DELETED: bool(earlier) and earlier[-1].op == "d",
        CIRCLE: any(each.moves for each in earlier),
        TRUNCATED: any(each.op == "t" and min(came, left) <= min(read[each.at]) < max(came, left) for each in events),
    }
    for each in nexts:
        at = min(read[each.at])
        lacks = bool(each.lacks)
        cases |= {
            CHAIN: cases.get(CHAIN, False) or (each.moves and lacks and at == came == left),
            LONG_CHAIN: cases.get(LONG_CHAIN, False) or (each.moves and lacks and at != came),
            CHAIN_BACKWARDS: cases.get(CHAIN_BACKWARDS, False) or (each.moves and lacks and at < left),
            THEN_UPDATED: not each.moves and lacks and at == came,
            UPDATED_LATER: not each.moves and lacks and at > came,
            REFILLED: not each.moves and not lacks and came <= at < left,
        }
    return {case for case, holds in cases.items() if holds}
