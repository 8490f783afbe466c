"""A dead letter of a text file has the number of its line, counted from 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.engine.source_spec import parse_options
from laminae.spark.sources.files.line_numbers import line_numbers, position_text

if TYPE_CHECKING:
    from pathlib import Path

CONTENT = b'\xef\xbb\xbfid,t\r\nx,b\r\n2,"two\r\nlines"\r\ny,"three\r\nlines"\r\n\r\nx,b\r\na\rb\nlast'


def test_records_are_found_in_their_order_whatever_ends_their_lines(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(CONTENT)
    wanted = {
        b"x,b": [1, 7],
        b'y,"three\nlines"': [4],
        b'y,"three\r\nlines"': [4],
        b"\r": [6],
        b"a\rb": [8],
        b"last": [9],
        b"id,t": [0],
        b"gone": [None],
    }
    for record, numbers in wanted.items():
        assert line_numbers([str(file)] * len(numbers), [record] * len(numbers)) == numbers, record


def test_a_file_that_is_gone_and_a_letter_without_a_value_have_no_line(tmp_path: Path) -> None:
    assert line_numbers([str(tmp_path / "gone"), None, str(tmp_path)], [b"x", b"x", None]) == [None, None, None]


def test_a_position_names_the_file_and_the_line(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b"1\n2\n")
    options = (("connector", "files"),)
    assert position_text(parse_options(options), str(file), None, b"2") == f"{file} at 1"
    assert position_text(parse_options(options), None, 7, b"2") == "at 7"
    assert position_text(parse_options(()), None, None, b"2") == "the epoch"
