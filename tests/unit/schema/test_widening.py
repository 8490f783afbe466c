"""Which type may become which. The lists are written here, not imported from the source."""

import pyarrow as pa
import pytest

from laminae import is_safe_widening
from laminae.errors import InvalidOption

SIMPLE = {
    "i8": pa.int8(), "i16": pa.int16(), "i32": pa.int32(), "i64": pa.int64(),
    "u8": pa.uint8(), "u16": pa.uint16(), "u32": pa.uint32(), "u64": pa.uint64(),
    "f16": pa.float16(), "f32": pa.float32(), "f64": pa.float64(),
    "utf8": pa.string(), "large_utf8": pa.large_string(), "bin": pa.binary(), "large_bin": pa.large_binary(),
    "bool": pa.bool_(), "d32": pa.date32(), "d64": pa.date64(), "null": pa.null(), "ts": pa.timestamp("us"),
}  # fmt: skip

ALLOWED = {
    "arrow": """i8:i16,i32,i64,f32,f64 i16:i32,i64,f32,f64 i32:i64,f64 u8:u16,u32,u64,i16,i32,i64 u16:u32,u64,i32,i64
        u32:u64,i64 f16:f32,f64 f32:f64 utf8:large_utf8 bin:large_bin d32:d64 null:*""",
    "avro": "i32:i64,f32,f64 i64:f32,f64 f32:f64 utf8:bin bin:utf8",
    "iceberg-v2": "i32:i64 f32:f64",
    "iceberg-v3": "i32:i64 f32:f64 d32:ts null:*",
    "delta": "i8:i16,i32,i64,f64 i16:i32,i64,f64 i32:i64,f64 f32:f64 d32:ts",
}


def expected_pairs(system):
    for row in ALLOWED[system].split():
        source, targets = row.split(":")
        for target in [name for name in SIMPLE if name != source] if targets == "*" else targets.split(","):
            yield source, target


@pytest.mark.parametrize("system", ALLOWED)
def test_exactly_the_listed_pairs_are_safe(system):
    found = {(a, b) for a in SIMPLE for b in SIMPLE if is_safe_widening(SIMPLE[a], SIMPLE[b], system)}
    assert found == set(expected_pairs(system))


@pytest.mark.parametrize(("a", "b"), [("i64", "f64"), ("i32", "f32"), ("i64", "i32"), ("f64", "f32"), ("u64", "i64")])
def test_what_could_lose_a_value_is_refused(a, b):
    assert not is_safe_widening(SIMPLE[a], SIMPLE[b])


@pytest.mark.parametrize(
    ("old", "new", "systems"),
    [
        ((10, 2), (12, 2), {"arrow", "iceberg-v2", "iceberg-v3", "delta"}),
        ((10, 2), (12, 4), {"arrow", "delta"}),
        ((10, 2), (11, 4), set()),
        ((10, 2), (9, 2), set()),
        ((10, 2), (10, 2), set()),
        ((10, 2), (10, 1), set()),
    ],
)
def test_decimals_grow_without_losing_integer_digits(old, new, systems):
    found = {s for s in ALLOWED if is_safe_widening(pa.decimal128(*old), pa.decimal128(*new), s)}
    assert found == systems


def test_integers_become_decimals_in_delta_alone():
    assert is_safe_widening(pa.int32(), pa.decimal128(10, 0), "delta")
    assert is_safe_widening(pa.int64(), pa.decimal128(22, 2), "delta")
    assert not is_safe_widening(pa.int64(), pa.decimal128(19, 0), "delta")
    assert not is_safe_widening(pa.int32(), pa.decimal128(10, 0))


def test_timestamps_become_finer_never_coarser_and_keep_their_zone():
    assert is_safe_widening(pa.timestamp("s"), pa.timestamp("ns"))
    assert is_safe_widening(pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC"))
    assert not is_safe_widening(pa.timestamp("us"), pa.timestamp("ms"))
    assert not is_safe_widening(pa.timestamp("s"), pa.timestamp("us", "UTC"))


def test_nested_types_widen_with_what_is_inside():
    old = pa.struct([("a", pa.list_(pa.int32())), ("b", pa.string())])
    assert is_safe_widening(old, pa.struct([("a", pa.list_(pa.int64())), ("b", pa.string())]))
    assert not is_safe_widening(old, pa.struct([("a", pa.list_(pa.int16())), ("b", pa.string())]))
    assert not is_safe_widening(old, pa.struct([("b", pa.string()), ("a", pa.list_(pa.int64()))]))
    assert not is_safe_widening(old, old)


def test_unknown_system_is_refused_with_the_list():
    with pytest.raises(InvalidOption, match="iceberg-v3"):
        is_safe_widening(pa.int8(), pa.int16(), "oracle")
