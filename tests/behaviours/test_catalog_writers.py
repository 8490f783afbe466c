"""What every catalog keeps of the schemas that the records of a source were written with."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from laminae.catalog.updates import BindWriter
from tests.support.catalogs import columns, create, epoch, live, made

if TYPE_CHECKING:
    from laminae.catalog import Catalog

AVRO = '{"type": "record", "name": "Order", "fields": []}'


def writer(source_id: int, schema_id: int, refusal: str | None = None) -> BindWriter:
    return BindWriter(source_id, schema_id, 3, refusal is None, refusal, AVRO, columns("id"))


def test_what_an_id_stands_for_is_kept_whole(catalog: Catalog) -> None:
    source = made(catalog)
    seq = catalog.definition_seq()
    catalog.commit([writer(source.id, 7)])
    (found,) = catalog.writers(source.id)
    assert (found.schema_id, found.registry_version, found.applied, found.refusal) == (7, 3, True, None)
    assert found.avro == AVRO
    assert found.columns.equals(columns("id"), check_metadata=True)
    assert catalog.definition_seq() == seq


def test_what_is_bound_again_holds_for_later_epochs_alone(catalog: Catalog) -> None:
    source = made(catalog)
    catalog.commit([writer(source.id, 7, "it is not registered")])
    catalog.commit([epoch(source, 0)])
    catalog.commit([writer(source.id, 7, "another reason")])
    catalog.commit([writer(source.id, 7)])
    found = [(each.after_epoch, each.refusal) for each in catalog.writers(source.id)]
    assert found == [(0, "it is not registered"), (1, None)]


def test_a_source_is_created_with_the_schema_that_its_columns_come_from(catalog: Catalog) -> None:
    catalog.commit([replace(create("orders"), writer=writer(0, 7))])
    source = live(catalog)
    assert [each.schema_id for each in catalog.writers(source.id)] == [7]
    (version,) = catalog.versions(source.id)
    assert (version.schema_id, version.registry_version) == (7, 3)


def test_sources_have_schemas_of_their_own(catalog: Catalog) -> None:
    one, other = made(catalog, "one"), made(catalog, "other")
    catalog.commit([writer(one.id, 7)])
    assert catalog.writers(other.id) == ()
