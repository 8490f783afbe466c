"""One Spark job for the views of an epoch, and what it asks the catalog to commit with the epoch.

A guarded job sets rows aside on which an expression fails; it is dearer and runs only when another has failed.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by
from pyspark.sql.types import StructType

from laminae.catalog.updates import AdvanceOwner, SetViewState
from laminae.engine.view_order import FAILED, WAITING, above
from laminae.spark.planned import MappedFrame
from laminae.spark.rows import FrameRows
from laminae.spark.types import arrow_schema
from laminae.spark.views.batches import WHATEVER
from laminae.spark.views.guard import Guard, letters
from laminae.spark.views.late import late_delta
from laminae.spark.views.notes import NOTE, ChangesNote, FailureNote, LateNote, StateNote, note_of
from laminae.spark.views.plans import BasedRelation, is_ready
from laminae.spark.views.tasks import TIMESTAMP
from laminae.spark.views.tree import Deltas, emitted, view_delta
from laminae.views.kernels.changelog import OP
from laminae.views.operators import reads_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from laminae.catalog.model import ViewRecord
    from laminae.catalog.port import Catalog
    from laminae.catalog.updates import CatalogUpdate
    from laminae.spark.storage import Storage
    from laminae.spark.views.notes import Note
    from laminae.spark.views.plans import Based
    from laminae.spark.views.tree import Place, Relations, ViewState
    from laminae.views.operators import GroupBy

# What the plans of views rest on, whatever the session of the user says.
_OWN = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.constraintPropagation.enabled": "false",
    **WHATEVER,
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an epoch does to views: updates of its commit, and the views that could not take it."""

    updates: tuple[CatalogUpdate, ...] = ()
    failures: tuple[FailureNote, ...] = ()


NOTHING = Outcome()


@dataclass(frozen=True, slots=True)
class Aside:
    """Rows that an epoch did not take into a view, and the directories that hold them."""

    rows: int = 0
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Found:
    """What the tasks said, and the rows that came too late or failed, by view."""

    notes: tuple[Note, ...]
    late: Mapping[int, Aside]
    refused: Mapping[int, Aside]


@dataclass(frozen=True, slots=True)
class ViewJob:
    """`is_guarded`: rows on which expressions fail are set aside. `released`: what a view had held back, as changes.

    `based` are rows that views read by kept plans, so that no delta is given of them.
    """

    catalog: Catalog
    storage: Storage
    place: Place
    is_guarded: bool = False
    released: tuple[ViewState, DataFrame] | None = None
    based: Based | None = None

    def run(self, spark: SparkSession, views: Sequence[ViewState], deltas: Relations) -> Outcome:
        """`spark` is a session of our own: how its plans shuffle is set here."""
        self._settle(spark)
        states = [*views] if self.released is None else [self.released[0], *views]
        relations, made, based = dict(deltas), dict[int, DataFrame](), self.based
        guards = {state.owner: Guard() for state in states if self.is_guarded}
        kept: list[DataFrame] = []
        try:
            for state in states:
                above = readers(state.name, states)
                reads, relation = len(above), state.name.casefold()
                frame = self._delta(state, relations, guards.get(state.owner), based, reads > 0)
                if frame is None:
                    continue
                if reads > (0 if self.is_guarded else 1):
                    frame = frame.persist()
                    kept.append(frame)
                made[state.owner] = frame
                if based is not None and isinstance(frame, MappedFrame) and reads == 1 and is_ready(above[0], relation):
                    own = BasedRelation(frame.schema, FrameRows(frame, is_bare=True), _without_time, None)
                    based = based.beside(relation, own)
                elif reads:
                    relations[relation] = _without_time(frame)
            last = [made[s.owner] for s in states if s.owner in made and not readers(s.name, states)]
            notes = _collected(last, are_notes=self.released is None)
            return self._outcome(states, made, self._found(states, relations, guards, notes))
        finally:
            for frame in kept:
                frame.unpersist()
            for guard in guards.values():
                guard.release()

    def fill(
        self, spark: SparkSession, view: ViewState, operator: GroupBy, deltas: Relations
    ) -> tuple[Mapping[int, str], str | None]:
        """What one operator keeps after these deltas, by shard, and what went wrong: nothing above it is computed."""
        self._settle(spark)
        frame = Deltas(view, deltas, self.place).kept(operator, None)
        notes = () if frame is None else _collected([frame], are_notes=False)
        problem = next((note.problem for note in notes if isinstance(note, FailureNote)), None)
        return {note.shard: note.manifest for note in notes if isinstance(note, StateNote)}, problem

    def _settle(self, spark: SparkSession) -> None:
        for name, value in {**_OWN, "spark.sql.shuffle.partitions": str(self.place.shards)}.items():
            spark.conf.set(name, value)

    def _delta(
        self, state: ViewState, relations: Relations, guard: Guard | None, based: Based | None, has_readers: bool
    ) -> DataFrame | None:
        directory = self.storage.new_segment(state.owner, "changes")
        if self.released is not None and state is self.released[0]:
            return emitted(state, self.released[1], self.place, directory)
        return view_delta(state, relations, self.place, directory, guard, based, has_readers)

    def _found(
        self, states: Sequence[ViewState], deltas: Relations, guards: Mapping[int, Guard], notes: tuple[Note, ...]
    ) -> _Found:
        """What needs jobs of its own: small ones, and only in epochs that have such rows."""
        are_late = {note.owner for note in notes if isinstance(note, LateNote)}
        late, refused = dict[int, Aside](), dict[int, Aside]()
        for state in states:
            if state.owner in are_late:
                rows = late_delta(state, deltas, self.place, Guard() if self.is_guarded else None)
                late[state.owner] = self._aside(state, "late", [] if rows is None else [rows])
            if state.owner in guards:
                parts = [letters(state.name, each) for each in guards[state.owner].refused]
                refused[state.owner] = self._aside(state, "refused", [part for part in parts if part is not None])
        return _Found(notes, late, refused)

    def _aside(self, state: ViewState, kind: str, parts: Sequence[DataFrame]) -> Aside:
        if not parts:
            return Aside()
        segment = self.storage.new_segment(state.owner, kind)
        reduce(DataFrame.unionAll, parts).write.mode("errorifexists").parquet(self.storage.path(segment))
        self.storage.sync(segment)
        count = self.storage.rows(segment)
        return Aside(count, (segment,) if count else ())

    def _outcome(self, states: Sequence[ViewState], made: Mapping[int, DataFrame], found: _Found) -> Outcome:
        by_owner: defaultdict[int, list[Note]] = defaultdict(list)
        for note in found.notes:
            by_owner[note.owner].append(note)
        failures = {note.owner: note for note in found.notes if isinstance(note, FailureNote)}
        updates: list[CatalogUpdate] = []
        views = self.catalog.views()
        stopped = set(failures)
        for state in states:
            if state.owner in failures:
                waiting = [view for view in above(state.name, views) if view.id not in failures]
                stopped |= {view.id for view in waiting}
                updates += self.stopped(failures[state.owner], state, waiting)
            elif state.owner in made and state.owner not in stopped:
                aside = [each.get(state.owner, Aside()) for each in (found.late, found.refused)]
                updates += _advanced(state, made[state.owner], by_owner[state.owner], *aside)
        return Outcome(tuple(updates), tuple(failures.values()))

    def stopped(self, failure: FailureNote, state: ViewState, waiting: Sequence[ViewRecord]) -> list[CatalogUpdate]:
        """A view that cannot take an epoch stays at the one before, and those that read it with it."""
        last = self.catalog.last_epoch()
        own = SetViewState(state.owner, FAILED, failure.problem, last, if_there=True)
        told = f"it waits for {state.name}"
        return [own, *(SetViewState(view.id, WAITING, told, last, if_there=True) for view in waiting)]


def _advanced(
    state: ViewState, frame: DataFrame, notes: Sequence[Note], late: Aside, refused: Aside
) -> list[CatalogUpdate]:
    kept = [note for note in notes if isinstance(note, StateNote)]
    changes = sorted((note for note in notes if isinstance(note, ChangesNote)), key=lambda note: note.file)
    shards = [(note.operator, note.shard) for note in kept]
    if len(set(shards)) != len(shards):
        raise AssertionError(f"a shard of view {state.name} was computed in two tasks: {sorted(shards)}")
    if not (kept or changes or late.rows or refused.rows):
        return []
    return [
        AdvanceOwner(
            owner_id=state.owner,
            name=state.name,
            expected=state.expected,
            manifests=tuple(sorted((note.operator, note.shard, note.manifest) for note in kept)),
            files=tuple(note.file for note in changes),
            rows=sum(note.rows for note in changes),
            schema=arrow_schema(StructType([each for each in frame.schema.fields if each.name != NOTE])),
            anomalies=sum(note.anomalies - note.recovered for note in kept),
            dropped=sum(note.dropped for note in kept),
            late=late.rows,
            late_files=late.files,
            refused=refused.rows,
            refused_files=refused.files,
        )
    ]


def readers(relation: str, states: Sequence[ViewState]) -> list[ViewState]:
    name = relation.casefold()
    return [other for other in states for read in reads_in(other.plan.root) if read.relation.casefold() == name]


def _collected(frames: Sequence[DataFrame], are_notes: bool) -> tuple[Note, ...]:
    """The notes of all frames, which may have nothing else; those that came by two ways are one."""
    if not frames:
        return ()
    (first, *others) = frames
    if not others and isinstance(first, MappedFrame):
        texts = first.texts(NOTE)
    elif not others and are_notes:
        texts = [row[NOTE] for row in first.collect()]
    else:
        notes = reduce(DataFrame.unionAll, [frame.where(F.col(NOTE).isNotNull()).select(NOTE) for frame in frames])
        texts = [row[NOTE] for row in notes.collect()]
    return tuple(map(note_of, dict.fromkeys(texts)))


def _without_time(changes: DataFrame) -> DataFrame:
    return changes.drop(OP, TIMESTAMP)
