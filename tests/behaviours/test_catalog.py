"""What every catalog does with sources and their versions."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from laminae.catalog.model import HistoryRow, WatermarkRecord
from laminae.catalog.updates import PutSetting, RecordVerdict, SetPosition, SetSourceOptions
from laminae.errors import ConcurrentChange, DuplicateObject, InvalidName, UnknownObject
from laminae.schema.change import HistoryChange
from laminae.schema.evolvable import EvolutionTrigger
from tests.support.catalogs import (
    NOON,
    SECOND,
    create,
    drop,
    evolve,
    live,
    made,
    propose,
    resolve,
    sink,
    view,
)

if TYPE_CHECKING:
    from laminae.catalog import Catalog

HOSTILE = ["'; DROP TABLE sources; --", 'quo"te', "back\\slash", "naïve Ünïcode 表 🦆", "per%cent %s", "que?stion", " "]


def test_an_empty_catalog_holds_nothing(catalog: Catalog) -> None:
    assert catalog.definition_seq() == 0
    assert catalog.last_epoch() == 0
    assert catalog.sources() == catalog.views() == catalog.sinks() == catalog.history() == catalog.pending() == ()
    assert catalog.settings() == {}
    assert catalog.lease() is None
    assert catalog.source("orders") is None
    assert catalog.view("orders") is None
    assert catalog.sink("orders") is None


def test_a_created_source_is_read_back_as_declared(catalog: Catalog) -> None:
    wanted = replace(
        create("Orders", "id", "ts", options=(("connector", "push"), ("format", "json"))),
        primary_key=(1, 2),
        watermark=WatermarkRecord(2, 5_000_000),
    )
    committed = catalog.commit([wanted])
    source = live(catalog, "Orders")
    assert committed.ids == (source.id,)
    assert committed.definition_seq == source.definition_seq == catalog.definition_seq() == 1
    assert (source.name, source.version, source.next_column_id) == ("Orders", 1, 3)
    assert source.schema.equals(wanted.schema, check_metadata=True)
    assert source.options == wanted.options
    assert source.primary_key == (1, 2)
    assert source.watermark == WatermarkRecord(2, 5_000_000)
    assert source.created_at == NOON
    assert source.last_verdict is None
    assert catalog.sources() == (source,)


def test_version_one_is_the_schema_at_create(catalog: Catalog) -> None:
    source = made(catalog)
    (version,) = catalog.versions(source.id)
    assert (version.version, version.trigger, version.forced, version.position) == (1, "Created", False, None)
    assert version.applied_at == NOON
    assert version.schema is source.schema


def test_a_new_version_is_current_and_the_old_one_stays(catalog: Catalog) -> None:
    source = made(catalog)
    update = replace(evolve(source, "price"), forced=True, schema_id=7, registry_version=2)
    assert catalog.commit([update]).ids == (2,)
    evolved = live(catalog)
    assert (evolved.version, evolved.next_column_id, evolved.schema.names) == (2, 3, ["id", "price"])
    assert evolved.definition_seq == 2
    first, second = catalog.versions(source.id)
    assert first.schema.names == ["id"]
    assert (second.forced, second.schema_id, second.registry_version, second.compatibility) == (True, 7, 2, "BACKWARD")


def test_history_has_one_row_per_change_in_the_order_of_the_diff(catalog: Catalog) -> None:
    source = made(catalog)
    changes = (
        HistoryChange("ColumnRenamed", "key", old_name="id"),
        HistoryChange("ColumnAdded", "a.b", None, "DECIMAL(9, 2)", None, "0.00"),
    )
    catalog.commit([replace(evolve(source, "x"), history=changes, trigger=EvolutionTrigger.DDL)])
    at = NOON + SECOND
    assert catalog.history("orders") == (
        HistoryRow(
            "orders", 1, "ColumnAdded", "id", None, "BIGINT", None, None, "Created", None, None, "NONE", False, NOON
        ),
        HistoryRow("orders", 2, *changes[0], "Ddl", None, None, "BACKWARD", False, at),
        HistoryRow("orders", 2, *changes[1], "Ddl", None, None, "BACKWARD", False, at),
    )


def test_of_two_changes_to_one_version_the_second_is_refused(catalog: Catalog) -> None:
    source = made(catalog)
    catalog.commit([evolve(source, "mine")])
    with pytest.raises(ConcurrentChange) as refused:
        catalog.commit([evolve(source, "yours")])
    assert refused.value.params == {"name": "orders", "expected": 1, "found": 2}
    assert live(catalog).schema.names == ["id", "mine"]


def test_a_dropped_source_takes_no_version(catalog: Catalog) -> None:
    source = made(catalog)
    catalog.commit([drop("source", source.id)])
    with pytest.raises(ConcurrentChange, match="dropped"):
        catalog.commit([evolve(source, "late")])


def test_one_failed_update_undoes_the_whole_commit(catalog: Catalog) -> None:
    source = made(catalog)
    updates = [create("other"), view("v"), sink("k"), PutSetting("a", "1"), propose(source), evolve(source, "x")]
    with pytest.raises(ConcurrentChange):
        catalog.commit([*updates, replace(evolve(source, "y"), expected_version=7)])
    assert catalog.sources() == (source,)
    assert catalog.views() == catalog.sinks() == catalog.pending() == ()
    assert catalog.settings() == {}
    assert catalog.definition_seq() == 1
    assert len(catalog.history()) == 1
    assert catalog.commit(updates).ids[0] == source.id + 1


def test_a_commit_of_several_definitions_is_one_step_of_the_definition_seq(catalog: Catalog) -> None:
    assert catalog.commit([create("a"), create("b"), PutSetting("c", "1")]).definition_seq == 1
    assert {source.definition_seq for source in catalog.sources()} == {1}


def test_what_no_plan_depends_on_leaves_the_definition_seq(catalog: Catalog) -> None:
    source = made(catalog)
    change_id = catalog.commit([RecordVerdict(source.id, "Compatible"), propose(source)]).ids[1]
    catalog.commit([resolve(source, change_id), SetPosition(source.id, 1, "p")])
    assert catalog.commit([]).definition_seq == catalog.definition_seq() == live(catalog).definition_seq == 1


def test_a_commit_can_insist_that_no_definition_has_changed(catalog: Catalog) -> None:
    made(catalog)
    with pytest.raises(ConcurrentChange):
        catalog.commit([create("late")], expected_seq=0)
    assert catalog.commit([create("in_time")], expected_seq=1).definition_seq == 2


@pytest.mark.parametrize("taken", [create("Taken"), view("Taken"), sink("Taken")], ids=["source", "view", "sink"])
@pytest.mark.parametrize("wanted", [create("tAKEN"), view("tAKEN"), sink("tAKEN")], ids=["source", "view", "sink"])
def test_a_name_is_taken_for_all_kinds_whatever_its_case(catalog: Catalog, taken, wanted) -> None:
    catalog.commit([taken])
    with pytest.raises(DuplicateObject, match="named Taken"):
        catalog.commit([wanted])


def test_two_objects_of_one_commit_cannot_share_a_name(catalog: Catalog) -> None:
    with pytest.raises(DuplicateObject):
        catalog.commit([create("a"), view("A")])
    assert catalog.sources() == ()


@pytest.mark.parametrize("spelling", ["straße", "STRASSE", "Straße"])
def test_a_name_is_found_in_any_spelling(catalog: Catalog, spelling: str) -> None:
    made(catalog, "Straße")
    assert live(catalog, spelling).name == "Straße"
    assert catalog.history(spelling)[0].source_name == "Straße"


@pytest.mark.parametrize("name", ["", "a\x00b", "half \ud800", "x" * 256], ids=["empty", "nul", "surrogate", "long"])
def test_a_name_that_cannot_be_kept_is_refused_and_never_found(catalog: Catalog, name: str) -> None:
    with pytest.raises(InvalidName):
        catalog.commit([create(name)])
    assert catalog.source(name) is None
    assert catalog.history(name) == ()


@pytest.mark.parametrize("text", HOSTILE)
def test_names_and_values_are_never_read_as_sql(catalog: Catalog, text: str) -> None:
    source = made(catalog, text, text)
    catalog.commit([SetSourceOptions(source.id, text, 1, ((text, text),)), PutSetting(text, text)])
    catalog.commit([RecordVerdict(source.id, text), propose(live(catalog, text), text)])
    found = live(catalog, text)
    assert (found.name, found.options, found.last_verdict, found.schema.names) == (text, ((text, text),), text, [text])
    assert catalog.settings() == {text: text}
    assert catalog.pending()[0].fingerprint == text
    assert catalog.history(text)[0].column_name == text


def test_hostile_characters_in_what_people_read_do_not_stop_a_commit(catalog: Catalog) -> None:
    source = made(catalog)
    catalog.commit([RecordVerdict(source.id, "value \x00 \udcff"), evolve(source, "nul\x00")])
    assert live(catalog).last_verdict == "value \N{REPLACEMENT CHARACTER} ?"
    assert live(catalog).schema.names == ["id", "nul\x00"]


def test_options_keep_any_character(catalog: Catalog) -> None:
    options = (("a", "nul \x00, half \ud800"), ("b", ""))
    catalog.commit([create("orders", options=options)])
    assert live(catalog).options == options


def test_a_source_created_again_has_a_new_id_and_a_fresh_history(catalog: Catalog) -> None:
    first = made(catalog)
    catalog.commit([evolve(first, "old")])
    assert len(catalog.history("orders")) == 2
    catalog.commit([drop("source", first.id)])
    assert catalog.source("orders") is None
    assert catalog.history("orders") == catalog.history() == ()
    second = made(catalog, "ORDERS", "key")
    assert second.id != first.id
    assert (second.version, second.schema.names) == (1, ["key"])
    assert [(row.source_name, row.column_name) for row in catalog.history("orders")] == [("ORDERS", "key")]
    assert len(catalog.versions(first.id)) == 2


def test_what_is_dropped_already_cannot_be_dropped(catalog: Catalog) -> None:
    source = made(catalog)
    catalog.commit([drop("source", source.id)])
    for kind in ("source", "view", "sink"):
        with pytest.raises(ConcurrentChange):
            catalog.commit([drop(kind, source.id)])


def test_history_of_all_sources_is_ordered_by_name_then_version(catalog: Catalog) -> None:
    made(catalog, "zebra")
    ant = made(catalog, "ant")
    catalog.commit([evolve(ant, "x")])
    assert [(row.source_name, row.version) for row in catalog.history()] == [("ant", 1), ("ant", 2), ("zebra", 1)]


def test_options_are_replaced_only_where_they_were_read(catalog: Catalog) -> None:
    source = made(catalog)
    catalog.commit([SetSourceOptions(source.id, "orders", source.definition_seq, (("a", "1"),))])
    with pytest.raises(ConcurrentChange):
        catalog.commit([SetSourceOptions(source.id, "orders", source.definition_seq, (("a", "2"),))])
    assert live(catalog).options == (("a", "1"),)
    assert live(catalog).definition_seq == 2


def test_a_version_and_options_of_one_commit_do_not_conflict(catalog: Catalog) -> None:
    source = made(catalog)
    options = SetSourceOptions(source.id, "orders", source.definition_seq, (("a", "1"),))
    catalog.commit([evolve(source, "x"), options])
    assert (live(catalog).version, live(catalog).options) == (2, (("a", "1"),))
    stale = SetSourceOptions(source.id, "orders", source.definition_seq, (("a", "2"),))
    with pytest.raises(ConcurrentChange):
        catalog.commit([evolve(live(catalog), "y"), stale])


def test_a_verdict_on_no_source_is_refused(catalog: Catalog) -> None:
    with pytest.raises(UnknownObject):
        catalog.commit([RecordVerdict(99, "Compatible")])


def test_a_position_is_set_once(catalog: Catalog) -> None:
    source = made(catalog)
    catalog.commit([SetPosition(source.id, 1, "first")])
    catalog.commit([SetPosition(source.id, 1, "second")])
    assert catalog.versions(source.id)[0].position == "first"
    with pytest.raises(UnknownObject):
        catalog.commit([SetPosition(source.id, 2, "p")])


def test_times_are_kept_to_the_microsecond_in_utc(catalog: Catalog) -> None:
    berlin = datetime(2026, 7, 1, 14, 0, 0, 1, tzinfo=timezone(timedelta(hours=2)))
    catalog.commit([replace(create("orders"), applied_at=berlin)])
    created_at = live(catalog).created_at
    assert created_at == berlin
    assert created_at.utcoffset() == timedelta(0)


def test_a_time_without_a_zone_is_refused(catalog: Catalog) -> None:
    with pytest.raises(ValueError, match="aware"):
        catalog.commit([replace(create("orders"), applied_at=datetime(2026, 1, 1))])
    assert catalog.sources() == ()


def test_nested_types_and_metadata_survive_storage(catalog: Catalog) -> None:
    inner = pa.struct([pa.field("n", pa.decimal128(9, 2), nullable=False, metadata={"laminae:id": "3"})])
    schema = pa.schema(
        [
            pa.field("s", pa.list_(inner), metadata={"laminae:id": "1", "laminae:default": "null"}),
            pa.field("t", pa.timestamp("us", "UTC")),
            pa.field("m", pa.map_(pa.string(), pa.large_binary())),
        ],
        metadata={"k": "v"},
    )
    catalog.commit([replace(create("orders"), schema=schema)])
    assert live(catalog).schema.equals(schema, check_metadata=True)
