"""Many processes that change one source at once: every version is one writer's, and no writer is lost."""

from __future__ import annotations

import multiprocessing
from contextlib import suppress
from typing import TYPE_CHECKING

from laminae.errors import ConcurrentChange, DuplicateObject
from tests.support.catalogs import create, evolve, live

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from multiprocessing.synchronize import Barrier

    from tests.support.catalogs import CatalogPlace

WRITERS, VERSIONS_EACH = 8, 50
START_SECONDS = 120

Acknowledged = list[tuple[int, str]]


def write_versions(place: CatalogPlace, writer: int, together: Barrier, answer: Connection) -> None:
    """Add columns until this writer has added its own; answers with what it was told, and how often it lost."""
    together.wait(START_SECONDS)
    with place.opened() as catalog:
        with suppress(DuplicateObject):
            catalog.commit([create("orders")])
        together.wait(START_SECONDS)
        acknowledged: Acknowledged = []
        lost = 0
        while len(acknowledged) < VERSIONS_EACH:
            column = f"w{writer}_{len(acknowledged)}"
            try:
                (version,) = catalog.commit([evolve(live(catalog), column)]).ids
            except ConcurrentChange:
                lost += 1
            else:
                acknowledged.append((version, column))
        answer.send((acknowledged, lost))
    answer.close()


def test_of_many_concurrent_writers_none_is_lost_and_none_wins_twice(catalog_place: CatalogPlace) -> None:
    answers = run_writers(catalog_place, write_versions)
    told = {version: column for acknowledged, _ in answers for version, column in acknowledged}
    assert sorted(told) == list(range(2, WRITERS * VERSIONS_EACH + 2))
    assert sum(lost for _, lost in answers) > 0
    for acknowledged, _ in answers:
        assert acknowledged == sorted(acknowledged, key=lambda pair: pair[0])
    with catalog_place.opened() as catalog:
        source = live(catalog)
        assert source.version == source.definition_seq == WRITERS * VERSIONS_EACH + 1
        assert source.schema.names == ["id", *(told[version] for version in sorted(told))]
        assert {row.version: row.column_name for row in catalog.history("orders")} == {1: "id", **told}
        assert len(catalog.history("orders")) == source.version
        for number, version in enumerate(catalog.versions(source.id), 1):
            assert version.version == number
            assert version.schema.names == source.schema.names[:number]


def run_writers(place: CatalogPlace, work: Callable[..., None]) -> list[tuple[Acknowledged, int]]:
    context = multiprocessing.get_context("spawn")
    together = context.Barrier(WRITERS)
    pipes = [context.Pipe(duplex=False) for _ in range(WRITERS)]
    processes = [
        context.Process(target=work, args=(place, writer, together, sender)) for writer, (_, sender) in enumerate(pipes)
    ]
    try:
        for process, (_, sender) in zip(processes, pipes, strict=True):
            process.start()
            sender.close()
        # A writer that died raises EOFError here instead of leaving the test to wait.
        return [receiver.recv() for receiver, _ in pipes]
    except BaseException:
        for process in processes:
            if process.pid is not None:
                process.kill()
        raise
    finally:
        for process, (receiver, _) in zip(processes, pipes, strict=True):
            receiver.close()
            process.join()
            process.close()
