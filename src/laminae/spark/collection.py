"""Carry out a collection: look at what is stored, ask what may go, forget it in the catalog, then remove the files.

In this order a crash leaves files that nobody names, which the next collection takes.
"""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from laminae.engine.collection import GRACE, Removal, SourceFacts, Stored, plan_collection
from laminae.spark.logs import open_log
from laminae.spark.logs.head import log_directory

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from laminae.catalog.model import EpochRecord, SavepointRecord, SourceRecord
    from laminae.catalog.port import Catalog
    from laminae.spark.contract import SourceLog
    from laminae.spark.storage import Storage

SEGMENTS = ("segments", "dead_letters", "snapshots")


def collect(catalog: Catalog, storage: Storage, now: datetime, dry_run: bool) -> tuple[Removal, ...]:
    """What went, or with `dry_run` would go."""
    removals: list[Removal] = []
    for source in catalog.sources():
        found = plan_collection(_facts(catalog, storage, source), now)
        removals += found.removals
        if not dry_run:
            if found.forgotten:
                catalog.commit(found.forgotten)
            if found.floor is not None:
                log_directory(source.name, source.id, str(storage.home)).raise_floor(found.floor)
    removals += _dropped(catalog, storage, now)
    if not dry_run:
        for removal in removals:
            _remove(storage.home / removal.path)
    return tuple(removals)


def _facts(catalog: Catalog, storage: Storage, source: SourceRecord) -> SourceFacts:
    place = Path("sources", str(source.id))
    folders = [place / kind for kind in SEGMENTS]
    stored = [each for folder in folders for each in _stored(storage.home, folder)]
    stored += [each for each in _stored(storage.home, place) if Path(each.path).name.startswith("checkpoint.")]
    epochs, savepoints = catalog.epochs(source.id), catalog.savepoints()
    log = open_log(source, str(storage.home))
    return SourceFacts(
        source=source,
        epochs=epochs,
        sinks=[sink for sink in catalog.sinks() if sink.relation.casefold() == source.name.casefold()],
        savepoints=savepoints,
        settings=catalog.settings(),
        stored=stored,
        items={int(Path(each.path).stem): each for each in _stored(storage.home, place / "log", "*.parquet")},
        places=_places(log, epochs, savepoints),
    )


def _places(log: SourceLog, epochs: Sequence[EpochRecord], savepoints: Sequence[SavepointRecord]) -> list[int]:
    """The items from which the source goes on, now and from each savepoint."""
    batches = [epoch for epoch in epochs if not epoch.is_replay]
    reached = [batches[-1:]]
    reached += [[epoch for epoch in batches if epoch.epoch <= savepoint.epoch][-1:] for savepoint in savepoints]
    return [log.item(last[0].end_offsets) if last else 0 for last in reached]


def _dropped(catalog: Catalog, storage: Storage, now: datetime) -> Iterator[Removal]:
    gone = {str(source_id) for source_id in catalog.dropped_sources()}
    for each in _stored(storage.home, Path("sources")):
        if Path(each.path).name in gone and now - each.modified > GRACE:
            yield Removal("dropped", Path(each.path).name, each.path, each.size)


def _stored(home: Path, folder: Path, pattern: str = "*") -> Iterator[Stored]:
    for path in sorted((home / folder).glob(pattern)):
        inside = [path, *(path.rglob("*") if path.is_dir() else ())]
        stats = [status for each in inside if (status := _status(each)) is not None]
        if stats:
            newest = max(status.st_mtime for status in stats)
            size = sum(status.st_size for status, each in zip(stats, inside, strict=False) if not each.is_dir())
            yield Stored(str(path.relative_to(home)), size, datetime.fromtimestamp(newest, UTC))


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        # A running driver has just removed it.
        return None


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
