"""When the registry of a source is asked for a schema that no record has yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.spark.driver.registry_poller import RegistryPoller
from tests.support.catalogs import create, live

if TYPE_CHECKING:
    from laminae.catalog import Catalog
    from laminae.catalog.model import Options, SourceRecord

FRAMED = (("connector", "kafka"), ("format", "avro"), ("registry", "http://registry"))


def source(catalog: Catalog, options: Options) -> SourceRecord:
    catalog.commit([create("orders", options=options)])
    return live(catalog)


def test_a_source_is_asked_about_at_once_and_then_as_often_as_it_wants(catalog: Catalog) -> None:
    now = 100.0
    polling, wanting = RegistryPoller(lambda: now), source(catalog, (*FRAMED, ("registry_poll", "10 seconds")))
    assert polling.is_due(wanting)
    assert not polling.is_due(wanting)
    now = 109.9
    assert not polling.is_due(wanting)
    now = 110.0
    assert polling.is_due(wanting)


def test_a_source_that_does_not_want_it_is_never_asked_about(catalog: Catalog) -> None:
    assert not RegistryPoller().is_due(source(catalog, FRAMED))


def test_nor_is_one_without_a_registry(catalog: Catalog) -> None:
    assert not RegistryPoller().is_due(source(catalog, (("connector", "kafka"), ("registry_poll", "1 second"))))
