"""RowSerializer and its snapshot, by the names of FLIP-527: rows to bytes, and old bytes to a changed schema.

The bytes are Spark's UnsafeRow. A snapshot is what is kept beside state; one without names matches by position.
"""

from __future__ import annotations

import json
import struct as packing
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from laminae.errors import InvalidSchema, InvalidSnapshot, StateRefused
from laminae.schema.arguments import require
from laminae.state.arrow_types import struct_of
from laminae.state.codec.decode import row_decoder
from laminae.state.codec.encode import row_encoder
from laminae.state.codec.migrate import Migration
from laminae.state.compatibility import Compatibility, resolve
from laminae.state.mapping import create_field_mapping
from laminae.state.types import Struct, duplicates, parse_type, to_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


MAGIC = b"LSNP"
POSITIONS_VERSION = 1
NAMES_VERSION = 2


class RowSerializer:
    """Writes rows of a schema as bytes and reads them back. Names can be left out, as in snapshots of old."""

    def __init__(self, schema: pa.Schema | Struct, *, with_names: bool = True) -> None:
        require("RowSerializer", (pa.Schema, Struct), schema=schema)
        self.struct = schema if isinstance(schema, Struct) else struct_of(schema)
        self.with_names = with_names
        if with_names and (repeated := duplicates(self.struct.names)):
            raise InvalidSchema(path=repeated[0], problem="two fields have this name")

    @property
    def field_names(self) -> tuple[str, ...] | None:
        return self.struct.names if self.with_names else None

    @property
    def arity(self) -> int:
        return len(self.struct.fields)

    @cached_property
    def _encode(self):  # type: ignore[no-untyped-def]  # the closure of row_encoder, whose type says it
        return row_encoder(self.struct)

    @cached_property
    def _decode(self):  # type: ignore[no-untyped-def]  # the closure of row_decoder, whose type says it
        return row_decoder(self.struct, named=True)

    def serialize(self, row: Mapping[str, object] | Sequence[object]) -> bytes:
        """The bytes of a row, given by name or in the order of the fields."""
        encoded: bytes = self._encode(row)
        return encoded

    def deserialize(self, row: bytes) -> dict[str, object]:
        decoded: dict[str, object] = self._decode(row)
        return decoded

    def snapshot(self) -> RowSerializerSnapshot:
        return RowSerializerSnapshot(self.struct, self.with_names)

    def __repr__(self) -> str:
        return f"RowSerializer({self.struct})"


@dataclass(frozen=True, slots=True)
class RowSerializerSnapshot:
    """What state must remember of its serializer: types, and names unless it was written before there were any."""

    struct: Struct
    with_names: bool = True

    CURRENT_VERSION: ClassVar[int] = NAMES_VERSION

    def to_bytes(self) -> bytes:
        """A mark, a version, and the types as Spark writes them."""
        version = NAMES_VERSION if self.with_names else POSITIONS_VERSION
        return MAGIC + packing.pack("<H", version) + json.dumps(to_json(self.struct)).encode()

    @classmethod
    def from_bytes(cls, written: bytes) -> RowSerializerSnapshot:
        if not written.startswith(MAGIC) or len(written) < len(MAGIC) + 2:
            raise InvalidSnapshot(problem="it does not begin as one")
        (version,) = packing.unpack_from("<H", written, len(MAGIC))
        if version not in (POSITIONS_VERSION, NAMES_VERSION):
            raise InvalidSnapshot(problem=f"version {version} is newer than {NAMES_VERSION}")
        try:
            struct = parse_type(json.loads(written[len(MAGIC) + 2 :]))
        except (ValueError, InvalidSchema) as problem:
            raise InvalidSnapshot(problem=f"its types cannot be read: {problem}") from None
        if not isinstance(struct, Struct):
            raise InvalidSnapshot(problem=f"a row is a struct, this is {struct}")
        return cls(struct, version == NAMES_VERSION)

    def restore_serializer(self) -> RowSerializer:
        return RowSerializer(self.struct, with_names=self.with_names)

    def resolve_schema_compatibility(self, new: RowSerializer) -> Compatibility:
        """Whether rows written under this snapshot can be read by the new serializer, and what must happen first."""
        require("resolve_schema_compatibility", RowSerializer, new=new)
        return resolve(self.struct, new.struct, by_name=self.with_names and new.with_names)

    def create_field_mapping(self, new: RowSerializer) -> tuple[int, ...]:
        """For each field of the new serializer the position of the old one, -1 for one that is new."""
        names = self.struct.names if self.with_names else None
        return create_field_mapping(names, new.field_names, len(self.struct.fields), new.arity)

    def migrate_state(self, new: RowSerializer, value: bytes) -> bytes:
        """The bytes of one value under the new serializer."""
        return self.migrate_states(new, [value])[0]

    def migrate_states(self, new: RowSerializer, values: Sequence[bytes]) -> list[bytes]:
        """Many values at once: of a value state, the elements of a list state, or the values of a map state."""
        import pyarrow as pa

        verdict = self._accepted(new)
        if verdict.mapping is None:
            return list(values)
        migrated: list[bytes] = _compiled(self, new, verdict).batch(pa.array(values, pa.binary())).to_pylist()
        return migrated

    def migrate_element(self, new: RowSerializer, element: Mapping[str, object] | Sequence[object]) -> bytes:
        """One element that was read already, as bytes under the new serializer."""
        return self.migrate_state(new, self.restore_serializer().serialize(element))

    def _accepted(self, new: RowSerializer) -> Compatibility:
        verdict = self.resolve_schema_compatibility(new)
        if not verdict.is_compatible:
            reasons = "\n".join(map(str, verdict.reasons))
            raise StateRefused(checkpoint="a serializer", reasons=reasons)
        return verdict


def _compiled(snapshot: RowSerializerSnapshot, new: RowSerializer, verdict: Compatibility) -> Migration:
    assert verdict.mapping is not None
    return Migration.of(snapshot.struct, new.struct, verdict.mapping)
