"""How a source whose input says its own schema is followed, without running it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.engine.engine import Engine
from laminae.engine.ports import FoundSchema
from laminae.schema.evolvable import EvolutionTrigger
from laminae.spark.sources.protocol import LogRange
from laminae.spark.sources.registry import open_source

if TYPE_CHECKING:
    import laminae as lm


def followed(db: lm.Database, items: int) -> str | None:
    """What becomes of the schema of what source `s` has beyond its first so many items, as an epoch does it."""
    engine = Engine(db._catalog)
    source = engine.source("s")
    log = open_source(source, db.home).source
    outside = log.outside(LogRange(log.at(items), log.latest()))
    if outside is None:
        return None
    found = FoundSchema(outside.wanted(source.schema), outside.schema_id)
    return type(engine.propose("s", found, EvolutionTrigger.CATALOG_REFRESH)).__name__
