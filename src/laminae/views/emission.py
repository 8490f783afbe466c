"""When a view emits what it has computed: the strategies of EMIT, and what each holds back until when.

Strategies with a window hold a row back until the window's end lies at or before a bound, which follows the watermark.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from laminae import ddl
from laminae.errors import QueryFailed

if TYPE_CHECKING:
    from laminae.views.operators import ViewPlan


class Kind(Enum):
    CHANGES = "CHANGES"
    ON_UPDATE = "ON UPDATE"
    ON_WATERMARK = "ON WATERMARK"
    ON_WINDOW_CLOSE = "ON WINDOW CLOSE"
    EVERY = "EVERY"
    FINAL = "FINAL"


@dataclass(frozen=True, slots=True)
class Strategy:
    """`every` is the time between two ticks, in microseconds."""

    kind: Kind
    every: int = 0

    @property
    def is_immediate(self) -> bool:
        """Whether every epoch emits its changes."""
        return self.kind in (Kind.CHANGES, Kind.ON_UPDATE)


_KINDS: dict[type, Kind] = {
    ddl.EmitChanges: Kind.CHANGES,
    ddl.EmitOnUpdate: Kind.ON_UPDATE,
    ddl.EmitOnWatermark: Kind.ON_WATERMARK,
    ddl.EmitOnWindowClose: Kind.ON_WINDOW_CLOSE,
    ddl.EmitFinal: Kind.FINAL,
    ddl.EmitEvery: Kind.EVERY,
}


def strategy_of(emit: str | None) -> Strategy:
    """Of the text behind EMIT, as the catalog keeps it."""
    if emit is None:
        return Strategy(Kind.CHANGES)
    # Parsed by the grammar it was printed with; nothing is run.
    (statement,) = ddl.parse("CREATE MATERIALIZED VIEW v AS SELECT a FROM s EMIT " + emit)  # noqa: S608
    assert isinstance(statement, ddl.CreateView)  # what was just written
    found = statement.emit
    return Strategy(_KINDS[type(found)], found.interval.microseconds if isinstance(found, ddl.EmitEvery) else 0)


def shows_old_rows(emit: str | None) -> bool:
    """Whether -U is among the changes that a view shows. They are kept all the same: views upon it need both rows."""
    return strategy_of(emit).kind is not Kind.ON_UPDATE


def refuse_misplaced(view: str, strategy: Strategy, plan: ViewPlan) -> None:
    """QueryFailed for a strategy that a view cannot have."""
    if strategy.kind in (Kind.ON_WATERMARK, Kind.ON_WINDOW_CLOSE) and plan.window is None:
        raise QueryFailed(problem=f"EMIT {strategy.kind.value} needs a window, and view {view} does not group by one")
    if strategy.kind is Kind.ON_UPDATE and plan.key is None:
        raise QueryFailed(problem=f"EMIT ON UPDATE needs a key, and nothing identifies a row of view {view}")


def bound_of(strategy: Strategy, has_window: bool, watermark: int | None, lateness: int) -> int | None:
    """Up to which end of a window rows are emitted at this watermark; None: nothing is, or ends do not matter."""
    if watermark is None or not has_window or strategy.kind in (Kind.CHANGES, Kind.ON_UPDATE, Kind.EVERY):
        return None
    return watermark if strategy.kind is Kind.ON_WATERMARK else watermark - lateness
