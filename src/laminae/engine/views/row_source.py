"""Where the rows of a view are read from: its state, the relations below it, or its own changelog. No Spark here.

A view is the sum of what it emitted, even if the records it was computed from are gone. So a view never re-reads
a source log: the log may be truncated, and a view without a backfill has not read all of it.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from laminae.engine.options import VIEW_OPTIONS, option
from laminae.engine.source_spec import spec_of
from laminae.engine.views.resolution import view_plan
from laminae.views.emit import strategy_of
from laminae.views.operators import stateless_reads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laminae.catalog.model import SourceRecord, ViewRecord
    from laminae.views.operators import ViewPlan


class RowsFrom(Enum):
    STATE = "the state of its operators"
    INPUTS = "the tables of the relations below it"
    CHANGELOG = "its own changelog"


def rows_from(
    view: ViewRecord, sources: Sequence[SourceRecord], views: Sequence[ViewRecord], plan: ViewPlan | None = None
) -> RowsFrom:
    """`plan` is the plan of the view, if the caller already has it."""
    plan = plan or view_plan(view.name, view.query, sources, views, view.written, view.reading)
    reads = {read.relation.casefold() for read in stateless_reads(plan.root)}
    if not reads:
        return RowsFrom.STATE
    tables = {source.name.casefold() for source in sources if spec_of(source).keeps_table}
    tables |= {other.name.casefold() for other in views}
    is_whole = option(view.options, "backfill", VIEW_OPTIONS) == "true"
    # Changes that EMIT holds back are already in the tables below, but not in the view.
    if is_whole and reads <= tables and strategy_of(view.emit).is_immediate:
        return RowsFrom.INPUTS
    return RowsFrom.CHANGELOG
