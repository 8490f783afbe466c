"""What a checkpoint says of itself: the last committed batch, its operators, their stores and column families."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from laminae.state.types import Struct

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
PARTITIONS = "spark.sql.shuffle.partitions"
ENCODING = "spark.sql.streaming.stateStore.encodingFormat"
JOIN_FORMAT = "spark.sql.streaming.join.stateFormatVersion"
ROW_CHECKSUM = "spark.sql.streaming.stateStore.rowChecksum.enabled"


@dataclass(frozen=True, slots=True)
class Family:
    """One column family of a store; a store without families has one of the name `default`."""

    name: str
    key: Struct
    value: Struct


@dataclass(frozen=True, slots=True)
class Store:
    name: str
    partitions: int
    families: tuple[Family, ...]
    schema_files: tuple[str, ...]

    def family(self, name: str) -> Family | None:
        return next((family for family in self.families if family.name == name), None)


@dataclass(frozen=True, slots=True)
class Variable:
    """A state variable of transformWithState: its name, what kind it is, and whether it forgets."""

    name: str
    kind: str
    has_ttl: bool


@dataclass(frozen=True, slots=True)
class Operator:
    """`metadata_format` is v1 or v2; `metadata_file` is where the operator says what it is."""

    id: int
    name: str
    stores: tuple[Store, ...]
    metadata_format: str
    metadata_file: str
    variables: tuple[Variable, ...] = ()

    @property
    def signature(self) -> tuple[int, str, tuple[str, ...]]:
        return self.id, self.name, tuple(store.name for store in self.stores)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """`batch` is the last committed one; `planned` are batches behind it that were begun and not committed."""

    location: str
    query_id: str
    batch: int
    planned: tuple[int, ...]
    settings: tuple[tuple[str, str], ...]
    operators: tuple[Operator, ...]
    has_store_ids: bool

    def setting(self, name: str, default: str = "") -> str:
        return dict(self.settings).get(name, default)

    @property
    def provider(self) -> str:
        return self.setting(PROVIDER, HDFS)
