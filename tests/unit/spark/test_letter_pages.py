"""Pages of dead letters, of a source itself and of views over several."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from laminae.spark.query import dead_letter_files
from laminae.spark.query.dead_letter_files import letters_of

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def write(place: Path, name: str, offsets: range, relations: list[str] | None = None) -> Path:
    columns = {"offset": pa.array(offsets, pa.int64())}
    if relations is not None:
        columns["relation"] = pa.array(relations)
    pq.write_table(pa.table(columns), place / name)
    return place / name


def test_pages_count_the_letters_of_their_source_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of a view over two sources has letters of both."""
    mixed = write(tmp_path, "mixed", range(1000, 1100), ["other"] * 97 + ["wanted"] * 3)
    own = write(tmp_path, "own", range(10))
    segments = [(1, [mixed], {"view_name": "v"}), (2, [own], {})]
    monkeypatch.setattr(dead_letter_files, "_segments", lambda *_: iter(segments))
    pages = [letters_of(None, tmp_path, "wanted", range(start, start + 4)) for start in range(0, 16, 4)]
    found = [offset for page in pages for offset in page["offset"].to_pylist()]
    assert found == [1097, 1098, 1099, *range(10)]
