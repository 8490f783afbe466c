"""Named fault points in epochs and deliveries at which a test can make the process fail. No-ops in production."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

EPOCH_POINTS = (
    "epoch planned",
    "rows written",
    "schema inferred",
    "schema evolved",
    "dead letters written",
    "files synced",
    "epoch committed",
)
WRITER_POINTS = ("schema id met",)
SINK_POINTS = ("sink placed", "snapshot written", "part in place", "segment delivered")
DATABASE_POINTS = ("rows staged", "rows merged", "transaction committed")
VIEW_POINTS = ("views computed", "view filled", "view advanced", "tick computed", "tick committed")
MERGE_POINTS = ("merge planned", "merge written", "merge committed", "changes forgotten")
POINTS = (*EPOCH_POINTS, *WRITER_POINTS, *SINK_POINTS, *DATABASE_POINTS, *VIEW_POINTS, *MERGE_POINTS)

_actions: dict[str, Callable[[], None]] = {}


def install(point: str, action: Callable[[], None]) -> None:
    """Run `action` whenever the point is reached."""
    if point not in POINTS:
        raise ValueError(f"no fault point {point!r}")
    _actions[point] = action


def clear() -> None:
    _actions.clear()


def reach(point: str) -> None:
    if _actions:
        _actions.get(point, _nothing)()


def _nothing() -> None:
    pass
