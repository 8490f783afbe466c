"""Whatever Spark answers can be looked at: as tuples, as Arrow, as pandas, printed; what fails is a LaminaeError."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from laminae.errors import QueryFailed

if TYPE_CHECKING:
    from pathlib import Path

    import laminae as lm

VALUES = {
    "DATE'+99999-01-01'": "+99999-01-01",
    "DATE'-0044-03-15'": "-0044-03-15",
    "TIMESTAMP_NTZ'+20000-01-01 00:00:00.5'": "+20000-01-01 00:00:00.5",
    "TIMESTAMP'-9999-01-01 00:00:00'": "-9999-01-01 00:00:00+00:00",
    "array(DATE'+99999-01-01')": ["+99999-01-01"],
    "named_struct('d', DATE'+99999-01-01', 'n', 1)": {"d": "+99999-01-01", "n": 1},
    "map('k', DATE'+99999-01-01')": [("k", "+99999-01-01")],
    "make_interval(1, 2, 3)": "1 years 2 months 21 days",
    "INTERVAL '1' YEAR": "INTERVAL '1' YEAR",
    "array(INTERVAL '1' MONTH)": ["INTERVAL '1' MONTH"],
    "array()": [],
    "map()": [],
    "array(array())": [[]],
    "NULL": None,
    "CAST(X'FF41' AS STRING)": "�A",
    "array(named_struct('t', CAST(X'FF41' AS STRING)))": [{"t": "�A"}],
    "map(CAST(X'FF41' AS STRING), CAST(X'FE' AS STRING))": [("�A", "�")],
    "CAST(1 AS DECIMAL(38, 37))": Decimal("1." + "0" * 37),
}
FAILURES = {
    "1 / 0": "DIVIDE_BY_ZERO",
    "CAST('x' AS INT)": "CAST_INVALID_INPUT",
    "raise_error('on purpose')": "on purpose",
    "named_struct('a', 1, 'a', 2)": "Duplicated field names",
}


def test_every_value_can_be_looked_at_in_every_way(db: lm.Database, capsys: pytest.CaptureFixture[str]) -> None:
    db.sql("CREATE SOURCE one (id BIGINT)")
    db.insert("one", [{"id": 1}])
    db.run()
    columns = ", ".join(f"{text} AS c{number}" for number, text in enumerate(VALUES))
    answer = db.sql(f"SELECT {columns}, 1 AS twin, 2 AS twin FROM one")  # noqa: S608  # literals of this file
    assert answer.fetchall() == [(*VALUES.values(), 1, 2)]
    assert len(answer.df()) == 1
    assert "+99999-01-01" in repr(answer)
    answer.show()
    assert "+99999-01-01" in capsys.readouterr().out
    for text, problem in FAILURES.items():
        query = f"SELECT {text} FROM one"  # noqa: S608  # literals of this file
        for look in ("fetchall", "fetchone", "arrow", "df", "show", "__len__", "__iter__"):
            with pytest.raises(QueryFailed, match=problem):
                getattr(db.sql(query), look)()
        assert problem in repr(db.sql(query))


def test_a_dead_letter_that_is_not_utf8_is_read_by_the_documented_query(db: lm.Database, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_bytes(b'{"id": 1}\n{"id": \xff}\n')
    db.sql(f"CREATE SOURCE f (id BIGINT) WITH (connector = 'files', format = 'json', path = '{tmp_path / 'in'}')")
    db.run()
    documented = "SELECT CAST(value AS STRING) AS record, reason FROM laminar_catalog.dead_letters"
    ((record, reason),) = db.sql(documented).fetchall()
    assert record == '{"id": �}'
    assert reason
    assert db.dead_letters("f").arrow().column("value").to_pylist() == [b'{"id": \xff}']
