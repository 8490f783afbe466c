"""Confluent's framing: what is taken apart, put together and refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laminae.codec.confluent import Framed, join, split
from laminae.errors import InvalidFrame


@settings(deadline=None)
@given(st.integers(0, 2**31 - 1), st.binary(max_size=20))
def test_a_frame_comes_apart_as_it_was_put_together(schema_id: int, body: bytes) -> None:
    assert split(join(Framed(schema_id, body))) == Framed(schema_id, body)


def test_the_id_is_written_with_its_highest_byte_first() -> None:
    assert join(Framed(258, b"x")) == b"\0\0\0\1\2x"


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (b"", "it has 0 bytes"),
        (b"\0\0\0\1", "it has 4 bytes"),
        (b'{"a":1}', "it begins with 123"),
        (b"\1" + b"0" * 16, "GUID"),
        (b"\0\xff\0\0\0", "not negative"),
    ],
)
def test_a_message_without_a_frame_is_refused_with_what_it_has(message: bytes, told: str) -> None:
    with pytest.raises(InvalidFrame, match=told):
        split(message)
