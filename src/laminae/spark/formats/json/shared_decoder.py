"""One decoder for the records of many schema versions: each key is parsed once for each way in which versions read it.

The version of a record selects among the parsed values, so a record gets the row, or the error, of its own version,
and the plan grows with the number of schema changes. A key that versions read in several ways (its type was widened,
its name was reused) is in several layers; a record is parsed only by the layers that its version needs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.codec.value_encodings import as_sent, as_text, float_paths, has_rules, rule_of
from laminae.engine.epochs.version_runs import FormerName, HeldColumn, checked_columns, joined_runs, shared_columns
from laminae.schema.column import column as field_node
from laminae.schema.column import columns_of
from laminae.schema.projection import projection_between
from laminae.spark.catalyst.column_list import Columns
from laminae.spark.catalyst.expression import (
    FALSE,
    TRUE,
    ZERO,
    Expression,
    any_of,
    call,
    cases,
    column,
    each,
    first_text,
    literal,
    struct,
    when,
)
from laminae.spark.catalyst.literals import default_sql
from laminae.spark.formats.json.exact_check import (
    LAYER,
    REASON,
    REASONS,
    UNKNOWN_FIELDS,
    depth_of,
    exact_check,
    field_labels,
)
from laminae.spark.formats.json.fast_check import FOUND, SEEN, Accounts, ReadKey, accounts_of, is_clean, seen_columns
from laminae.spark.formats.json.from_json import declared, reading_field
from laminae.spark.formats.json.record import from_json
from laminae.spark.formats.json.record_version import TEXT, is_among, is_within, judged_by, stamp_field, version_by
from laminae.spark.formats.projection import REASONS as MISFITS
from laminae.spark.formats.projection import step_problem, step_value
from laminae.spark.formats.protocol import ERROR, RAW_COLUMNS, ROW, UNKNOWN, VERSION
from laminae.spark.formats.value_decoding import converted, lost_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import SparkSession

    from laminae.codec.decoders import DecoderTable
    from laminae.engine.epochs.version_runs import CheckedColumn, Runs, SharedColumn
    from laminae.schema.column import Column
    from laminae.schema.projection import Step

PARSED, READ, MADE, EXACT, JUDGED = "_parsed_{}", "_read_{}_{}", "_made_{}_{}", "_exact", "_judged"
VERSION_OF, JUDGED_BY = column(VERSION), column(JUDGED)
# The top-level keys of a record in which a key may be absent.
NAMES = Expression("_names")
STAR = Expression("*")
LABELS = f"ARRAY<STRUCT<path: STRING, name: STRING, type: STRING, {LAYER}: INT, first: BIGINT, last: BIGINT>>"


def shared_stages(spark: SparkSession, table: DecoderTable, exactly: bool, beside: tuple[str, ...]) -> list[Columns]:
    """Successive projections: the version, the parsed layers, the exact check, the row or the error."""
    return _Shared(table).stages(spark, exactly, beside)


@dataclass(frozen=True, slots=True)
class _Key:
    """A top-level field of a record as some versions read it, and the layer that parses it."""

    node: Column
    layer: int
    versions: tuple[tuple[int, int], ...]
    is_number: bool

    @property
    def value(self) -> Expression:
        return column(PARSED.format(self.layer)).field(self.node.name)

    @property
    def declared(self) -> Expression:
        return declared(self.node, self.value)


@dataclass(frozen=True, slots=True)
class _Form:
    """A column in the versions that give it one type: the value as sent, and as converted to the column's type."""

    node: Column
    versions: tuple[tuple[int, int], ...]
    read: Expression
    value: Expression


class _Shared:
    def __init__(self, table: DecoderTable) -> None:
        self.table = table
        self.columns = {shared.id: shared for shared in shared_columns(table)}
        self._ruled: dict[Column, Column] = {}
        self._sent: dict[Column, Column] = {}
        self._last = table.decoders[-1].version
        self._first = table.decoders[0].version
        self._names: dict[Column, str] = {}
        self.keys = self._all_keys()
        self.layers = 1 + max((key.layer for key in self.keys.values()), default=0)
        self.looks: list[Expression] = []
        self.chosen: list[tuple[Expression, str]] = []
        self.made: list[tuple[Expression, str]] = []
        self.forms = {number: self._forms_of(shared) for number, shared in self.columns.items()}

    def stages(self, spark: SparkSession, exactly: bool, beside: tuple[str, ...]) -> list[Columns]:
        accounts = self._accounts()
        is_known = VERSION_OF.is_one_of([decoder.version for decoder in self.table.decoders])
        if self.table.judged:
            # The epoch that first read the record did not know later versions.
            is_known = is_known & VERSION_OF.compared("<=", JUDGED_BY)
        is_suspect = is_known & ~is_clean(TEXT, SEEN, accounts)
        stages = [*self._parsed(spark), _more(spark, [(accounts.keys, FOUND.sql)])]
        closer: Sequence[Expression] = [when(is_suspect, literal(REASONS["suspect"]))]
        unknown = FALSE
        if exactly:
            stages.append(_more(spark, [(when(is_suspect, self._exact()), EXACT)]))
            closer = [column(EXACT).field(REASON)]
            if self.table.finds_unknown_fields:
                unknown = call("coalesce", column(EXACT).field(UNKNOWN_FIELDS), FALSE)
        names = [(when(any_of(self.looks), call("json_object_keys", TEXT)), NAMES.sql)] if self.looks else []
        stages += [_more(spark, added) for added in (names, self.chosen, self.made) if added]
        strange = when(~is_known, call("concat", literal(REASONS["version"]), VERSION_OF.cast("STRING")))
        error = first_text([*closer, strange, *self._lost(), *self._misfits()])
        last = Columns(spark)
        for name in (*RAW_COLUMNS, *beside):
            last.add(column(name))
        row = struct((node.name, self._value(node)) for node in columns_of(self.table.current))
        last.add(when(error.is_null(), row), ROW)
        stages.append(last.add(error, ERROR).add(unknown, UNKNOWN).add(VERSION_OF))
        return stages

    def _parsed(self, spark: SparkSession) -> list[Columns]:
        name, stamp = self.table.version_field, None
        first = Columns(spark).add(STAR).add_all(seen_columns(spark.sparkContext))
        stages = [first]
        if name is not None:
            fields = stamp_field(name)
            stamp = fields.value(fields.named(name), TEXT, column(PARSED.format(0)))
            first.add(self._parse(0), PARSED.format(0))
            stages.append(Columns(spark).add(STAR))
        stages[-1].add(version_by(self.table, stamp), VERSION)
        if self.table.judged:
            stages[-1].add(judged_by(self.table), JUDGED)
        rest = [(self._parse(layer), PARSED.format(layer)) for layer in range(0 if name is None else 1, self.layers)]
        return [*stages, _more(spark, rest)] if rest else stages

    def _parse(self, layer: int) -> Expression:
        nodes = [key.node for key in self.keys.values() if key.layer == layer]
        parsed = from_json(TEXT, nodes)
        if layer:
            runs = self._joined(run for key in self.keys.values() if key.layer == layer for run in key.versions)
            parsed = self._among(runs, parsed)
        # Non-deterministic, so that Spark neither inlines it where it is used nor pushes a filter on it below it.
        return when(call("monotonically_increasing_id").compared(">=", 0), parsed)

    def _all_keys(self) -> dict[str, _Key]:
        """All keys, by a text that describes how the key is read (see `_told`)."""
        nodes: dict[str, Column] = {}
        numbers: set[str] = set()
        runs: dict[str, set[tuple[int, int]]] = {}
        for shared in self.columns.values():
            uses: list[HeldColumn | FormerName] = [*shared.held, *shared.formers]
            for use in uses:
                node, live = self._node(use), use.live if isinstance(use, FormerName) else use.node
                description = self._told(node)
                nodes.setdefault(description, node)
                runs.setdefault(description, set()).update(use.versions)
                if float_paths(pa.schema([self._ruled_of(live).field])):
                    numbers.add(description)
        if self.table.version_field is not None:
            stamp = stamp_field(self.table.version_field).named(self.table.version_field)
            nodes[self._told(stamp)], runs[self._told(stamp)] = stamp, {(self._first, self._last)}
        taken: dict[str, int] = {}
        keys: dict[str, _Key] = {}
        # Newest first, so that records of the newest version are parsed only once.
        for description in sorted(nodes, key=lambda description: -max(last for _, last in runs[description])):
            name = nodes[description].name.casefold()
            layer = taken[name] = taken.get(name, -1) + 1
            keys[description] = _Key(nodes[description], layer, self._joined(runs[description]), description in numbers)
        return keys

    def _ruled_of(self, node: Column) -> Column:
        if node not in self._ruled:
            schema = pa.schema([node.field])
            ruled = as_text(schema, self.table.timestamp_unit)
            self._ruled[node] = node if ruled is schema else columns_of(ruled)[0]
        return self._ruled[node]

    def _sent_of(self, node: Column) -> Column:
        if node not in self._sent:
            schema = pa.schema([self._ruled_of(node).field])
            sent = as_sent(schema)
            self._sent[node] = self._ruled_of(node) if sent is schema else columns_of(sent)[0]
        return self._sent[node]

    def _node(self, use: HeldColumn | FormerName) -> Column:
        """The field as it is requested from `from_json`."""
        name, live = (use.node.name, use.node) if isinstance(use, HeldColumn) else (use.name, use.live)
        return field_node(pa.field(name, self._sent_of(live).type))

    def _joined(self, runs: Iterable[tuple[int, int]]) -> Runs:
        return joined_runs(runs, self.table)

    def _told(self, node: Column) -> str:
        if node not in self._names:
            self._names[node] = json.dumps([reading_field(node).jsonValue(), str(node.type)])
        return self._names[node]

    def _key(self, use: HeldColumn | FormerName) -> _Key:
        return self.keys[self._told(self._node(use))]

    def _guard(self, runs: Runs) -> Expression | None:
        """Whether the version of a record is in these runs; None if every version is."""
        if runs and runs[0][0] <= self._first and runs[0][1] >= self._last:
            return None
        return is_among(VERSION_OF, runs)

    def _among(self, runs: Runs, value: Expression, otherwise: Expression | None = None) -> Expression:
        guard = self._guard(runs)
        return value if guard is None else when(guard, value, otherwise)

    def _accounts(self) -> Accounts:
        read = [ReadKey(key.node, key.value, self._guard(key.versions)) for key in self.keys.values()]
        accounts = accounts_of(read, TEXT)
        return Accounts(call("coalesce", accounts.keys, ZERO), accounts.objects, accounts.nulls, accounts.is_odd)

    def _exact(self) -> Expression:
        keys = list(self.keys.values())
        echoes = [
            call("to_json", struct((key.node.name, key.declared) for key in keys if key.layer == layer))
            for layer in range(self.layers)
        ]
        labels = [
            {"path": path, "name": name, "type": kind, LAYER: key.layer, "first": first, "last": last}
            for key in keys
            for path, name, kind in field_labels([key.node], {(key.node.name,)} if key.is_number else ())
            for first, last in key.versions
        ]
        known = call("from_json", literal(json.dumps(labels)), literal(LABELS))
        own = each("filter", known, lambda label: is_within(VERSION_OF, label.field("first"), label.field("last")))
        entries = each(
            "transform",
            own,
            lambda label: struct(
                [("key", label.field("path")), ("value", struct((n, label.field(n)) for n in ("name", "type", LAYER)))]
            ),
        )
        depth = max(depth_of([key.node]) for key in keys)
        types = call("map_from_entries", entries)
        return exact_check(TEXT, echoes, types, depth, self.table.finds_unknown_fields)

    def _forms_of(self, shared: SharedColumn) -> list[_Form]:
        groups: dict[tuple[object, ...], list[HeldColumn]] = {}
        for held in shared.held:
            groups.setdefault(_kind(self._ruled_of(held.node)), []).append(held)
        forms = []
        for place, (kind, members) in enumerate(groups.items()):
            formers = [former for former in shared.formers if _kind(self._ruled_of(former.live)) == kind]
            node = self._ruled_of(members[-1].node)
            read = self._read(members, formers)
            if formers or len(members) > 1 or self._sent_of(members[0].node).default is not None:
                name = READ.format(shared.id, place)
                self.chosen.append((read, name))
                read = column(name)
            value = read
            if has_rules([node.field]):
                name = MADE.format(shared.id, place)
                self.made.append((converted(node, read), name))
                value = column(name)
            runs = self._joined(run for held in members for run in held.versions)
            forms.append(_Form(node, runs, read, value))
        return forms

    def _read(self, members: Sequence[HeldColumn], formers: Sequence[FormerName]) -> Expression:
        """The value of a column: under its name in the record's version, else under a former name, else the default.

        `from_json` does not fill the defaults here: it fills none if it cannot read another key, which may be a key
        that the record's own version ignores.
        """
        own = self._chosen([(held.versions, self._key(held).declared) for held in members])
        filled = [held for held in members if self._sent_of(held.node).default is not None]
        if not formers and not filled:
            return own
        signs = [self._among(held.versions, TRUE, FALSE) for held in filled]
        signs += [self._among(former.versions, self._key(former).value.is_there(), FALSE) for former in formers]
        is_absent = self._chosen([(held.versions, self._key(held).value.is_null()) for held in members])
        may_be_absent = call("coalesce", is_absent, FALSE) & any_of(signs)
        self.looks.append(may_be_absent)
        # Only the text shows whether a key is absent.
        own_name = self._chosen([(held.versions, literal(held.node.name)) for held in members])
        branches = [(call("array_contains", NAMES, own_name), own)]
        for former in formers:
            is_there, guard = call("array_contains", NAMES, literal(former.name)), self._guard(former.versions)
            branches.append((is_there if guard is None else guard & is_there, self._key(former).declared))
        for held in filled:
            sent = self._sent_of(held.node)
            branches.append((is_among(VERSION_OF, held.versions), Expression(default_sql(sent, (sent.name,)))))
        return when(may_be_absent, cases(branches), own)

    def _chosen(self, values: Sequence[tuple[Runs, Expression]]) -> Expression:
        if len(values) == 1:
            return values[0][1]
        return cases([(is_among(VERSION_OF, runs), value) for runs, value in values])

    def _value(self, target: Column) -> Expression:
        shared = self.columns.get(target.id or 0)
        fill = _step(None, target)
        if shared is None:
            return step_value(fill, (), _nothing)
        values = []
        for form in self.forms[shared.id]:
            step = _step(form.node, target)
            values.append((form.versions, step_value(step, (form.node,), _always(form.value))))
        if not shared.absent and len(values) == 1:
            return values[0][1]
        otherwise = step_value(fill, (), _nothing) if shared.absent else None
        return cases([(is_among(VERSION_OF, runs), value) for runs, value in values], otherwise)

    def _lost(self) -> list[Expression]:
        """Errors for values that were sent in a form that cannot be converted to the column's type."""
        return [
            self._among(form.versions, problem)
            for forms in self.forms.values()
            for form in forms
            if (problem := lost_value(form.node, form.read, form.value)) is not None
        ]

    def _misfits(self) -> list[Expression]:
        return [problem for checked in checked_columns(self.table) for problem in self._problems(checked)]

    def _problems(self, checked: CheckedColumn) -> list[Expression]:
        """Why a record does not fit a column of the schema that it is checked against."""
        judged = self.table.judged
        target = checked.node if not judged else field_node(checked.node.field.with_nullable(True))
        shared = self.columns.get(target.id or 0)
        problems = []
        for form in self.forms[shared.id] if shared is not None else ():
            problem = step_problem(_step(form.node, target), (form.node,), _always(form.value))
            if problem is not None:
                problems.append(self._among(form.versions, problem))
        if shared is None or shared.absent:
            problem = step_problem(_step(None, target), (), _nothing)
            if problem is not None:
                problems.append(problem if shared is None else self._among(shared.absent, problem))
        if not judged:
            return problems
        first, last = judged[0].version, judged[-1].version
        if checked.present != ((first, last),):
            problems = [when(is_among(JUDGED_BY, checked.present), problem) for problem in problems]
        if checked.strict:
            reason = literal(MISFITS["null"].format(path=target.name))
            problems.append(when(is_among(JUDGED_BY, checked.strict) & self._value(target).is_null(), reason))
        return problems


def _more(spark: SparkSession, added: Sequence[tuple[Expression, str]]) -> Columns:
    columns = Columns(spark).add(STAR)
    for value, name in added:
        columns.add(value, name)
    return columns


def _kind(node: Column) -> tuple[object, ...]:
    return node.kind, node.children, rule_of(node.field)


def _step(source: Column | None, target: Column) -> Step:
    old = pa.schema([] if source is None else [source.field])
    (step,) = projection_between(old, pa.schema([target.field])).steps
    return step


def _always(value: Expression) -> Callable[[int], Expression]:
    return lambda _: value


def _nothing(_: int) -> Expression:
    raise AssertionError("a column that is filled has no source")
