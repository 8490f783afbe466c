"""Carry out a collection: look at what is stored, ask what may go, forget it in the catalog, then remove the files.

In this order a crash leaves files that nobody names, which the next collection takes.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from laminae.engine.changelogs import keeps_table
from laminae.engine.changes_collection import ChangesFacts, plan_changes_collection
from laminae.engine.collection import GRACE, Removal, SourceFacts, Stored, plan_collection
from laminae.engine.former_views import still_read
from laminae.engine.view_order import CREATING, inputs_of
from laminae.spark.logs import open_log
from laminae.spark.logs.head import log_directory
from laminae.trace.garbage import orphans
from laminae.trace.manifest import Manifest
from laminae.trace.store import RunStore

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from laminae.catalog.model import EpochRecord, SavepointRecord, SourceRecord, ViewRecord
    from laminae.catalog.port import Catalog
    from laminae.spark.contract import SourceLog
    from laminae.spark.storage import Storage

SEGMENTS = ("segments", "dead_letters", "snapshots")
CHANGES = "changes"
# Rows that came too late for a view, and rows on which an expression of it failed.
ASIDES = ("late", "refused")
# A SELECT reads the state of the epoch that it began in while others are committed.
KEPT_EPOCHS = 10


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
    for owner in _owners(catalog):
        changes = plan_changes_collection(_changes_facts(catalog, storage, owner), now)
        removals += changes.removals
        if changes.forgotten is not None and not dry_run:
            catalog.commit([changes.forgotten])
    removals += _unused_state(catalog, storage, now)
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


def _owners(catalog: Catalog) -> list[SourceRecord | ViewRecord]:
    """Whoever has a changelog and state."""
    return [*(source for source in catalog.sources() if keeps_table(source)), *catalog.views()]


def _changes_facts(catalog: Catalog, storage: Storage, owner: SourceRecord | ViewRecord) -> ChangesFacts:
    name = owner.name.casefold()
    place = Path("sources", str(owner.id))
    # First the files, then what names them: one that is committed in between is named.
    stored = [*_stored(storage.home, place / CHANGES, "*/*")]
    stored += [each for kind in ASIDES for each in _stored(storage.home, place / kind)]
    if catalog.source(owner.name) is None:
        # Those of a source are looked at with the rest of it.
        stored += _stored(storage.home, place / "snapshots")
    return ChangesFacts(
        owner_id=owner.id,
        name=owner.name,
        options=owner.options,
        advances=catalog.advances(owner.id),
        sinks=[sink for sink in catalog.sinks() if sink.relation.casefold() == name],
        views=[view for view in catalog.views() if name in inputs_of(view)],
        savepoints=catalog.savepoints(),
        settings=catalog.settings(),
        stored=stored,
    )


def _unused_state(catalog: Catalog, storage: Storage, now: datetime) -> Iterator[Removal]:
    """Runs that no state names: not the present one, nor one of a savepoint or of the last epochs.

    While a view or a sink is filled from the state of some epoch, all of it stays.
    """
    files = {file.path: file for file in RunStore.at(str(storage.home), "state").files()}
    states = [*(view.state for view in catalog.views()), *(sink.state for sink in catalog.sinks())]
    if CREATING in states:
        return
    owners = [*(owner.id for owner in _owners(catalog)), *still_read(catalog)]
    alive = [manifest for owner_id in owners for manifest in _manifests(catalog, owner_id)]
    names = {str(owner.id): owner.name for owner in _owners(catalog)}
    for path in orphans(files.values(), alive, now, GRACE):
        owner_id = Path(path).parts[1]
        yield Removal("state", names.get(owner_id, owner_id), path, files[path].bytes)


def _manifests(catalog: Catalog, owner_id: int) -> Iterator[Manifest]:
    last = [advance.epoch for advance in catalog.advances(owner_id)[-KEPT_EPOCHS:]]
    # What a view that holds back has emitted is its state of that epoch.
    if (emission := catalog.last_emission(owner_id)) is not None:
        last.append(emission[0])
    texts = {
        found.manifest
        for until in (None, *last, *(savepoint.epoch for savepoint in catalog.savepoints()))
        for found in catalog.manifests(owner_id, until)
    }
    return map(Manifest.from_json, texts)


def _places(log: SourceLog, epochs: Sequence[EpochRecord], savepoints: Sequence[SavepointRecord]) -> list[int]:
    """The items from which the source goes on, now and from each savepoint."""
    batches = [epoch for epoch in epochs if not epoch.is_replay]
    reached = [batches[-1:]]
    reached += [[epoch for epoch in batches if epoch.epoch <= savepoint.epoch][-1:] for savepoint in savepoints]
    return [log.item(last[0].end_offsets) if last else 0 for last in reached]


def _dropped(catalog: Catalog, storage: Storage, now: datetime) -> Iterator[Removal]:
    stored = [each for each in _stored(storage.home, Path("sources")) if now - each.modified > GRACE]
    there = {*(source.id for source in catalog.sources()), *(view.id for view in catalog.views()), *still_read(catalog)}
    for each in stored:
        if Path(each.path).name not in set(map(str, there)):
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
        return
    path.unlink(missing_ok=True)
    # The directory of an attempt, which no other one uses, goes with its last file.
    if path.parent.parent.name == CHANGES:
        with suppress(OSError):
            path.parent.rmdir()
