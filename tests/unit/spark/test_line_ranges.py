"""Ranges of a file's bytes, and the lines that begin in each."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from laminae.spark.formats.json.arrow_lines import lines_from


@given(st.lists(st.binary(max_size=6).map(lambda line: line.replace(b"\n", b"x"))), st.booleans(), st.integers(1, 9))
def test_prop_every_line_begins_in_one_range(tmp_path_factory, lines, ends, size):
    text = b"\n".join(lines) + b"\n" * ends
    file = tmp_path_factory.mktemp("lines") / "a.json"
    file.write_bytes(text)
    ranges = [lines_from(str(file), start, start + size) for start in range(0, len(text), size)]
    found = [lines for lines in ranges if lines]
    assert b"".join(found) == text
    assert all(lines.endswith(b"\n") for lines in found[:-1])
