"""When a view emits its changes: the EMIT strategies, and what each holds back until when.

Strategies with a window hold a row back until the end of its window is at or before a bound that follows the watermark.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from laminae import sql as ddl
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
    """`every` is the interval between two emissions, in microseconds."""

    kind: Kind
    every: int = 0

    @property
    def is_immediate(self) -> bool:
        """Whether each epoch emits its changes at once."""
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
    """Parse the text after EMIT, as the catalog stores it."""
    if emit is None:
        return Strategy(Kind.CHANGES)
    # Parsed by the grammar that printed it; the statement is not executed.
    (statement,) = ddl.parse("CREATE MATERIALIZED VIEW v AS SELECT a FROM s EMIT " + emit)  # noqa: S608
    assert isinstance(statement, ddl.CreateView)  # the text is a CREATE MATERIALIZED VIEW
    clause = statement.emit
    return Strategy(_KINDS[type(clause)], clause.interval.microseconds if isinstance(clause, ddl.EmitEvery) else 0)


def shows_old_rows(emit: str | None) -> bool:
    """Whether a view emits -U. The -U rows are stored in either case, because views on top of it need both rows."""
    return strategy_of(emit).kind is not Kind.ON_UPDATE


def refuse_misplaced(view: str, strategy: Strategy, plan: ViewPlan) -> None:
    """Raise `QueryFailed` for a strategy that the view cannot have."""
    if strategy.kind in (Kind.ON_WATERMARK, Kind.ON_WINDOW_CLOSE) and plan.window is None:
        raise QueryFailed(problem=f"EMIT {strategy.kind.value} needs a window, and view {view} does not group by one")
    if strategy.kind is Kind.ON_UPDATE and plan.key is None:
        raise QueryFailed(problem=f"EMIT ON UPDATE needs a key, and nothing identifies a row of view {view}")


def bound_of(strategy: Strategy, has_window: bool, watermark: int | None, lateness: int) -> int | None:
    """Rows whose window ends at or before this bound are emitted; None: no rows are, or window ends do not matter."""
    if watermark is None or not has_window or strategy.kind in (Kind.CHANGES, Kind.ON_UPDATE, Kind.EVERY):
        return None
    return watermark if strategy.kind is Kind.ON_WATERMARK else watermark - lateness
