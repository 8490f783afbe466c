"""A source's options as typed values: defaults, what follows from them, and the tables that they are parsed with."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

import laminae as lm
from laminae.engine.options import SOURCE_OPTIONS, checked, register_connector, register_format
from laminae.engine.options.connectors import CONNECTORS, FORMATS, Connector, Format
from laminae.engine.options.rows import TEXT, OptionRow
from laminae.engine.source_spec import Changelog, Evolve, OnError, OnRejected, SourceSpec, parse_options
from laminae.errors import InvalidOption
from laminae.registry.subjects import SubjectStrategy
from laminae.schema.compatibility import CompatibilityMode, RuleSet

if TYPE_CHECKING:
    from pathlib import Path


def spec(**given: str) -> SourceSpec:
    return parse_options(tuple(sorted((name.replace("__", "."), value) for name, value in given.items())))


def test_a_source_without_options_has_the_defaults_of_the_table() -> None:
    plain = spec()
    assert (plain.connector.name, plain.format.name, plain.changelog) == ("push", "json", Changelog.APPEND)
    assert (plain.evolve, plain.on_rejected, plain.on_error) == (Evolve.OFF, OnRejected.IGNORE, OnError.DEAD_LETTER)
    assert (plain.max_new_columns, plain.dead_letter_limit, plain.hold_max_records) == (100, 1_000_000, 100_000)
    assert (plain.compatibility, plain.rules) == (CompatibilityMode.NONE, RuleSet.SEED)
    assert plain.accepts_old_names
    assert (plain.max_future, plain.idle_timeout, plain.version_field) == (None, None, None)


def test_equal_options_are_parsed_once() -> None:
    assert spec(connector="rate", rows_per_second="7") is spec(rows_per_second="7", connector="rate")


def test_debezium_json_is_a_changelog_of_events_with_inline_schemas() -> None:
    events = spec(format="debezium-json")
    assert events.changelog is Changelog.DEBEZIUM
    assert (events.is_debezium, events.keeps_table, events.brings_schemas, events.has_writers) == (True,) * 4
    assert (events.events.order, events.events.time_unit, events.events.decimal) == ("source.lsn", "micros", "base64")


def test_debezium_in_avro_has_writer_schemas_in_the_registry_alone() -> None:
    events = spec(connector="kafka", format="avro", changelog="debezium", registry="http://registry:8081")
    assert (events.is_framed, events.brings_schemas, events.has_writers) == (True, False, True)


def test_a_registry_brings_its_mode_subject_and_poll_interval() -> None:
    framed = spec(format="avro", registry="http://r:1", registry__timeout="3", topic="t", registry_poll="5 seconds")
    assert framed.compatibility is CompatibilityMode.BACKWARD
    assert dict(framed.registry.settings) == {"registry": "http://r:1", "registry.timeout": "3"}
    assert (framed.registry.strategy, framed.registry.topic) == (SubjectStrategy.TOPIC_NAME, "t")
    assert framed.registry.poll == timedelta(seconds=5)
    assert not spec(format="avro").registry.is_given


@pytest.mark.parametrize(
    ("given", "has_stamps", "by_log"),
    [
        ({}, True, True),
        ({"connector": "kafka"}, False, False),
        ({"connector": "kafka", "version_header": "v"}, True, True),
        ({"connector": "files", "version_field": "v"}, True, False),
    ],
)
def test_a_version_is_stamped_by_the_source_or_by_a_field_of_the_record(
    given: dict[str, str], has_stamps: bool, by_log: bool
) -> None:
    assert (spec(**given).has_stamps, spec(**given).is_stamped_by_log) == (has_stamps, by_log)


def test_lines_are_numbered_in_text_files_alone() -> None:
    assert spec(connector="files", format="csv").numbers_lines
    assert not spec(connector="files", format="parquet").numbers_lines
    assert not spec(connector="kafka").numbers_lines


def test_a_table_is_read_as_parquet_unless_the_option_says_otherwise() -> None:
    assert spec(connector="iceberg").format.name == "parquet"


def test_every_format_that_a_connector_carries_is_in_the_table_of_formats() -> None:
    assert {name for row in CONNECTORS.values() for name in row.formats} <= FORMATS.keys()


def test_a_connector_and_a_format_of_another_package_are_known_by_one_row_each() -> None:
    register_connector(Connector("pigeon", "loft:open", options={"loft": OptionRow(TEXT, None, "Where it lands")}))
    register_format(Format("note", "loft:read"), connectors=("pigeon",))
    try:
        given = checked([("connector", "pigeon"), ("format", "note"), ("loft", "roof")], SOURCE_OPTIONS, "s")
        parsed = parse_options(given)
        assert (parsed.connector.opener, parsed.connector.formats) == ("loft:open", ("json", "note"))
        assert (parsed.format.name, parsed.setting("loft")) == ("note", "roof")
        with pytest.raises(InvalidOption, match="registered already"):
            register_connector(Connector("pigeon", "loft:open"))
    finally:
        del CONNECTORS["pigeon"], FORMATS["note"], SOURCE_OPTIONS["loft"]
    with pytest.raises(InvalidOption, match="does not fit"):
        checked([("connector", "pigeon")], SOURCE_OPTIONS, "s")


def test_push_and_rate_write_json_whatever_format_an_older_home_names() -> None:
    for connector in ("push", "rate"):
        for name in ("csv", "parquet", "avro"):
            assert spec(connector=connector, format=name).format.name == "json"
    assert spec(connector="files", format="csv").format.name == "csv"


def test_a_connector_and_a_format_may_be_registered_after_a_source_that_names_them_was_parsed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    early = spec(connector="late", format="later")
    assert (early.connector.opener, early.format.opener) == ("", None)
    monkeypatch.setitem(CONNECTORS, "late", Connector("late", "module:opener", formats=("json", "later")))
    monkeypatch.setitem(FORMATS, "later", Format("later", "module:format"))
    assert (early.connector.opener, early.format.opener) == ("module:opener", "module:format")


def test_create_refuses_a_format_that_the_connector_would_ignore(tmp_path: Path) -> None:
    with (
        lm.connect(str(tmp_path / "home")) as db,
        pytest.raises(InvalidOption, match="connector push has no csv records"),
    ):
        db.sql("CREATE SOURCE s (id BIGINT) WITH (connector = 'push', format = 'csv')")
