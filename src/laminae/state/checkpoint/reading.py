"""Read a checkpoint through a port of two functions. Errors name the missing or damaged file.

The paths in an operator's metadata are absolute. A checkpoint may have been moved, so only their file names are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from laminae.errors import CheckpointInvalid
from laminae.state.checkpoint.model import Checkpoint, Family, Operator, Store
from laminae.state.checkpoint.parsing import (
    Damaged,
    OperatorEntry,
    StoreEntry,
    has_store_ids,
    offset_settings,
    operator_entry,
    query_id,
    schema_file,
)

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

NOT_ONE = "Give the checkpointLocation of a query that ran with state: a directory with offsets, commits and state."
DAMAGED = "Restore the file from a backup. Nothing was written."


class Files(Protocol):
    """The files of a checkpoint in any file system. Paths are strings with `/`."""

    def names(self, directory: str) -> tuple[str, ...]:
        """The names in a directory; empty if it does not exist."""
        ...

    def read(self, path: str) -> bytes | None:
        """The bytes of a file; None if it does not exist."""
        ...


def read_checkpoint(files: Files, location: str) -> Checkpoint:
    """The complete description of a checkpoint at its last committed batch."""
    commits, offsets = _numbers(files, f"{location}/commits"), _numbers(files, f"{location}/offsets")
    if not offsets:
        raise CheckpointInvalid(checkpoint=location, problem="there are no offsets", advice=NOT_ONE)
    if not commits:
        raise CheckpointInvalid(checkpoint=location, problem="no batch was ever committed", advice=NOT_ONE)
    batch = commits[-1]
    read = _Reading(files, location)
    operators = _numbers(files, f"{location}/state")
    if not operators:
        raise CheckpointInvalid(checkpoint=location, problem="there is no state in it", advice=NOT_ONE)
    settings = read.parsed(f"{location}/offsets/{batch}", offset_settings)
    return Checkpoint(
        location,
        read.parsed(f"{location}/metadata", query_id),
        batch,
        tuple(number for number in offsets if number > batch),
        tuple(sorted(settings.items())),
        tuple(read.operator(number, batch) for number in operators),
        read.parsed(f"{location}/commits/{batch}", has_store_ids),
    )


def read_operators(files: Files, location: str) -> tuple[Operator, ...]:
    """Only the operators, for the checkpoint of a query that was planned but not run."""
    read = _Reading(files, location)
    return tuple(read.operator(number, 0) for number in _numbers(files, f"{location}/state"))


class _Reading:
    def __init__(self, files: Files, location: str) -> None:
        self.files, self.location = files, location

    def parsed(self, path: str, parse: Callable[[bytes], T]) -> T:
        content = self.files.read(path)
        if content is None:
            raise CheckpointInvalid(checkpoint=self.location, problem=f"{path} is missing", advice=DAMAGED)
        try:
            return parse(content)
        except Damaged as problem:
            text = f"{path} cannot be used, {problem}"
            raise CheckpointInvalid(checkpoint=self.location, problem=text, advice=DAMAGED) from None

    def operator(self, number: int, batch: int) -> Operator:
        path = self._metadata_path(f"{self.location}/state/{number}/_metadata", batch)
        entry = self.parsed(path, operator_entry)
        stores = tuple(self._store(number, entry, store) for store in entry.stores)
        return Operator(entry.id, entry.name, stores, entry.version, path, entry.variables)

    def _metadata_path(self, directory: str, batch: int) -> str:
        """Format 2 writes a file for each batch that changed it; the newest one up to this batch is valid."""
        known = [number for number in _numbers(self.files, f"{directory}/v2") if number <= batch]
        return f"{directory}/v2/{known[-1]}" if known else f"{directory}/metadata"

    def _store(self, operator: int, entry: OperatorEntry, store: StoreEntry) -> Store:
        root = f"{self.location}/state/{operator}"
        if entry.version == "v1":
            inner = "" if store.name == "default" else f"/{store.name}"
            paths = [f"{root}/0{inner}/_metadata/schema"]
        else:
            paths = [self._beside(root, store.name, path) for path in store.files]
        if not paths:
            raise CheckpointInvalid(
                checkpoint=self.location, problem=f"store {store.name} names no schema file", advice=DAMAGED
            )
        _, families = self.parsed(paths[-1], schema_file)
        return Store(store.name, store.partitions, _sorted(families), tuple(paths))

    def _beside(self, root: str, store: str, path: str) -> str:
        name = path.rsplit("/", 1)[-1]
        return f"{root}/_stateSchema/{store}/{name}"


def _sorted(families: tuple[Family, ...]) -> tuple[Family, ...]:
    return tuple(sorted(families, key=lambda family: family.name))


def _numbers(files: Files, directory: str) -> list[int]:
    return sorted(int(name) for name in files.names(directory) if name.isdigit())
