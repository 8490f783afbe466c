"""Schema ids that a source meets: what the registry says of them, what the source takes on, and what is bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from laminae import sql as ddl
from laminae.engine.engine import Engine
from laminae.engine.writer_schemas import registry as subjects
from laminae.engine.writer_schemas.binding import SubjectFinder, WriterSchemaBinder, as_of
from laminae.errors import EvolutionRejected, InvalidOption, RegistryUnavailable
from laminae.registry import RegistryClient, RegistrySettings, Retry
from laminae.schema.column import columns_of
from tests.support.registry_double import Registry, avro_field

if TYPE_CHECKING:
    from laminae.catalog import Catalog
    from laminae.catalog.model import SourceRecord, WriterRecord

SUBJECT = "orders-value"
ID, AMOUNT = avro_field("id"), avro_field("amount", "int")
NOTE = avro_field("note", ["null", "string"], default=None)
CREATE = "CREATE SOURCE orders {} WITH (connector = 'kafka', topic = 'orders', format = 'avro', registry = '{}'{})"


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    made = Registry()
    client = RegistryClient(RegistrySettings("http://registry", "orders"), made, Retry(attempts=1))
    monkeypatch.setattr(subjects, "client_of", lambda options, owner: client)
    return made


@pytest.fixture
def engine(catalog: Catalog) -> Engine:
    return Engine(catalog, {"registry": SubjectFinder(catalog)})


@pytest.fixture
def writers(catalog: Catalog, engine: Engine) -> WriterSchemaBinder:
    return WriterSchemaBinder(catalog, engine)


def create(engine: Engine, columns: str = "", more: str = "") -> SourceRecord:
    run(engine, CREATE.format(columns, "http://registry", more))
    return engine.source("orders")


def run(engine: Engine, text: str) -> None:
    for statement in ddl.parse(text):
        engine.run(statement)  # type: ignore[arg-type]  # these are definitions


def shown(engine: Engine) -> list[tuple[str, str]]:
    return [(field.name, str(field.type)) for field in engine.source("orders").schema]


def bindings(catalog: Catalog, engine: Engine) -> dict[int, WriterRecord]:
    return {each.schema_id: each for each in as_of(catalog.writers(engine.source("orders").id))}


def test_a_source_without_columns_has_those_of_its_subject(
    catalog: Catalog, engine: Engine, registry: Registry
) -> None:
    registry.put(SUBJECT, ID)
    newest = registry.put(SUBJECT, ID, AMOUNT)
    registry.level = "FULL"
    source = create(engine)
    assert shown(engine) == [("id", "int64"), ("amount", "int32")]
    assert dict(source.options)["compatibility"] == "FULL"
    assert [(each.schema_id, each.applied) for each in catalog.writers(source.id)] == [(newest, True)]


def test_declared_columns_need_no_registry_when_they_are_declared(engine: Engine, registry: Registry) -> None:
    registry.is_away = True
    source = create(engine, "(id BIGINT)")
    assert "compatibility" not in dict(source.options)
    with pytest.raises(RegistryUnavailable):
        run(engine, CREATE.replace("orders", "others", 1).format("", "http://registry", ""))


def test_added_widened_and_renamed_columns_evolve_the_source(
    catalog: Catalog, engine: Engine, writers: WriterSchemaBinder, registry: Registry
) -> None:
    registry.put(SUBJECT, ID, AMOUNT)
    create(engine)
    for fields in ([ID, AMOUNT, NOTE], [ID, avro_field("total", "long", aliases=["amount"]), NOTE]):
        writers.meet("orders", registry.put(SUBJECT, *fields))
    assert shown(engine) == [("id", "int64"), ("total", "int64"), ("note", "string")]
    history = [
        (row.change_type, row.column_name, row.trigger, row.registry_version) for row in catalog.history("orders")
    ]
    assert history[2:] == [
        ("ColumnAdded", "note", "Registry", 2),
        ("ColumnRenamed", "total", "Registry", 3),
        ("TypeWidened", "total", "Registry", 3),
    ]
    first, *_, last = columns_of(bindings(catalog, engine)[3].columns)
    assert (first.id, last.id) == (1, 3)


def test_an_older_id_only_adds_a_decoder(
    catalog: Catalog, engine: Engine, writers: WriterSchemaBinder, registry: Registry
) -> None:
    oldest = registry.put(SUBJECT, avro_field("number"), AMOUNT, avro_field("gone"))
    registry.put(SUBJECT, avro_field("id", aliases=["number"]), AMOUNT)
    create(engine)
    writers.meet("orders", oldest)
    assert engine.source("orders").version == 1
    ids = [node.id for node in columns_of(bindings(catalog, engine)[oldest].columns)]
    assert ids == [1, 2, None]


def test_an_incompatible_schema_is_kept_out_by_policy(
    catalog: Catalog, engine: Engine, writers: WriterSchemaBinder, registry: Registry
) -> None:
    registry.put(SUBJECT, ID, AMOUNT)
    create(engine)
    bad = registry.put(SUBJECT, ID, avro_field("amount", "string"), NOTE)
    writers.meet("orders", bad)
    assert engine.source("orders").version == 1
    found = bindings(catalog, engine)[bad]
    assert not found.applied
    assert "amount is INT here" in str(found.refusal)
    # What comes next is judged against what the source has taken, not against what it refused.
    good = registry.put(SUBJECT, ID, AMOUNT, NOTE)
    writers.meet("orders", good)
    assert shown(engine) == [("id", "int64"), ("amount", "int32"), ("note", "string")]


def test_new_columns_that_are_not_taken_are_ignored_dead_letters_or_the_end(
    catalog: Catalog, engine: Engine, writers: WriterSchemaBinder, registry: Registry
) -> None:
    registry.put(SUBJECT, ID, AMOUNT)
    create(engine)
    strict = registry.put(SUBJECT, ID, AMOUNT, avro_field("needed", "string"))
    writers.meet("orders", strict)
    assert bindings(catalog, engine)[strict].refusal is None
    run(engine, "ALTER SOURCE orders SET (on_rejected = 'dead_letter')")
    writers.meet("orders", strict)
    assert "was not accepted" in str(bindings(catalog, engine)[strict].refusal)
    run(engine, "ALTER SOURCE orders SET (on_rejected = 'stop')")
    with pytest.raises(EvolutionRejected):
        writers.meet("orders", strict)


def test_an_id_of_another_subject_or_of_none_is_refused_with_its_reason(
    catalog: Catalog, engine: Engine, writers: WriterSchemaBinder, registry: Registry
) -> None:
    registry.put(SUBJECT, ID)
    create(engine)
    other = registry.put("others-value", ID, AMOUNT)
    for schema_id in (other, 999):
        writers.meet("orders", schema_id)
        assert "has no schema of id" in str(bindings(catalog, engine)[schema_id].refusal)
    assert engine.source("orders").version == 1


def test_a_registry_that_is_away_binds_nothing(
    catalog: Catalog, engine: Engine, writers: WriterSchemaBinder, registry: Registry
) -> None:
    registry.put(SUBJECT, ID)
    create(engine)
    later = registry.put(SUBJECT, ID, NOTE)
    registry.is_away = True
    with pytest.raises(RegistryUnavailable):
        writers.meet("orders", later)
    assert later not in bindings(catalog, engine)
    registry.is_away = False
    writers.meet("orders", later)
    asked = registry.asked
    writers.meet("orders", later)
    assert registry.asked == asked


def test_columns_that_the_source_was_not_given_stay_out_and_new_ones_come_in(
    engine: Engine, writers: WriterSchemaBinder, registry: Registry
) -> None:
    first = registry.put(SUBJECT, ID, AMOUNT)
    create(engine, "(id BIGINT)")
    writers.meet("orders", first)
    assert shown(engine) == [("id", "int64")]
    writers.meet("orders", registry.put(SUBJECT, ID, AMOUNT, NOTE))
    assert shown(engine) == [("id", "int64"), ("note", "string")]


def test_refresh_takes_the_newest_schema_of_the_subject(engine: Engine, registry: Registry) -> None:
    registry.put(SUBJECT, ID)
    create(engine)
    registry.put(SUBJECT, ID, NOTE)
    run(engine, "ALTER SOURCE orders REFRESH SCHEMA")
    assert shown(engine) == [("id", "int64"), ("note", "string")]


@pytest.mark.parametrize(
    ("options", "subject"),
    [
        ("subject_strategy = 'RecordName'", "shop.Order"),
        ("subject_strategy = 'TopicRecordName'", "orders-shop.Order"),
        ("subject = 'mine'", "mine"),
    ],
)
def test_a_subject_is_named_by_a_strategy_or_given(
    catalog: Catalog, engine: Engine, writers: WriterSchemaBinder, registry: Registry, options: str, subject: str
) -> None:
    schema_id = registry.put(subject, ID, name="shop.Order")
    create(engine, "(id BIGINT)", f", compatibility = 'BACKWARD', {options}")
    writers.meet("orders", schema_id)
    assert bindings(catalog, engine)[schema_id].refusal is None


def test_a_subject_that_nothing_tells_is_asked_for(engine: Engine, registry: Registry) -> None:
    with pytest.raises(InvalidOption, match="subject"):
        create(engine, "", ", subject_strategy = 'RecordName'")


def test_a_schema_with_a_former_name_is_of_the_column_that_has_another_by_now(
    catalog: Catalog, engine: Engine, writers: WriterSchemaBinder, registry: Registry
) -> None:
    first = registry.put(SUBJECT, ID, AMOUNT)
    create(engine, "(id BIGINT NOT NULL, amount INT)")
    run(engine, "ALTER SOURCE orders RENAME COLUMN amount TO cents")
    writers.meet("orders", first)
    assert shown(engine) == [("id", "int64"), ("cents", "int32")]
    bound = bindings(catalog, engine)[first].columns
    assert bound.names == ["id", "amount"]
    assert [node.id for node in columns_of(bound)] == [node.id for node in columns_of(engine.source("orders").schema)]
