"""Garbage collection: list stored files, plan what may be removed, drop it from the catalog, then delete the files.

The order matters: a crash leaves only unreferenced files, which the next collection removes.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from laminae.catalog.model import PendingState, ViewRecord
from laminae.engine import faults
from laminae.engine.retention.changelog_retention import ChangesFacts, expired_until, plan_changes_collection
from laminae.engine.retention.source_retention import GRACE, Removal, SourceFacts, Stored, plan_collection
from laminae.engine.source_spec import spec_of
from laminae.engine.views.order import CREATING, inputs_of
from laminae.engine.views.replacement import still_read
from laminae.engine.views.row_source import RowsFrom, rows_from
from laminae.errors import LaminaeError
from laminae.spark.driver.changelog_compaction import COMPACTED, Merger, summed_views
from laminae.spark.sources.log_head import log_directory
from laminae.spark.sources.registry import open_source
from laminae.trace.manifest import Manifest, orphans
from laminae.trace.store import RunStore

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from laminae.catalog.model import EpochRecord, SavepointRecord, SourceRecord
    from laminae.catalog.port import Catalog
    from laminae.spark.driver.storage import Storage
    from laminae.spark.sources.protocol import Source

SEGMENTS = ("segments", "dead_letters", "snapshots")
CHANGES = "changes"
# Late rows of a view, and rows for which one of its expressions failed.
ASIDES = ("late", "refused")
# A running SELECT reads the state of the epoch in which it started, while later epochs are committed.
KEPT_EPOCHS = 10


def collect(catalog: Catalog, storage: Storage, now: datetime, dry_run: bool) -> tuple[Removal, ...]:
    """Collect garbage and return what was removed or, with `dry_run`, what would be."""
    removals: list[Removal] = []
    for source in catalog.sources():
        plan = plan_collection(_facts(catalog, storage, source), now)
        removals += plan.removals
        if not dry_run:
            if plan.forgotten:
                catalog.commit(plan.forgotten)
            if plan.floor is not None:
                log_directory(source.name, source.id, str(storage.home)).raise_floor(plan.floor)
    if not dry_run:
        _merge(catalog, storage, now)
    for owner in _owners(catalog):
        changes = plan_changes_collection(_changes_facts(catalog, storage, owner), now)
        removals += changes.removals
        forgotten = [update for update in (changes.forgotten, changes.replaced) if update is not None]
        if forgotten and not dry_run:
            catalog.commit(forgotten)
    removals += _unused_state(catalog, storage, now)
    removals += _dropped(catalog, storage, now)
    if not dry_run:
        faults.reach("changes forgotten")
        for removal in removals:
            _remove(storage.home / removal.path)
    return tuple(removals)


def _merge(catalog: Catalog, storage: Storage, now: datetime) -> None:
    """Compact the changelogs that are the only state of their view.

    Expired segments are merged too, so that a later collection can remove them. The size of a merge is not limited.
    """
    merger = Merger(catalog, storage, lambda: now)
    for view in summed_views(catalog):
        merger.merge_all(view, expired_until(_changes_facts(catalog, storage, view), now))


def _facts(catalog: Catalog, storage: Storage, source: SourceRecord) -> SourceFacts:
    place = Path("sources", str(source.id))
    folders = [place / kind for kind in SEGMENTS]
    stored = [segment for folder in folders for segment in _stored(storage.home, folder)]
    stored += [item for item in _stored(storage.home, place) if Path(item.path).name.startswith("checkpoint.")]
    epochs, savepoints = catalog.epochs(source.id), catalog.savepoints()
    log = open_source(source, str(storage.home)).source
    return SourceFacts(
        source=source,
        epochs=epochs,
        sinks=[sink for sink in catalog.sinks() if sink.relation.casefold() == source.name.casefold()],
        savepoints=savepoints,
        settings=catalog.settings(),
        stored=stored,
        items={int(Path(item.path).stem): item for item in _stored(storage.home, place / "log", "*.parquet")},
        places=_places(log, epochs, savepoints),
        rejected={change.id for change in catalog.pending(source.id) if change.state is PendingState.REJECTED},
    )


def _owners(catalog: Catalog) -> list[SourceRecord | ViewRecord]:
    """The relations that have a changelog and state: sources that keep a table, and views."""
    return [*(source for source in catalog.sources() if spec_of(source).keeps_table), *catalog.views()]


def _changes_facts(catalog: Catalog, storage: Storage, owner: SourceRecord | ViewRecord) -> ChangesFacts:
    name = owner.name.casefold()
    place = Path("sources", str(owner.id))
    # List files before reading the catalog: a file that is committed in between is then seen as referenced.
    stored = [*_stored(storage.home, place / CHANGES, "*/*")]
    stored += [item for kind in (*ASIDES, COMPACTED) for item in _stored(storage.home, place / kind)]
    if catalog.source(owner.name) is None:
        # Snapshots of a source are listed by `_facts`.
        stored += _stored(storage.home, place / "snapshots")
    above = [view for view in catalog.views() if name in inputs_of(view)]
    return ChangesFacts(
        owner_id=owner.id,
        name=owner.name,
        options=owner.options,
        advances=catalog.advances(owner.id),
        sinks=[sink for sink in catalog.sinks() if sink.relation.casefold() == name],
        views=above,
        savepoints=catalog.savepoints(),
        settings=catalog.settings(),
        stored=stored,
        is_table=_is_table(catalog, owner),
        compacted=catalog.compacted(owner.id),
        emissions=[emission[0] for view in above if (emission := catalog.last_emission(view.id)) is not None],
    )


def _is_table(catalog: Catalog, owner: SourceRecord | ViewRecord) -> bool:
    if not isinstance(owner, ViewRecord):
        return False
    try:
        return rows_from(owner, catalog.sources(), catalog.views()) is RowsFrom.CHANGELOG
    except LaminaeError:
        # A view that can no longer be planned may be replaced by one that takes over its state.
        return True


def _unused_state(catalog: Catalog, storage: Storage, now: datetime) -> Iterator[Removal]:
    """Trace runs that no manifest references: not the current one, nor one of a savepoint or of the last epochs.

    While a view is backfilled or a sink takes its snapshot, all state is kept, because they read the state of an epoch.
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
    # A view that emits later than it computes shows its state as of its last emission.
    if (emission := catalog.last_emission(owner_id)) is not None:
        last.append(emission[0])
    texts = {
        record.manifest
        for until in (None, *last, *(savepoint.epoch for savepoint in catalog.savepoints()))
        for record in catalog.manifests(owner_id, until)
    }
    return map(Manifest.from_json, texts)


def _places(log: Source, epochs: Sequence[EpochRecord], savepoints: Sequence[SavepointRecord]) -> list[int]:
    """The log items from which the source continues, now and after a restore of each savepoint."""
    batches = [epoch for epoch in epochs if not epoch.is_replay]
    reached = [batches[-1:]]
    reached += [[epoch for epoch in batches if epoch.epoch <= savepoint.epoch][-1:] for savepoint in savepoints]
    return [log.item(last[0].end_offsets) if last else 0 for last in reached]


def _dropped(catalog: Catalog, storage: Storage, now: datetime) -> Iterator[Removal]:
    stored = [directory for directory in _stored(storage.home, Path("sources")) if now - directory.modified > GRACE]
    owners = {
        *(source.id for source in catalog.sources()),
        *(view.id for view in catalog.views()),
        *still_read(catalog),
    }
    for directory in stored:
        if Path(directory.path).name not in set(map(str, owners)):
            yield Removal("dropped", Path(directory.path).name, directory.path, directory.size)


def _stored(home: Path, folder: Path, pattern: str = "*") -> Iterator[Stored]:
    for path in sorted((home / folder).glob(pattern)):
        inside = [path, *(path.rglob("*") if path.is_dir() else ())]
        stats = [status for entry in inside if (status := _status(entry)) is not None]
        if stats:
            newest = max(status.st_mtime for status in stats)
            size = sum(status.st_size for status, entry in zip(stats, inside, strict=False) if not entry.is_dir())
            yield Stored(str(path.relative_to(home)), size, datetime.fromtimestamp(newest, UTC))


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        # A running driver removed it in the meantime.
        return None


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
        return
    path.unlink(missing_ok=True)
    # Each attempt has its own directory: remove it with its last file.
    if path.parent.parent.name == CHANGES:
        with suppress(OSError):
            path.parent.rmdir()
