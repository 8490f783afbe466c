"""A source's schema after its table has changed: what changed is carried over, what the source has of its own stays."""

import pyarrow as pa

from laminae.schema.external.table_changes import followed, learned, refreshed

INT = pa.int64()


def column(number, name, kind=INT, nullable=True):
    return pa.field(name, kind, nullable, None if number is None else {"PARQUET:field_id": str(number)})


def told(schema):
    """(id outside, name, type) of each column."""
    return [((f.metadata or {}).get(b"PARQUET:field_id", b"").decode(), f.name, str(f.type)) for f in schema]


BEFORE = pa.schema([column(1, "id"), column(2, "amount", pa.int32()), column(3, "note", pa.string())])


def test_ids_are_learned_by_name_also_inside():
    mine = pa.schema(
        [
            column(None, "own"),
            column(None, "place", pa.struct([column(None, "city", pa.string())])),
            column(None, "tags", pa.list_(pa.string())),
            column(None, "rates", pa.map_(pa.string(), pa.float64())),
        ]
    )
    outside = pa.schema(
        [
            column(4, "rates", pa.map_(column(5, "key", pa.string(), False), column(6, "value", pa.float64()))),
            column(1, "place", pa.struct([column(2, "city", pa.string()), column(9, "zip", pa.string())])),
            column(7, "tags", pa.list_(column(8, "element", pa.string()))),
        ]
    )
    found = learned(mine, outside)
    assert found.names == mine.names
    assert found.types == mine.types
    numbers = [
        found.field("place").type.field("city"),
        found.field("tags").type.value_field,
        found.field("rates").type.item_field,
    ]
    assert [field.metadata[b"PARQUET:field_id"] for field in numbers] == [b"2", b"8", b"6"]
    assert found.field("own").metadata is None
    assert learned(found, outside).equals(found, check_metadata=True)


def test_rename_promotion_drop_and_addition_are_carried_over_once():
    after = pa.schema([column(1, "id"), column(2, "cents"), column(4, "city", pa.string())])
    mine = pa.schema([column(2, "amount", pa.int32()), column(1, "id"), column(None, "op", pa.string()), *BEFORE][:3])
    mine = mine.append(column(3, "note", pa.string()))
    found = followed(mine, BEFORE, after)
    assert told(found) == [
        ("2", "cents", "int64"), ("4", "city", "string"), ("1", "id", "int64"), ("", "op", "string"),
    ]  # fmt: skip
    assert followed(found, BEFORE, after).equals(found, check_metadata=True)


def test_what_the_source_declares_otherwise_stays():
    mine = pa.schema([column(2, "n", pa.float64()), column(1, "key"), column(None, "cents"), column(None, "city")])
    after = pa.schema([column(1, "id"), column(2, "cents"), column(4, "city"), column(5, "NOTE")])
    found = followed(mine.append(column(None, "note")), BEFORE, after)
    assert told(found) == [
        ("2", "n", "double"), ("1", "key", "int64"), ("", "cents", "int64"),
        ("4", "city", "int64"), ("", "note", "int64"),
    ]  # fmt: skip


def test_names_that_are_swapped_and_columns_that_move():
    before = pa.schema([column(1, "a"), column(2, "b"), column(3, "c", nullable=False)])
    after = pa.schema([column(3, "c"), column(1, "b"), column(2, "a")])
    mine = pa.schema([column(None, "own"), *before])
    found = followed(mine, before, after)
    assert told(found) == [("", "own", "int64"), ("3", "c", "int64"), ("1", "b", "int64"), ("2", "a", "int64")]
    assert found.field("c").nullable


def test_a_name_that_is_used_again_is_another_column():
    after = pa.schema([column(1, "id"), column(7, "amount", pa.string())])
    assert told(followed(BEFORE, BEFORE, after)) == [("1", "id", "int64"), ("7", "amount", "string")]


def test_fields_inside_are_followed():
    def place(*fields):
        return pa.schema([column(1, "place", pa.list_(column(2, "element", pa.struct(fields))))])

    before = place(column(3, "city", pa.string()), column(4, "zip", pa.int32()))
    after = place(column(3, "town", pa.string()), column(4, "zip"), column(5, "land", pa.string()))
    assert str(followed(before, before, after).field("place").type) == str(after.field("place").type)


def test_a_refresh_takes_what_is_there_and_leaves_what_never_was():
    mine = pa.schema([column(None, "id"), column(3, "note", pa.string()), column(None, "op", pa.string())])
    outside = pa.schema([column(1, "id"), column(2, "amount", pa.int32())])
    found = refreshed(mine, outside)
    assert told(found) == [("1", "id", "int64"), ("2", "amount", "int32"), ("", "op", "string")]
