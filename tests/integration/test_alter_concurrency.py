"""ALTER from many processes at once, through SQL: every version is one writer's, and a loser can try again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import laminae as lm
from laminae.errors import ConcurrentChange
from tests.integration.test_catalog_concurrency import START_SECONDS, VERSIONS_EACH, WRITERS, run_writers

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.synchronize import Barrier

    from tests.support.catalogs import CatalogPlace


def alter(place: CatalogPlace, writer: int, together: Barrier, answer: Connection) -> None:
    with lm.connect(place.home, catalog=place.url) as db:
        db.sql("SHOW SOURCES")
        together.wait(START_SECONDS)
        acknowledged: list[tuple[int, str]] = []
        lost = 0
        while len(acknowledged) < VERSIONS_EACH:
            column = f"w{writer}_{len(acknowledged)}"
            try:
                row = db.sql(f"ALTER SOURCE orders ADD COLUMN {column} INT").fetchone()
            except ConcurrentChange:
                lost += 1
            else:
                acknowledged.append((row[2], column))
        answer.send((acknowledged, lost))
    answer.close()


def test_of_many_concurrent_alters_none_is_lost_and_every_loser_is_told(catalog_place: CatalogPlace) -> None:
    with lm.connect(catalog_place.home, catalog=catalog_place.url) as db:
        db.sql("CREATE SOURCE orders (id BIGINT)")
    answers = run_writers(catalog_place, alter)
    told = {version: column for acknowledged, _ in answers for version, column in acknowledged}
    assert sorted(told) == list(range(2, WRITERS * VERSIONS_EACH + 2))
    assert sum(lost for _, lost in answers) > 0
    with lm.connect(catalog_place.home, catalog=catalog_place.url) as db:
        assert {row.version: row.column_name for row in db.history("orders")} == {1: "id", **told}
        assert db.schema("orders").names == ["id", *(told[version] for version in sorted(told))]
