"""Ids that columns have outside are learned once, without a change of the schema that anybody sees."""

import pyarrow as pa
import pytest

from laminae.catalog import open_catalog
from laminae.engine.engine import Engine
from laminae.engine.ports import FoundSchema
from laminae.schema.column import columns_of
from laminae.schema.evolvable import Applied, EvolutionTrigger, NeedsConfirmation, NoChange
from laminae.sql import parse


@pytest.fixture
def engine(tmp_path):
    catalog = open_catalog(str(tmp_path / "home"))
    made = Engine(catalog)
    made.run(*parse("CREATE SOURCE s (id BIGINT, place STRUCT<city: STRING>) WITH (evolve = 'confirm')"))
    yield made
    catalog.close()


def numbered(schema, **numbers):
    fields = [
        field.with_metadata({**field.metadata, b"PARQUET:field_id": str(numbers[field.name]).encode()})
        if field.name in numbers
        else field
        for field in schema
    ]
    return FoundSchema(pa.schema(fields))


def test_new_ids_are_a_version_without_history_even_where_changes_wait(engine):
    found = numbered(engine.source("s").schema, id=1, place=2)
    result = engine.propose("s", found, EvolutionTrigger.DATA)
    assert isinstance(result, Applied)
    assert (result.version, result.changes) == (2, ())
    assert [node.external_id for node in columns_of(engine.source("s").schema)] == ["1", "2"]
    assert isinstance(engine.propose("s", found, EvolutionTrigger.DATA), NoChange)


def test_an_id_that_a_column_has_already_stays(engine):
    engine.propose("s", numbered(engine.source("s").schema, id=1), EvolutionTrigger.DATA)
    schema = engine.source("s").schema
    assert isinstance(engine.propose("s", numbered(schema, id=7), EvolutionTrigger.DATA), NoChange)
    assert columns_of(engine.source("s").schema)[0].external_id == "1"


def test_a_change_that_comes_with_new_ids_waits_with_them(engine):
    found = numbered(engine.source("s").schema.append(pa.field("late", pa.string())), id=1)
    result = engine.propose("s", found, EvolutionTrigger.DATA)
    assert isinstance(result, NeedsConfirmation)
    engine.run(*parse(f"ALTER SOURCE s CONFIRM CHANGE {result.change_id}"))
    assert [node.external_id for node in columns_of(engine.source("s").schema)] == ["1", None, None]
