"""Whether a changed query can go on: operators, keys, variables, formats and aggregates, without Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from laminae.state.checkpoint.aggregates import Aggregate, QueryNote
from laminae.state.checkpoint.buffers import Assumptions
from laminae.state.checkpoint.check import Planned, check
from laminae.state.checkpoint.model import (
    ENCODING,
    HDFS,
    JOIN_FORMAT,
    PROVIDER,
    ROCKSDB,
    ROW_CHECKSUM,
    Checkpoint,
    Family,
    Operator,
    Store,
    Variable,
)
from laminae.state.codec import row_encoder
from laminae.state.mapping import Filled, Kept, StructMapping
from laminae.state.rules import Rule
from laminae.state.types import Field, Leaf, Struct, Type, struct

if TYPE_CHECKING:
    from laminae.state.checkpoint.report import CheckReport

LONG, TEXT, BINARY = Leaf("long"), Leaf("string"), Leaf("binary")
KEY = struct(("id", LONG))


def operator(name: str, value: Struct, key: Struct = KEY, *variables: Variable, family: str = "default") -> Operator:
    store = Store("default", 2, (Family(family, key, value),), ("schema",))
    return Operator(0, name, (store,), "v1", "metadata", variables)


def checkpoint(one: Operator, **settings: str) -> Checkpoint:
    named = {PROVIDER: ROCKSDB, **settings}
    return Checkpoint("c", "q", 3, (), tuple(named.items()), (one,), has_store_ids=False)


def judged(old: Checkpoint, new: Operator, *aggregates: Aggregate, ran: tuple[Aggregate, ...] | None = None, **assumed: bool) -> CheckReport:  # fmt: skip  # noqa: E501
    note = None if ran is None else QueryNote(((0, ran),))
    return check(old, Planned((new,), QueryNote(((0, aggregates),))), note, Assumptions(**assumed))


def rules(report: CheckReport) -> list[Rule]:
    return [one.rule for one in report.reasons]


def summed(column: str, kind: Type = LONG) -> Aggregate:
    first = row_encoder(struct(("v", kind)))((None,))
    return Aggregate(f"sum({column})", "Sum", (Field("sum", kind),), (kind,), (first,))


def collected(element: Type) -> Aggregate:
    return Aggregate("collect_list(m)", "CollectList", (Field("buf", BINARY),), (element,))


def sums(*names: str) -> tuple[Aggregate, ...]:
    return tuple(map(summed, names))


def values(*aggregates: Aggregate) -> Struct:
    return Struct(tuple(field for one in aggregates for field in one.buffers))


SUM = values(summed("c"))


def test_one_sum_that_stays_is_compatible_as_it_is() -> None:
    one = operator("stateStoreSave", SUM)
    assert judged(checkpoint(one), one, summed("c")).kind == "compatible_as_is"


def test_a_sum_beside_another_is_not_taken_for_it() -> None:
    old, two = operator("stateStoreSave", SUM), sums("d", "c")
    new = operator("stateStoreSave", values(*two))
    assert rules(judged(checkpoint(old), new, *two)) == [Rule.AGGREGATES_CHANGED]
    assert rules(judged(checkpoint(old), new, *two, ran=sums("c"))) == [Rule.AGGREGATES_CHANGED]
    report = judged(checkpoint(old), new, *two, ran=sums("c"), add_aggregates=True)
    assert report.reasons == ()
    assert any("sum(d) is new and starts empty" in note for note in report.notes)
    mapping = report.families[0].value.mapping
    assert isinstance(mapping, StructMapping)
    assert [type(source) for source in mapping.sources] == [Filled, Kept]


def test_moved_sums_are_told_apart_by_the_query_as_it_ran() -> None:
    one = operator("stateStoreSave", values(*sums("a", "b")))
    assert rules(judged(checkpoint(one), one, *sums("b", "a"))) == [Rule.AGGREGATES_UNKNOWN]
    report = judged(checkpoint(one), one, *sums("b", "a"), ran=sums("a", "b"))
    assert report.families[0].value.mapping == StructMapping((Kept(1), Kept(0)))
    vouched = judged(checkpoint(one), one, *sums("a", "b"), same_aggregates=True)
    assert vouched.kind == "compatible_as_is"
    assert any("--same-aggregates" in note for note in vouched.notes)


def test_an_aggregate_that_is_gone_is_refused() -> None:
    old, new = operator("stateStoreSave", values(*sums("a", "b"))), operator("stateStoreSave", SUM)
    assert rules(judged(checkpoint(old), new, *sums("a"), ran=sums("a", "b"))) == [Rule.AGGREGATES_CHANGED]


def test_a_collection_is_opaque_until_its_elements_are_known() -> None:
    one = operator("stateStoreSave", struct(("buf", BINARY)))
    grown = collected(struct(("b", TEXT), ("a", LONG)))
    assert rules(judged(checkpoint(one), one, grown)) == [Rule.BUFFER_OPAQUE]
    report = judged(checkpoint(one), one, grown, ran=(collected(struct(("a", LONG))),))
    assert report.kind == "compatible_after_migration"
    assert "value.buf.elements.element.b" in {line.path for line in report.families[0].fields}


def test_an_opaque_buffer_of_another_input_is_refused() -> None:
    one = operator("stateStoreSave", struct(("buf", BINARY)))
    sketch, wider = (Aggregate("p(x)", "Percentile", (Field("buf", BINARY),), (kind,)) for kind in (LONG, TEXT))
    assert judged(checkpoint(one), one, sketch, ran=(sketch,)).kind == "compatible_as_is"
    assert rules(judged(checkpoint(one), one, wider, ran=(sketch,))) == [Rule.BUFFER_OPAQUE]


def test_a_note_about_a_query_comes_back_from_its_bytes() -> None:
    note = QueryNote(((0, (summed("c"), collected(struct(("a", LONG))))),))
    again = QueryNote.from_bytes(note.to_bytes())
    assert again is not None
    assert [one.text for one in again.of(0)] == ["sum(c)", "collect_list(m)"]
    assert again.of(0)[1].is_opaque
    assert QueryNote.from_bytes(b'{"version": 99}') is None


NESTED = struct(("id", LONG), ("m", struct(("x", LONG))))
GROWN = struct(("m", struct(("y", TEXT), ("x", LONG))), ("id", LONG))
ADDED = struct(*KEY.fields, ("more", TEXT))


@pytest.mark.parametrize(
    ("name", "old", "new", "expected"),
    [
        ("stateStoreSave", NESTED, GROWN, []),
        ("stateStoreSave", KEY, ADDED, [Rule.KEY_CHANGED]),
        ("dedupe", NESTED, GROWN, []),
        ("dedupe", KEY, ADDED, []),
        ("dedupe", KEY, struct(("who", LONG)), [Rule.FIELD_RENAMED]),
        ("symmetricHashJoin", NESTED, GROWN, [Rule.KEY_CHANGED]),
        ("transformWithStateExec", KEY, struct(("id", TEXT)), [Rule.KEY_CHANGED]),
    ],
)
def test_keys_may_change_where_rows_can_be_found_again(
    name: str, old: Struct, new: Struct, expected: list[Rule]
) -> None:
    before, after = operator(name, SUM, old), operator(name, SUM, new)
    assert rules(judged(checkpoint(before), after, summed("c"))) == expected


@pytest.mark.parametrize(
    ("name", "settings", "rule"),
    [
        ("flatMapGroupsWithState", {}, Rule.FORMAT_REFUSED),
        ("symmetricHashJoin", {JOIN_FORMAT: "4"}, Rule.FORMAT_REFUSED),
        ("dedupe", {ENCODING: "avro"}, Rule.FORMAT_REFUSED),
        ("dedupe", {ROW_CHECKSUM: "true"}, Rule.FORMAT_REFUSED),
        ("dedupe", {PROVIDER: "com.example.Store"}, Rule.PROVIDER_REFUSED),
    ],
)
def test_what_cannot_be_rewritten_is_refused_by_name(name: str, settings: dict[str, str], rule: Rule) -> None:
    one = operator(name, SUM)
    assert rules(judged(checkpoint(one, **settings), one)) == [rule]


def test_an_hdfs_backed_store_is_said_to_become_rocksdb() -> None:
    one = operator("dedupe", SUM)
    assert any("RocksDB" in note for note in judged(checkpoint(one, **{PROVIDER: HDFS}), one).notes)


def test_operators_partitions_and_metadata_must_be_the_same() -> None:
    one = operator("dedupe", SUM)
    assert rules(judged(checkpoint(one), operator("dedupeWithinWatermark", SUM))) == [Rule.OPERATORS_CHANGED]
    spread = replace(one, stores=(replace(one.stores[0], partitions=5),))
    assert rules(judged(checkpoint(one), spread)) == [Rule.PARTITIONS_CHANGED]
    assert rules(judged(checkpoint(one), replace(one, metadata_format="v2"))) == [Rule.FORMAT_REFUSED]


def test_state_variables_stay_what_they_are() -> None:
    name, value = "transformWithStateInPySparkExec", Variable("v", "ValueState", has_ttl=False)
    old = operator(name, SUM, KEY, value, family="v")
    gone = operator(name, SUM, KEY, family="other")
    changed = operator(name, SUM, KEY, replace(value, kind="ListState"), family="v")
    more = operator(name, SUM, KEY, value, Variable("n", "MapState", has_ttl=True), family="v")
    assert rules(judged(checkpoint(old), gone)) == [Rule.VARIABLE_REMOVED]
    assert rules(judged(checkpoint(old), changed)) == [Rule.VARIABLE_CHANGED]
    assert judged(checkpoint(old), more).notes[-1].endswith("n is new and starts empty")


def test_a_report_is_told_to_a_machine() -> None:
    old, new = operator("dedupe", SUM), operator("dedupe", struct(("note", TEXT), ("sum", LONG)))
    report = judged(checkpoint(old), new)
    told = report.to_dict()
    assert told["kind"] == "compatible_after_migration"
    assert told["stores"][0]["fields"][1] == {"path": "value.note", "origin": "new, NULL"}
    assert "value.note: new, NULL" in report.changed()
