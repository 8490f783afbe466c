"""Types of Spark 4.2 that nobody could read are refused by name when they are declared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import laminae as lm
from laminae.errors import DdlSyntaxError, InvalidSchema

if TYPE_CHECKING:
    from pathlib import Path

REFUSED = {
    "INTERVAL YEAR TO MONTH": InvalidSchema,
    "ARRAY<INTERVAL MONTH>": InvalidSchema,
    "STRUCT<a: MAP<STRING, INTERVAL YEAR>>": InvalidSchema,
    "INTERVAL": DdlSyntaxError,
    "GEOMETRY(4326)": DdlSyntaxError,
    "GEOGRAPHY(4326)": DdlSyntaxError,
    "STRING COLLATE UTF8_LCASE": DdlSyntaxError,
    "NULL": DdlSyntaxError,
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_type_that_nobody_could_read_is_refused_when_it_is_declared(tmp_path: Path, kind: str) -> None:
    with lm.connect(str(tmp_path / "home")) as db:
        with pytest.raises(REFUSED[kind]):
            db.sql(f"CREATE SOURCE s (id INT, c {kind})")
        db.sql("CREATE SOURCE s (id INT)")
        with pytest.raises(REFUSED[kind]):
            db.sql(f"ALTER SOURCE s ADD COLUMN c {kind}")
