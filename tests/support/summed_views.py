"""A home with one view over a log whose epochs are written by the test: catalog and files are real, Spark has no part.

The view is `SELECT * FROM s`, so it follows the columns of its source. What it emitted is remembered beside it.
"""

from __future__ import annotations

import os
import uuid
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

import laminae as lm
from laminae.catalog.model import ViewStatus
from laminae.catalog.updates import AdvanceOwner, NextEpoch, PutSavepoint, PutSetting, Rewind, SetViewState
from laminae.engine.evolution.added_columns import added_defaults
from laminae.engine.retention.changelog_compaction import Limits, next_merge, pieces_of
from laminae.engine.views.resolution import view_plan
from laminae.schema.identity import column_ids, with_column_ids
from laminae.spark.driver.changelog_compaction import Merger
from laminae.spark.driver.gc import collect
from laminae.spark.driver.storage import Storage
from laminae.zset.canonical import canonical

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from laminae.catalog.model import ViewRecord
    from laminae.views.operators import ViewPlan

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
OWN = [("_op", pa.string()), ("_weight", pa.int64()), ("_timestamp", pa.timestamp("us", tz="UTC"))]
Row = tuple[tuple[str, Any], ...]


@dataclass
class SummedView:
    """`emitted` are (epoch, values by column id, weight)."""

    home: Path
    columns: str = "a BIGINT, b STRING"
    options: str = ""
    now: datetime = START
    emitted: list[tuple[int, dict[str, Any], int]] = field(default_factory=list)
    _plans: dict[int, tuple[ViewPlan, dict[str, Any]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.db = lm.connect(str(self.home))
        self.db.sql(f"CREATE SOURCE s ({self.columns})")
        self.db.sql(f"CREATE MATERIALIZED VIEW v {self.options} AS SELECT * FROM s")  # noqa: S608  # by the test
        self.catalog, self.storage = self.db._catalog, Storage(self.home)
        self.catalog.commit([SetViewState(self.view.id, ViewStatus.LIVE)])

    @property
    def view(self) -> ViewRecord:
        view = self.catalog.view("v")
        assert view is not None
        return view

    @property
    def plan(self) -> ViewPlan:
        """Planned once for each definition: it takes longer than everything else here."""
        seq = self.catalog.definition_seq()
        if seq not in self._plans:
            sources, views = self.catalog.sources(), self.catalog.views()
            plan = view_plan("v", self.view.query, sources, views, self.view.written, self.view.reading)
            fills = {name: each.as_py() for name, each in added_defaults(self.view, sources, views).items()}
            self._plans[seq] = (plan, fills)
        return self._plans[seq][0]

    def emit(self, *changes: tuple[dict[str, Any], int], parts: int = 1) -> int:
        """An epoch with these changes: values by the names of the columns now, each with a weight."""
        ids = dict(zip(self.plan.columns, self.plan.ids, strict=True))
        schema = self._schema(ids)
        files = tuple(self._segment(schema, changes[part::parts]) for part in range(parts) if changes[part::parts])
        view = self.view
        last = self.catalog.last_advance(view.id)
        update = AdvanceOwner(view.id, "v", last, (), files, len(changes), schema)
        epoch = self.catalog.commit([NextEpoch(), update]).ids[0]
        self.emitted += [(epoch, {ids[name]: row.get(name) for name in ids}, weight) for row, weight in changes]
        return epoch

    def _schema(self, ids: dict[str, str]) -> pa.Schema:
        source = self.catalog.source("s")
        assert source is not None
        types = {each.name: each.type for each in source.schema}
        fields = [pa.field(name, kind) for name, kind in [*OWN, *((name, types[name]) for name in ids)]]
        return with_column_ids(pa.schema(fields), ids)

    def _segment(self, schema: pa.Schema, changes: tuple[tuple[dict[str, Any], int], ...]) -> str:
        own = ({"_op": "+I" if weight > 0 else "-D", "_weight": weight, "_timestamp": START} for _, weight in changes)
        rows = [{**each, **row} for each, (row, _) in zip(own, changes, strict=True)]
        file = f"{self.storage.new_segment(self.view.id, 'changes')}/{uuid.uuid4().hex}.parquet"
        (self.home / file).parent.mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(rows, schema), self.home / file)
        self._written(self.home / file)
        return file

    def _written(self, file: Path) -> None:
        for each in (file, file.parent):
            os.utime(each, (self.now.timestamp(), self.now.timestamp()))

    def merge(self, limits: Limits = Limits(), due: int = 0) -> bool:  # noqa: B008  # frozen
        """The next merge, if there is one."""
        pieces = next_merge(pieces_of(self.catalog, self.view.id), limits, due)
        if pieces:
            self.merger.merge(self.view, pieces)
        return bool(pieces)

    @property
    def merger(self) -> Merger:
        return Merger(self.catalog, self.storage, lambda: self.now)

    def gc(self, dry_run: bool = False) -> set[tuple[str, str]]:
        """What was removed, as (kind, path)."""
        return {(each.kind, each.path) for each in collect(self.catalog, self.storage, self.now, dry_run)}

    def pass_time(self, **given: float) -> None:
        self.now += timedelta(**given)

    def keep_changes_for(self, text: str) -> None:
        self.catalog.commit([PutSetting("changelog_retention", text)])

    def savepoint(self, name: str) -> int:
        return self.catalog.commit([PutSavepoint(name, self.now)]).ids[0]

    def restore(self, name: str) -> None:
        epoch = self.catalog.commit([Rewind(name)]).ids[0]
        self.emitted = [each for each in self.emitted if each[0] <= epoch]
        if not self.catalog.last_advance(self.view.id):
            self.catalog.commit([SetViewState(self.view.id, ViewStatus.LIVE)])

    def expected(self, until: int | None = None) -> Counter[Row]:
        """The sum of what was emitted, under the columns of now."""
        total: Counter[Row] = Counter()
        row = self._row()
        for epoch, values, weight in self.emitted:
            if until is None or epoch <= until:
                total[row(values)] += weight
        return Counter({row: weight for row, weight in total.items() if weight})

    def rows(self, until: int | None = None) -> Counter[Row]:
        """What a SELECT adds up: the rows of the files that it opens."""
        total: Counter[Row] = Counter()
        row = self._row()
        for piece in pieces_of(self.catalog, self.view.id, until):
            assert not piece.is_gone, piece
            names = {identity: name for name, identity in column_ids(piece.schema).items()}
            for file in piece.files:
                for record in pq.read_table(self.home / file).to_pylist():
                    total[row({id_: record[name] for id_, name in names.items()})] += record["_weight"]
        return Counter({row: weight for row, weight in total.items() if weight})

    def _row(self) -> Callable[[dict[str, Any]], Row]:
        """How values by column id are a row of the view now."""
        pairs = list(zip(self.plan.columns, self.plan.ids, strict=True))
        fills = self._plans[self.catalog.definition_seq()][1]
        return lambda values: tuple(
            (name, canonical(values[id_] if id_ in values else fills.get(name))) for name, id_ in pairs
        )

    def files(self, until: int | None = None) -> list[str]:
        """What a SELECT opens."""
        return [file for piece in pieces_of(self.catalog, self.view.id, until) for file in piece.files]
