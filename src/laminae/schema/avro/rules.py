"""Schema resolution as a table: what one reader type demands of one writer type, for each combination of the two.

A rule yields faults (the pair cannot hold) and needs (one of some other pairs must hold). It never recurses, so
recursive schemas need no care here. Logical types are not compared, not even decimal: Java compares none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, cast

from laminae.schema.avro.incompatibility import IncompatibilityKind as Kind
from laminae.schema.avro.names import simple_name
from laminae.schema.avro.nodes import (
    AvroArray,
    AvroDefinite,
    AvroEnum,
    AvroField,
    AvroFixed,
    AvroKind,
    AvroMap,
    AvroNamed,
    AvroPrimitive,
    AvroRecord,
    AvroSchema,
    AvroType,
    AvroUnion,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PROMOTIONS: dict[AvroKind, frozenset[AvroKind]] = {
    AvroKind.NULL: frozenset(),
    AvroKind.BOOLEAN: frozenset(),
    AvroKind.INT: frozenset((AvroKind.LONG, AvroKind.FLOAT, AvroKind.DOUBLE)),
    AvroKind.LONG: frozenset((AvroKind.FLOAT, AvroKind.DOUBLE)),
    AvroKind.FLOAT: frozenset((AvroKind.DOUBLE,)),
    AvroKind.DOUBLE: frozenset(),
    AvroKind.BYTES: frozenset((AvroKind.STRING,)),
    AvroKind.STRING: frozenset((AvroKind.BYTES,)),
}

_READABLE = frozenset((wide, kind) for kind, wider in PROMOTIONS.items() for wide in (kind, *wider))


@dataclass(frozen=True, slots=True, eq=False)
class Fault:
    """Why a pair cannot hold, with what either side has there. Both paths are relative to the pair."""

    kind: Kind
    reader: AvroDefinite | str
    writer: AvroDefinite | str
    path: str = ""
    field_path: str = ""
    note: str = ""


Pair: TypeAlias = tuple[AvroDefinite, AvroDefinite]


@dataclass(frozen=True, slots=True, eq=False)
class Need:
    """One of `options` must hold. With `missing` that is the fault reported; without, the only option explains."""

    options: tuple[Pair, ...]
    path: str = ""
    field_path: str = ""
    missing: Fault | None = None


Demand: TypeAlias = Fault | Need


def demands(reader: AvroDefinite, writer: AvroDefinite, schemas: Schemas) -> Iterator[Demand]:
    rule = _RULES.get((type(reader), type(writer)))
    if rule is not None:
        yield from rule(reader, writer, schemas)
    elif isinstance(writer, AvroUnion):
        yield from _each_branch(reader, writer, schemas)
    elif isinstance(reader, AvroUnion):
        yield from _some_branch(reader, writer, schemas, "")
    else:
        yield Fault(Kind.TYPE_MISMATCH, reader, writer)


@dataclass(frozen=True, slots=True, eq=False)
class Schemas:
    """The two schemas a pair belongs to, for looking up what a name stands for."""

    reader: AvroSchema
    writer: AvroSchema

    def pair(self, reader: AvroType, writer: AvroType) -> Pair:
        return self.reader.resolve(reader), self.writer.resolve(writer)


def is_readable(reader: AvroType, writer: AvroType) -> bool:
    """Two primitive types of which the reader's holds every value of the writer's: decided without making a pair."""
    return (
        isinstance(reader, AvroPrimitive)
        and isinstance(writer, AvroPrimitive)
        and (reader.kind, writer.kind) in _READABLE
    )


def _primitives(reader: AvroDefinite, writer: AvroDefinite, schemas: Schemas) -> Iterator[Demand]:
    if not is_readable(reader, writer):
        yield Fault(Kind.TYPE_MISMATCH, reader, writer)


def _arrays(reader: AvroDefinite, writer: AvroDefinite, schemas: Schemas) -> Iterator[Demand]:
    return _inner(cast(AvroArray, reader).items, cast(AvroArray, writer).items, schemas, "/items", "element")


def _maps(reader: AvroDefinite, writer: AvroDefinite, schemas: Schemas) -> Iterator[Demand]:
    return _inner(cast(AvroMap, reader).values, cast(AvroMap, writer).values, schemas, "/values", "value")


def _inner(reader: AvroType, writer: AvroType, schemas: Schemas, path: str, field_path: str) -> Iterator[Demand]:
    if not is_readable(reader, writer):
        yield Need((schemas.pair(reader, writer),), path, field_path)


def _names(reader: AvroNamed, writer: AvroNamed) -> Iterator[Fault]:
    """Java compares the last part of the names alone, so a move to another namespace needs no alias."""
    if simple_name(reader.name) != simple_name(writer.name) and writer.name not in reader.aliases:
        yield Fault(Kind.NAME_MISMATCH, reader.name, writer.name, "/name")


def _fixeds(reader: AvroDefinite, writer: AvroDefinite, schemas: Schemas) -> Iterator[Demand]:
    reader, writer = cast(AvroFixed, reader), cast(AvroFixed, writer)
    yield from _names(reader, writer)
    if reader.size != writer.size:
        yield Fault(Kind.FIXED_SIZE_MISMATCH, str(reader.size), str(writer.size), "/size")


def _enums(reader: AvroDefinite, writer: AvroDefinite, schemas: Schemas) -> Iterator[Demand]:
    reader, writer = cast(AvroEnum, reader), cast(AvroEnum, writer)
    yield from _names(reader, writer)
    missing = sorted(set(writer.symbols).difference(reader.symbols))
    if missing and reader.default is None:
        yield Fault(Kind.MISSING_ENUM_SYMBOLS, reader.name, ", ".join(missing), "/symbols")


def _records(reader: AvroDefinite, writer: AvroDefinite, schemas: Schemas) -> Iterator[Demand]:
    reader, writer = cast(AvroRecord, reader), cast(AvroRecord, writer)
    yield from _names(reader, writer)
    written = {field.name: field for field in writer.fields}
    for position, field in enumerate(reader.fields):
        sources = [written[name] for name in (field.name, *field.aliases) if name in written]
        if len(sources) == 1:
            if not is_readable(field.type, sources[0].type):
                pair = schemas.pair(field.type, sources[0].type)
                yield Need((pair,), f"/fields/{position}/type", field.name)
        elif sources:
            # Java throws here and a registry reports that as incompatible; of the six kinds this is the nearest.
            names = " and ".join(source.name for source in sources)
            note = "; its name and aliases match more than one field"
            yield Fault(Kind.NAME_MISMATCH, field.name, names, f"/fields/{position}", field.name, note)
        elif not field.has_default:
            yield _no_source(field, writer, position, schemas)


def _no_source(field: AvroField, writer: AvroRecord, position: int, schemas: Schemas) -> Fault:
    field_type = schemas.reader.resolve(field.type)
    if isinstance(field_type, AvroEnum) and field_type.default is not None:
        # The default of the enum is for unknown symbols, not for a missing field: Java then compares the enum with
        # the whole record, and so names another kind than for every other type.
        note = "; the default of an enum type does not serve a field that the writer lacks"
        path = f"/fields/{position}/type"
        return Fault(Kind.TYPE_MISMATCH, field_type, writer, path, field.name, note)
    kind = Kind.READER_FIELD_MISSING_DEFAULT_VALUE
    return Fault(kind, field.name, writer.name, f"/fields/{position}", field.name)


def _unions(reader: AvroDefinite, writer: AvroDefinite, schemas: Schemas) -> Iterator[Demand]:
    for position, branch in enumerate(cast(AvroUnion, writer).branches):
        yield from _some_branch(cast(AvroUnion, reader), schemas.writer.resolve(branch), schemas, f"/{position}")


def _some_branch(reader: AvroUnion, writer: AvroDefinite, schemas: Schemas, path: str) -> Iterator[Need]:
    for branch in reader.branches:
        if is_readable(branch, writer):
            return
    options = tuple([(schemas.reader.resolve(branch), writer) for branch in reader.branches])
    yield Need(options, path, "", Fault(Kind.MISSING_UNION_BRANCH, reader, writer))


def _each_branch(reader: AvroDefinite, writer: AvroUnion, schemas: Schemas) -> Iterator[Demand]:
    for position, branch in enumerate(writer.branches):
        yield Need(((reader, schemas.writer.resolve(branch)),), f"/{position}")


_Rule: TypeAlias = "Callable[[AvroDefinite, AvroDefinite, Schemas], Iterator[Demand]]"

_RULES: dict[tuple[type[AvroDefinite], type[AvroDefinite]], _Rule] = {
    (AvroPrimitive, AvroPrimitive): _primitives,
    (AvroArray, AvroArray): _arrays,
    (AvroMap, AvroMap): _maps,
    (AvroFixed, AvroFixed): _fixeds,
    (AvroEnum, AvroEnum): _enums,
    (AvroRecord, AvroRecord): _records,
    (AvroUnion, AvroUnion): _unions,
}

_WORDS: dict[type[AvroDefinite], str] = {
    AvroRecord: "record ",
    AvroEnum: "enum ",
    AvroFixed: "fixed ",
}


def described(node: AvroDefinite | str) -> str:
    if isinstance(node, str):
        return node
    if isinstance(node, AvroUnion):
        return f"union [{', '.join(branch.branch_name for branch in node.branches)}]"
    return f"{_WORDS.get(type(node), '')}{node.branch_name}"
