"""Hypothesis strategies for schemas, pairs of related schemas, and batches."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
from hypothesis import strategies as st

NAMES = ["a", "b", "c", "d", "e", "f"]
LEAVES = [
    pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32(), pa.float32(), pa.float64(),
    pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.bool_(), pa.date32(), pa.date64(),
    pa.decimal128(6, 2), pa.decimal128(9, 2), pa.decimal128(12, 4),
    pa.timestamp("s"), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.null(),
]  # fmt: skip


def _default(text: str | None) -> dict[bytes, bytes] | None:
    return None if text is None else {b"laminae:default": text.encode()}


@st.composite
def types(draw: st.DrawFn, depth: int = 3) -> pa.DataType:
    if depth == 0 or draw(st.integers(0, 9)) < 6:
        return draw(st.sampled_from(LEAVES))
    shape = draw(st.sampled_from(["struct", "list", "large_list", "map", "fixed"]))
    if shape == "struct":
        return pa.struct(draw(fields(depth - 1, 0, 3)))
    inner = draw(types(depth - 1))
    element = pa.field("element", inner, draw(st.booleans()) or pa.types.is_null(inner))
    if shape == "list":
        return pa.list_(element)
    if shape == "large_list":
        return pa.large_list(element)
    if shape == "fixed":
        return pa.list_(element, 2)
    key = draw(st.sampled_from([pa.string(), pa.int32(), pa.int64()]))
    return pa.map_(key, pa.field("value", element.type, element.nullable))


DEFAULTS = {
    "int8": ["1", "2"], "int16": ["1"], "int32": ["7", "8"], "int64": ["7"], "string": ['"x"', '"y"'],
    "bool": ["true"], "decimal128(6, 2)": ['"1.50"'], "double": ["0.5"], "date32[day]": ['"2024-02-29"'],
}  # fmt: skip


@st.composite
def fields(draw: st.DrawFn, depth: int = 3, least: int = 0, most: int = 5) -> list[pa.Field]:
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=least, max_size=most))
    made = []
    for name in names:
        kind = draw(types(depth))
        nullable = draw(st.booleans()) or pa.types.is_null(kind)
        default = draw(st.sampled_from([None, None, *DEFAULTS.get(str(kind), [])]))
        made.append(pa.field(name, kind, nullable, _default(default)))
    return made


def _with_fresh_ids(schema: pa.Schema, wanted: list[int]) -> pa.Schema:
    """Ids unique in the schema, drawn from a small pool so that two schemas share some."""
    from laminae.schema.identity import rewrite

    pool = iter(wanted)

    def numbered(metadata: dict[bytes, bytes]) -> dict[bytes, bytes]:
        metadata.pop(b"laminae:id", None)
        node_id = next(pool, None)
        if node_id is not None:
            metadata[b"laminae:id"] = str(node_id).encode()
        return metadata

    return rewrite(schema, numbered)


@st.composite
def schemas(draw: st.DrawFn, depth: int = 3) -> pa.Schema:
    schema = pa.schema(draw(fields(depth)))
    if draw(st.booleans()):
        schema = _with_fresh_ids(schema, draw(st.permutations(range(1, 9))))
    return schema


@st.composite
def evolved(draw: st.DrawFn, schema: pa.Schema) -> pa.Schema:
    """A relative of `schema`: the same columns under small edits, at the top and inside structs."""
    return pa.schema(draw(_edited(list(schema), 2)))


def _identity(field: pa.Field) -> dict[bytes, bytes]:
    return {key: value for key, value in (field.metadata or {}).items() if key == b"laminae:id"}


@st.composite
def _edited(draw: st.DrawFn, siblings: list[pa.Field], depth: int) -> list[pa.Field]:
    result: list[pa.Field] = []
    for field in siblings:
        edit = draw(st.sampled_from(["keep", "keep", "keep", "drop", "null", "type", "default", "rename", "inside"]))
        if edit == "drop":
            continue
        if edit == "null":
            field = field.with_nullable(not field.nullable or pa.types.is_null(field.type))
        elif edit == "type":
            kind = draw(types(1))
            field = pa.field(field.name, kind, field.nullable or pa.types.is_null(kind), _identity(field))
        elif edit == "default":
            choices = [None, *DEFAULTS.get(str(field.type), [])]
            default = draw(st.sampled_from(choices))
            field = field.with_metadata({**_identity(field), **(_default(default) or {})})
        elif edit == "rename":
            free = [n for n in [*NAMES, "x", "y"] if n not in {f.name for f in [*siblings, *result]}]
            field = field.with_name(draw(st.sampled_from(free))) if free else field
        elif edit == "inside" and pa.types.is_struct(field.type) and depth:
            field = field.with_type(pa.struct(draw(_edited(list(field.type), depth - 1))))
        result.append(field)
    taken = {f.name for f in result}
    for name in draw(st.lists(st.sampled_from(["n1", "n2", "n3"]), unique=True, max_size=2)):
        if name not in taken:
            at = draw(st.integers(0, len(result)))
            result.insert(at, draw(fields(1, 1, 1))[0].with_name(name))
    if draw(st.integers(0, 3)) == 0:
        result = draw(st.permutations(result))
    return result


@st.composite
def pairs(draw: st.DrawFn) -> tuple[pa.Schema, pa.Schema]:
    old = draw(schemas())
    new = draw(st.one_of(evolved(old), schemas()))
    return old, new


SMALL: dict[str, st.SearchStrategy[object]] = {
    "string": st.text(max_size=3), "large_string": st.text(max_size=3),
    "binary": st.binary(max_size=3), "large_binary": st.binary(max_size=3), "bool": st.booleans(),
    "date32[day]": st.dates(), "date64[ms]": st.dates(), "null": st.none(),
}  # fmt: skip


def values(kind: pa.DataType, nullable: bool = True) -> st.SearchStrategy[object]:
    """Values of a type; small, so that casts between related types mostly succeed."""
    text = str(kind)
    found: st.SearchStrategy[object]
    if text in SMALL:
        found = SMALL[text]
    elif pa.types.is_integer(kind):
        found = st.integers(0, 120)
    elif pa.types.is_floating(kind):
        found = st.integers(-8, 8).map(lambda n: n / 2)
    elif pa.types.is_decimal(kind):
        found = st.integers(-999, 999).map(lambda n: Decimal(n).scaleb(-2))
    elif pa.types.is_timestamp(kind):
        found = st.integers(0, 10_000)
    elif pa.types.is_struct(kind):
        found = st.fixed_dictionaries({f.name: values(f.type, f.nullable) for f in kind})
    elif pa.types.is_fixed_size_list(kind):
        item = values(kind.value_type, kind.value_field.nullable)
        found = st.lists(item, min_size=kind.list_size, max_size=kind.list_size)
    elif pa.types.is_map(kind):
        pair = st.tuples(values(kind.key_type, False), values(kind.item_type, kind.item_field.nullable))
        found = st.lists(pair, max_size=2, unique_by=lambda p: p[0])
    else:
        found = st.lists(values(kind.value_type, kind.value_field.nullable), max_size=3)
    return st.one_of(st.none(), found) if nullable else found


@st.composite
def batches(draw: st.DrawFn, schema: pa.Schema) -> pa.RecordBatch:
    rows = draw(st.integers(0, 5))
    # A field declared NOT NULL still gets NULLs now and then: Arrow does not stop them, the projection must.
    columns = [
        pa.array(
            draw(st.lists(values(f.type, f.nullable or draw(st.integers(0, 9)) == 0), min_size=rows, max_size=rows)),
            f.type,
        )
        for f in schema
    ]
    if not columns:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))
    batch = pa.RecordBatch.from_arrays(columns, schema=schema)
    return batch.slice(draw(st.integers(0, rows))) if rows else batch
