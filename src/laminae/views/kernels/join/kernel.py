"""The kernel of equi-joins: inner, left, right, full, semi and anti, over one trace for each side.

The changes of the pairs are dL x R + L x dR + dL x dR. A row of an outer, semi or anti join is there without a partner
(or with one) by the number of its partners before and after, which is counted from the traces. Rows that an epoch adds
to a key which the other side does not touch are found without reading the other rows of their own side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from laminae.trace.cluster import clusters
from laminae.trace.compaction import append
from laminae.trace.lookup import Wanted
from laminae.trace.scan import ROWS_OF_A_BATCH, common_bounds
from laminae.trace.spec import HASH, WEIGHT
from laminae.views.kernels.changelog import DELETED, INSERTED, OPERATIONS, changes_schema
from laminae.views.kernels.join.pairs import mirrored, pair_slices, partner_counts
from laminae.views.kernels.join.sides import JoinSide, SideRows, side_change, stored_rows, visible_rows
from laminae.views.kernels.step import Counts, Input, Step, state_rows
from laminae.views.operators import JoinKind
from laminae.zset.comparison import gathered, integers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from laminae.trace.manifest import Manifest
    from laminae.trace.spec import TraceSpec
    from laminae.trace.store import RunStore
    from laminae.views.kernels.join.pairs import Residual
    from laminae.views.kernels.step import ShardState
    from laminae.views.operators import Comparison
    from laminae.zset.wide_integers import Bools, Int64s

PAIRS_OF_A_SLICE = 1 << 20
KEEPS_LEFT = (JoinKind.LEFT, JoinKind.FULL, JoinKind.ANTI)
"""Kinds whose result has left rows without a partner."""
KEEPS_RIGHT = (JoinKind.RIGHT, JoinKind.FULL)
NO_GROUP = (-1, -2)
"""The key numbers of rows with a NULL in a key that is compared by `=`, of the left and of the right side."""


@dataclass(frozen=True, slots=True, eq=False)
class EquiJoin:
    """`null_safe` says for each key whether it is compared by `<=>`. Both columns of a comparison have the same type.

    `outputs` are the columns of either side that the changes have; no name occurs on both sides.
    """

    view: str
    kind: JoinKind
    left: JoinSide
    right: JoinSide
    null_safe: tuple[bool, ...]
    residual: tuple[Comparison, ...]
    outputs: tuple[str, ...]

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        by_name = {field.name: field for side in (self.left, self.right) for field in side.columns}
        return tuple(by_name[name].with_nullable(True) for name in self.outputs)

    @property
    def places(self) -> Residual:
        left, right = self.left.names, self.right.names
        return [(left.index(each.left), each.sign, right.index(each.right)) for each in self.residual]


@dataclass(frozen=True, slots=True, eq=False)
class JoinKernel:
    """A join as a `Kernel`. `slice_pairs` bounds how many pairs are in memory at a time."""

    join: EquiJoin
    slice_pairs: int = PAIRS_OF_A_SLICE

    @property
    def inputs(self) -> tuple[Input, ...]:
        return tuple(Input(side.name, side.input) for side in self._sides)

    @property
    def _sides(self) -> tuple[JoinSide, JoinSide]:
        return self.join.left, self.join.right

    def step(self, deltas: tuple[pa.Table, ...], state: ShardState) -> Step:
        manifest, store = state.manifest, state.store
        runs = [[store.open(run) for run in manifest.runs(side.name)] for side in self._sides]
        keeps = [self._kept(side, delta) for side, delta in zip(self._sides, deltas, strict=True)]
        changes = [side_change(*each) for each in zip(self._sides, runs, deltas, keeps, strict=True)]
        keys = _Keys.of(self.join, [change.rows for change in changes])
        touched = [keys.mask(groups) for groups in keys.groups]
        # Partners of changed rows; and, where rows without a partner are shown, partners of the rows that lose or gain.
        read_left = touched[1] | touched[0] if self.join.kind in KEEPS_RIGHT else touched[1]
        counts_left = self.join.kind in KEEPS_LEFT or self.join.kind is JoinKind.SEMI
        read_right = touched[0] | touched[1] if counts_left else touched[0]
        old = [
            stored_rows(side, own, keys.wanted.take(read), np.flatnonzero(read))
            for side, own, read in zip(self._sides, runs, (read_left, read_right), strict=True)
        ]
        new = [
            visible_rows(side, change.rows, groups, change.visible)
            for side, change, groups in zip(self._sides, changes, keys.groups, strict=True)
        ]
        for side, change in zip(self._sides, changes, strict=True):
            runs_now = append(store, side.trace(), manifest.runs(side.name), change.rows)
            manifest = manifest.with_runs(side.name, runs_now)
        anomalies = [change.anomalies() for change in changes]
        counts = Counts(
            rows_in=sum(delta.num_rows for delta in deltas),
            anomalies=sum(one for one, _ in anomalies),
            recovered=sum(other for _, other in anomalies),
            state_rows=state_rows(manifest),
        )
        return Step(self._changes(_Epoch(new[0], new[1], old[0], old[1])), manifest, counts)

    def rows(self, manifest: Manifest, store: RunStore) -> Iterator[pa.RecordBatch]:
        """The rows of the result: all stored rows as one change of nothing, one range of hashes after another."""
        runs = [[store.open(run) for run in manifest.runs(side.name)] for side in self._sides]
        for parts in common_bounds([side.trace() for side in self._sides], runs, ROWS_OF_A_BATCH):
            sides = [_visible(batch) for batch in parts]
            keys = _Keys.of(self.join, sides)
            left, right = (
                visible_rows(side, batch, groups, integers(batch.column(WEIGHT)))
                for side, batch, groups in zip(self._sides, sides, keys.groups, strict=True)
            )
            nothing = left.where(np.zeros(len(left), dtype=np.bool_)), right.where(np.zeros(len(right), dtype=np.bool_))
            for changes in self._changes(_Epoch(left, right, *nothing)):
                copies = np.repeat(np.arange(changes.num_rows), integers(changes.column(WEIGHT)))
                yield changes.select(self.join.outputs).take(pa.array(copies))

    def traces(self, manifests: Iterable[Manifest]) -> list[TraceSpec]:
        return [side.trace() for side in self._sides]

    def _kept(self, side: JoinSide, delta: pa.Table) -> Bools | None:
        """Rows with a NULL in a key have no partner: they are stored only if the result shows them."""
        shown = KEEPS_LEFT if side is self.join.left else KEEPS_RIGHT
        if self.join.kind in shown or all(self.join.null_safe):
            return None
        return _comparable(
            self.join, [gathered(delta.column(field.name), field.type) for field in side.keys], len(delta)
        )

    def _changes(self, epoch: _Epoch) -> Iterator[pa.RecordBatch]:
        join, residual, limit = self.join, self.join.places, self.slice_pairs
        if not join.kind.selects_left:
            for left, right in epoch.products():
                for places, partners in pair_slices(left, right, residual, limit):
                    weights = left.weights[places] * right.weights[partners]
                    yield self._batch(left.taken(places), right.taken(partners), weights)
        if join.kind in KEEPS_LEFT or join.kind is JoinKind.SEMI:
            others = epoch.right_old, epoch.right
            for rows, weights in _without_partner(join.kind, epoch.left, epoch.left_old, *others, residual, limit):
                yield self._batch(rows.columns, None, weights)
        if join.kind in KEEPS_RIGHT:
            others = epoch.left_old, epoch.left
            mirror = mirrored(residual)
            for rows, weights in _without_partner(join.kind, epoch.right, epoch.right_old, *others, mirror, limit):
                yield self._batch(None, rows.columns, weights)

    def _batch(
        self, left: Sequence[pa.Array] | None, right: Sequence[pa.Array] | None, weights: Int64s
    ) -> pa.RecordBatch:
        columns: dict[str, pa.Array] = {}
        for side, arrays in zip(self._sides, (left, right), strict=True):
            columns |= {} if arrays is None else dict(zip(side.names, arrays, strict=True))
        outputs = [
            columns[field.name].cast(field.type) if field.name in columns else pa.nulls(len(weights), field.type)
            for field in self.join.fields
        ]
        ops = OPERATIONS.take(pa.array(np.where(weights > 0, INSERTED, DELETED)))
        batch = pa.RecordBatch.from_arrays([ops, pa.array(weights), *outputs], schema=changes_schema(self.join.fields))
        return batch if bool(weights.all()) else batch.filter(pa.array(weights != 0))


@dataclass(frozen=True, slots=True, eq=False)
class _Epoch:
    """The changes of the visible rows of both sides, and the rows before the epoch of the keys that they touch."""

    left: SideRows
    right: SideRows
    left_old: SideRows
    right_old: SideRows

    def products(self) -> tuple[tuple[SideRows, SideRows], ...]:
        return (self.left, self.right_old), (self.left_old, self.right), (self.left, self.right)


def _without_partner(
    kind: JoinKind,
    changed: SideRows,
    old: SideRows,
    others_old: SideRows,
    others_changed: SideRows,
    residual: Residual,
    limit: int,
) -> Iterator[tuple[SideRows, Int64s]]:
    """Changes of the rows of one side that are shown by themselves: without a partner, for SEMI with one.

    A row of weight w that is shown is there w times. So a change of its weight counts if it is shown after the epoch,
    and its old weight counts if it was not shown before and is now, or the other way round.
    """

    def shown(rows: SideRows) -> tuple[Bools, Bools]:
        was = partner_counts(rows, others_old, residual, limit)
        now = was + partner_counts(rows, others_changed, residual, limit)
        return (was > 0, now > 0) if kind is JoinKind.SEMI else (was <= 0, now <= 0)

    _, now = shown(changed)
    yield changed, changed.weights * now
    if len(others_changed):
        was, now = shown(old)
        yield old, old.weights * (now.astype(np.int64) - was)


@dataclass(frozen=True, slots=True, eq=False)
class _Keys:
    """The distinct keys of both sides in an epoch, sorted by hash, and the number of the key of each row."""

    wanted: Wanted
    groups: tuple[Int64s, Int64s]

    @classmethod
    def of(cls, join: EquiJoin, sides: Sequence[pa.RecordBatch]) -> _Keys:
        names = [field.name for field in join.left.keys]
        hashes = np.concatenate([integers(rows.column(HASH)) for rows in sides])
        keys = [pa.concat_arrays([rows.column(name) for rows in sides]) for name in names]
        equal = clusters(hashes, keys)
        numbers = equal.members()
        is_known = _comparable(join, keys, len(hashes))
        first = sides[0].num_rows
        parts = (numbers[:first], is_known[:first]), (numbers[first:], is_known[first:])
        left, right = (np.where(known, own, alone) for (own, known), alone in zip(parts, NO_GROUP, strict=True))
        return cls(Wanted(hashes, tuple(keys)).take(equal.firsts), (left, right))

    def mask(self, groups: Int64s) -> Bools:
        """Which keys these rows have; NULLs are no keys."""
        touched = np.zeros(len(self.wanted), dtype=np.bool_)
        touched[groups[groups >= 0]] = True
        return touched


def _comparable(join: EquiJoin, keys: Sequence[pa.Array], rows: int) -> Bools:
    """Row by row: has no key that is compared by `=` a NULL?"""
    known = np.ones(rows, dtype=np.bool_)
    for key, null_safe in zip(keys, join.null_safe, strict=True):
        if not null_safe and key.null_count:
            known &= np.asarray(key.is_valid())
    return known


def _visible(batch: pa.RecordBatch) -> pa.RecordBatch:
    weights = integers(batch.column(WEIGHT))
    return batch.filter(pa.array(weights > 0)) if bool((weights < 0).any()) else batch
