"""Reports of a task to the driver: extra rows in its output, which downstream stages pass through.

A Spark accumulator would also count task attempts that are discarded; a row comes only from the successful attempt.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from laminae.schema.arrays import as_schema
from laminae.schema.nesting import nullable_inside
from laminae.zset.changelog import OP, TIMESTAMP, WEIGHT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

REPORT = "__laminae_report"
"""The column that holds the text of a report; NULL in every data row."""


@dataclass(frozen=True, slots=True)
class StateReport:
    """A shard of an operator has new state. The counters are those of `laminae.views.kernels.step.Counts`."""

    owner: int
    operator: str
    shard: int
    manifest: str
    anomalies: int = 0
    recovered: int = 0
    dropped: int = 0
    moved: int = 0


@dataclass(frozen=True, slots=True)
class ChangesReport:
    """A file of an owner's changelog."""

    owner: int
    file: str
    rows: int


@dataclass(frozen=True, slots=True)
class HeldReport:
    """A file of changes that an owner has not emitted yet."""

    owner: int
    file: str


@dataclass(frozen=True, slots=True)
class FailureReport:
    """A view cannot apply the epoch. The other views can, so the task does not raise."""

    owner: int
    code: str
    problem: str


@dataclass(frozen=True, slots=True)
class LateReport:
    """Late rows arrived for closed windows of a view. A second, small job determines which rows these are."""

    owner: int


TaskReport = StateReport | ChangesReport | HeldReport | FailureReport | LateReport
_KINDS: dict[str, type[TaskReport]] = {
    "state": StateReport,
    "changes": ChangesReport,
    "held": HeldReport,
    "failure": FailureReport,
    "late": LateReport,
}


@dataclass(frozen=True, slots=True)
class OwnerReports:
    """The reports of all tasks of one owner, in the form in which an `AdvanceOwner` commits them."""

    states: tuple[StateReport, ...]
    changes: tuple[ChangesReport, ...]
    held_files: tuple[str, ...]

    @classmethod
    def of(cls, name: str, reports: Iterable[TaskReport]) -> OwnerReports:
        """`name` of the owner, for the message if two tasks computed the same shard."""
        states, changes, held = list[StateReport](), list[ChangesReport](), list[str]()
        for report in reports:
            match report:
                case StateReport():
                    states.append(report)
                case ChangesReport():
                    changes.append(report)
                case HeldReport():
                    held.append(report.file)
        shards = [(state.operator, state.shard) for state in states]
        if len(set(shards)) != len(shards):
            raise AssertionError(f"a shard of {name} was computed in two tasks: {sorted(shards)}")
        return cls(tuple(states), tuple(sorted(changes, key=lambda report: report.file)), tuple(sorted(held)))

    @property
    def manifests(self) -> tuple[tuple[str, int, str], ...]:
        return tuple(sorted((state.operator, state.shard, state.manifest) for state in self.states))

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(report.file for report in self.changes)

    @property
    def rows(self) -> int:
        return sum(report.rows for report in self.changes)

    @property
    def anomalies(self) -> int:
        return sum(state.anomalies - state.recovered for state in self.states)

    @property
    def dropped(self) -> int:
        return sum(state.dropped for state in self.states)


def report_text(report: TaskReport) -> str:
    kind = next(name for name, report_type in _KINDS.items() if isinstance(report, report_type))
    return json.dumps({"kind": kind, **asdict(report)})


def report_of(text: str) -> TaskReport:
    fields = json.loads(text)
    return _KINDS[fields.pop("kind")](**fields)


def split_reports(batches: Iterable[pa.RecordBatch]) -> tuple[pa.Table | None, list[str]]:
    """The data rows of a task's input, None if there are none, and the reports of upstream stages among them."""
    filled = [batch for batch in batches if batch.num_rows]
    if not filled:
        return None, []
    table = _nullable_inside(pa.Table.from_batches(filled))
    if REPORT not in table.column_names:
        return table, []
    texts = table.column(REPORT)
    rows = table.filter(pc.is_null(texts)).drop_columns([REPORT])
    return rows if rows.num_rows else None, texts.drop_null().to_pylist()


def output_schema(fields: Iterable[pa.Field], timed: bool = False) -> pa.Schema:
    """The output schema of a stage. All columns are nullable, since the output has reports as well as changes."""
    own = [pa.field(OP, pa.string()), pa.field(WEIGHT, pa.int64())]
    time = [pa.field(TIMESTAMP, pa.timestamp("us", tz="UTC"))] if timed else []
    return pa.schema([*own, *time, *(field.with_nullable(True) for field in fields), pa.field(REPORT, pa.string())])


def data_rows(rows: pa.Table, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows of changes as output of a stage with this schema."""
    with_report = rows.append_column(REPORT, pa.nulls(rows.num_rows, pa.string()))
    yield from as_schema(with_report, schema).to_batches()


def report_rows(texts: list[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Reports as output of a stage with this schema: NULL in all other columns."""
    if texts:
        columns = [pa.array(texts) if f.name == REPORT else pa.nulls(len(texts), f.type) for f in schema]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _nullable_inside(table: pa.Table) -> pa.Table:
    for index, field in enumerate(table.schema):
        kind = nullable_inside(field.type)
        if kind != field.type:
            table = table.set_column(index, field.with_type(kind), table.column(index).cast(kind))
    return table
