"""Which version a record has, and former names of its columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.codec.decoders import Decoder, DecoderTable
from tests.support.build import col, schema

if TYPE_CHECKING:
    from tests.support.decoding import Decode


def test_stamped_and_unstamped_versions_lie_side_by_side(decoded: Decode) -> None:
    first = schema(col("a", "int", id=1), col("gone", id=2))
    second = schema(col("a", "bigint", id=1), col("b", id=3, default='"?"'))
    third = schema(col("renamed", "bigint", id=1), col("b", id=3, default='"?"'), col("gone", id=4))
    table = DecoderTable((Decoder(1, first, 0), Decoder(2, second, 10), Decoder(3, third, 20)), third)
    old, new = b'{"a":1,"gone":"x"}', b'{"renamed":1,"gone":"y"}'
    cases = [
        (old, None, 0, {"renamed": 1, "b": "?", "gone": None}),
        (old, None, 9, {"renamed": 1, "b": "?", "gone": None}),
        (b'{"a":1099511627776}', None, 10, {"renamed": 2**40, "b": "?", "gone": None}),
        (new, None, 20, {"renamed": 1, "b": "?", "gone": "y"}),
        (old, 1, 25, {"renamed": 1, "b": "?", "gone": None}),
        (b'{"a":1,"b":null}', 2, 0, {"renamed": 1, "b": None, "gone": None}),
        (new, 3, 0, {"renamed": 1, "b": "?", "gone": "y"}),
        (new, 4, 0, "unknown schema version 4"),
        (b"{", 4, 0, "unknown schema version 4"),
        (b'{"a":1099511627776}', 1, 0, "a is not a value of type INT"),
    ]
    values, versions, items, expected = map(list, zip(*cases, strict=True))
    found = decoded(values, table, versions, items)
    assert [row if error is None else error for row, error, _ in found] == expected


def test_a_record_may_name_its_version_itself(decoded: Decode) -> None:
    first, second = schema(col("a", "int", id=1)), schema(col("b", "int", id=1), col("n", "int", id=2, default="7"))
    table = DecoderTable((Decoder(1, first, 0), Decoder(2, second, 10)), second, "v", True)
    values = [b'{"v":1,"a":5}', b'{"v":2,"b":5}', b'{"a":5}', b'{"b":5}', b'{"v":3,"b":5}', b'{"v":1,"a":5,"u":1}']
    found = decoded(values, table, items=[99, 0, 0, 10, 0, 0])
    assert [row if error is None else error for row, error, _ in found] == [
        {"b": 5, "n": 7}, {"b": 5, "n": 7}, {"b": 5, "n": 7}, {"b": 5, "n": 7}, "unknown schema version 3",
        {"b": 5, "n": 7},
    ]  # fmt: skip
    assert [unknown for *_, unknown in found] == [False] * 5 + [True]


ALIASED = schema(col("id", "int"), col("live", "int"), col("rated", "int", default="7"), col("Case"))
ALIASES = (("former", "live"), ("oldest", "live"), ("mark", "rated"), ("case", "Case"))
ALIAS_CASES = [
    (b'{"id":1,"live":1}', {"live": 1, "rated": 7}),
    (b'{"id":1,"former":2}', {"live": 2, "rated": 7}),
    (b'{"id":1,"oldest":3}', {"live": 3, "rated": 7}),
    (b'{"id":1,"live":1,"former":2}', {"live": 1, "rated": 7}),
    (b'{"id":1,"live":null,"former":2}', {"live": None, "rated": 7}),
    (b'{"id":1,"former":null}', {"live": None, "rated": 7}),
    (b'{"id":1,"mark":5}', {"live": None, "rated": 5}),
    (b'{"id":1,"mark":null}', {"live": None, "rated": None}),
    (b'{"id":1,"rated":7,"mark":5}', {"live": None, "rated": 7}),
    (b'{"id":1,"rated":null,"mark":5}', {"live": None, "rated": None}),
    (b'{"id":1,"case":"x"}', {"live": None, "rated": 7, "Case": "x"}),
    (b'{"id":1,"case":"x","Case":"y"}', {"live": None, "rated": 7, "Case": "y"}),
]


def test_a_former_name_stands_in_for_an_absent_key(decoded: Decode) -> None:
    table = DecoderTable((Decoder(1, ALIASED, 0, ALIASES),), ALIASED, finds_unknown_fields=True)
    found = decoded([value for value, _ in ALIAS_CASES], table)
    expected = [({"id": 1, "Case": None, **row}, None, False) for _, row in ALIAS_CASES]
    assert found == expected


def test_a_former_name_of_the_wrong_type_is_refused(decoded: Decode) -> None:
    table = DecoderTable((Decoder(1, ALIASED, 0, ALIASES),), ALIASED)
    assert decoded([b'{"former":"x"}'], table)[0][1] == "former is not a value of type INT"
