"""Schemas that messages bring along: which are bound, what the source takes on of them, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from laminae import sql as ddl
from laminae.engine.engine import Engine
from laminae.engine.writer_schemas.binding import as_of
from laminae.engine.writer_schemas.inline import BEGIN, PAYLOAD, Heads, head_of, inline_columns
from laminae.schema.column import columns_of
from tests.support.debezium_events import connect_field, told

if TYPE_CHECKING:
    from laminae.catalog import Catalog

ID, N = connect_field("id", "int32"), connect_field("n", "int32")
CREATE = "CREATE SOURCE things (id INT NOT NULL, n INT, PRIMARY KEY (id)) WITH (format = 'debezium-json'{})"


@pytest.fixture
def engine(catalog: Catalog) -> Engine:
    return Engine(catalog, {})


@pytest.fixture
def heads(catalog: Catalog, engine: Engine) -> Heads:
    return Heads(catalog, engine)


def run(engine: Engine, text: str) -> None:
    for statement in ddl.parse(text):
        engine.run(statement)  # type: ignore[arg-type]  # these are definitions


def head(*fields: dict[str, object]) -> str:
    text = told(list(fields), "c", 1, {})
    return text[: text.index(PAYLOAD) + len(PAYLOAD)]


def shown(engine: Engine) -> list[tuple[str, str]]:
    return [(field.name, str(field.type)) for field in engine.source("things").schema]


def test_head_tells_the_columns_of_the_row():
    assert inline_columns(head(ID, N)).names == ["id", "n"]
    for text in (f"{BEGIN}null,{PAYLOAD}", f'{BEGIN}{{"type":"struct"}},{PAYLOAD}', f"{BEGIN}[,{PAYLOAD}", head(N, N)):
        assert inline_columns(text) is None


def test_columns_are_added_and_widened_and_none_is_dropped(catalog, engine, heads):
    run(engine, CREATE.format(", evolve = 'auto'"))
    wide, new = connect_field("n", "int64"), connect_field("new", "string")
    assert heads.meet("things", [head(ID, N), head(ID, wide, new), head(ID, new)]) == (1, 2, 3)
    assert shown(engine) == [("id", "int32"), ("n", "int64"), ("new", "string")]
    # One that is met again is the same, and takes nothing back.
    assert heads.meet("things", [head(ID, N)]) == (1,)
    assert engine.source("things").version == 2


def test_source_that_does_not_evolve_reads_what_it_has(catalog, engine, heads):
    run(engine, CREATE.format(""))
    heads.meet("things", [head(ID, N, connect_field("new", "string")), f"{BEGIN}null,{PAYLOAD}"])
    first, second = map(head_of, as_of(catalog.writers(engine.source("things").id)))
    assert (first.version, first.refusal, second.version) == (-1, None, None)
    assert shown(engine) == [("id", "int32"), ("n", "int32")]


def test_type_of_another_kind_refuses_the_head_until_it_is_confirmed(catalog, engine, heads):
    run(engine, CREATE.format(", evolve = 'auto'"))
    heads.meet("things", [head(ID, N), head(ID, connect_field("n", "boolean"))])
    source = engine.source("things")
    refused = as_of(catalog.writers(source.id))[1]
    assert "type of another kind" in (refused.refusal or "")
    (pending,) = catalog.pending(source.id)
    run(engine, f"ALTER SOURCE things CONFIRM CHANGE {pending.id}")
    heads.ask_again("things")
    bound = as_of(catalog.writers(source.id))[1]
    assert shown(engine) == [("id", "int32"), ("n", "bool")]
    assert (bound.refusal, bound.columns.field("n").metadata) == (
        None,
        engine.source("things").schema.field("n").metadata,
    )


def test_column_that_is_added_with_a_default_has_it_and_those_of_the_first_schema_have_none(catalog, engine, heads):
    run(engine, CREATE.format(", evolve = 'auto'"))
    first = connect_field("first", "int32", default=1)
    heads.meet("things", [head(ID, N, first), head(ID, N, first, connect_field("second", "int32", default=2))])
    found = {field.name: (field.metadata or {}).get(b"laminae:default") for field in engine.source("things").schema}
    assert found == {"id": None, "n": None, "first": None, "second": b"2"}


def test_column_renamed_here_first_is_the_one_that_comes_under_its_new_name(catalog, engine, heads):
    run(engine, CREATE.format(", evolve = 'auto'"))
    heads.meet("things", [head(ID, N)])
    run(engine, "ALTER SOURCE things RENAME COLUMN n TO m")
    heads.meet("things", [head(ID, connect_field("m", "int32"))])
    assert shown(engine) == [("id", "int32"), ("m", "int32")]
    old, new = as_of(catalog.writers(engine.source("things").id))
    assert old.columns.field("n").metadata == new.columns.field("m").metadata


def test_column_dropped_here_is_not_brought_back_by_a_schema_that_is_known(catalog, engine, heads):
    run(engine, CREATE.format(", evolve = 'auto'"))
    heads.meet("things", [head(ID, N, connect_field("gone", "string")), head(ID, N)])
    run(engine, "ALTER SOURCE things DROP COLUMN gone")
    heads.meet("things", [head(ID, N, connect_field("gone", "string"))])
    assert shown(engine) == [("id", "int32"), ("n", "int32")]


def test_a_message_with_a_former_name_is_of_the_column_that_has_another_by_now(catalog, engine, heads):
    run(engine, CREATE.format(", evolve = 'auto'"))
    run(engine, "ALTER SOURCE things RENAME COLUMN n TO pages")
    new = connect_field("new", "string")
    heads.meet("things", [head(ID, N), head(ID, connect_field("pages", "int32")), head(ID, N, new)])
    # One that comes late does not give the column its old name back.
    assert shown(engine) == [("id", "int32"), ("pages", "int32"), ("new", "string")]
    first, *others = [writer.columns for writer in as_of(catalog.writers(engine.source("things").id))]
    assert first.names == ["id", "n"]
    for other in others:
        assert [node.id for node in columns_of(other)][:2] == [node.id for node in columns_of(first)]


def test_a_former_name_is_a_new_column_where_these_are_not_accepted(catalog, engine, heads):
    run(engine, CREATE.format(", evolve = 'auto', accept_old_names = 'false'"))
    run(engine, "ALTER SOURCE things RENAME COLUMN n TO pages")
    heads.meet("things", [head(ID, N)])
    assert shown(engine) == [("id", "int32"), ("pages", "int32"), ("n", "int32")]
