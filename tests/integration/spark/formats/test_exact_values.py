"""Every decoder gives the exact value of a record or refuses it with a reason, on every way that records are read."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from laminae.codec.decoders import Decoder, DecoderTable
from laminae.codec.json_lines import line_reader
from tests.support.exact_values import (
    COLUMNS,
    NESTED,
    Case,
    Unreadable,
    csv_cases,
    is_same,
    json_cases,
    said_by_csv,
    said_by_json,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    import laminae as lm

KINDS = {**COLUMNS, **NESTED}
# Beyond what Python's dates hold, so they are compared as numbers.
SHOWN = {
    "d": "unix_date(d)", "t": "unix_micros(t)", "l": "unix_micros(CAST(concat(CAST(l AS STRING), 'Z') AS TIMESTAMP))",
    "a": "transform(a, x -> unix_date(x))", "u": "CASE WHEN u IS NOT NULL THEN struct(unix_micros(u.t) AS t) END",
    "m": "CAST(m AS STRING)", "w": "CAST(w AS STRING)",
}  # fmt: skip


def shown(names: Sequence[str]) -> list[str]:
    return [f"{SHOWN.get(name, name)} AS {name}" for name in names]


def value_of(row: object, name: str) -> object:
    value = row[name]  # type: ignore[index]  # a Row
    if isinstance(value, bytearray):
        return bytes(value)
    return value.asDict() if hasattr(value, "asDict") else value


def differences(
    cases: Sequence[Case], results: Sequence[tuple[bool, object]], said: Callable[[Case], object]
) -> list[tuple[object, ...]]:
    """Records whose value was changed, and plain ones that were refused. A result: whether it is a row, its value."""
    wrong: list[tuple[object, ...]] = []
    for case, (is_row, value) in zip(cases, results, strict=True):
        try:
            exact = said(case)
        except Unreadable as why:
            if is_row:
                wrong.append((case, value, f"not readable: {why}"))
            continue
        if is_row and not is_same(value, exact, KINDS[case.column]):
            wrong.append((case, value, exact))
        if case.is_plain and not is_row:
            wrong.append((case, "refused", exact))
    return wrong


def schema_of(db: lm.Database) -> pa.Schema:
    db.sql(f"CREATE SOURCE every ({', '.join(f'{name} {kind}' for name, kind in KINDS.items())})")
    return db.schema("every")


def check_json(spark: SparkSession, db: lm.Database, seed: int, count: int) -> None:
    from laminae.spark.formats.json.decode import decode
    from laminae.spark.formats.protocol import ERROR, RAW_SCHEMA, ROW

    cases, schema = json_cases(Random(seed), count), schema_of(db)
    table = DecoderTable((Decoder(1, schema, 0),), schema)
    raw = spark.createDataFrame(
        [(None, bytearray(case.raw), "p", place, 0, None, None) for place, case in enumerate(cases)], RAW_SCHEMA
    )
    for exactly in (True, False):
        rows = decode(raw, table, exactly=exactly).selectExpr("offset", ERROR, f"{ROW}.*").orderBy("offset")
        found = rows.selectExpr(ERROR, *shown(list(KINDS))).collect()
        assert len(found) == len(cases)
        results = [(row[ERROR] is None, value_of(row, case.column)) for row, case in zip(found, cases, strict=True)]
        # The quick way may leave any record to the exact one, as long as what it takes is right.
        judged = cases if exactly else [replace(case, is_plain=False) for case in cases]
        wrong = differences(judged, results, said_by_json)
        assert not wrong, "\n".join(map(str, wrong))
    for case in cases:
        reader = line_reader(pa.schema([schema.field(case.column)]))
        lines = None if reader is None else reader.read(case.raw)
        if lines is not None and case.column in ("b", "i", "y", "x", "s", "o"):
            wrong = differences([case], [(True, lines[case.column][0].as_py())], said_by_json)
        assert not wrong, "\n".join(map(str, wrong))


def check_files(db: lm.Database, inbox: Path, seed: int, count: int, form: str) -> None:
    """Whole epochs: what is no row is a dead letter, and nothing else."""
    cases = csv_cases(Random(seed), count)
    for name in COLUMNS:
        mine = [case for case in cases if case.column == name]
        directory = inbox / name
        directory.mkdir()
        # A quote that is not closed takes the lines behind it along, so such a record has a file of its own.
        parts = [[case.raw for case in mine if case.raw.count(b'"') % 2 == 0]]
        parts += [[case.raw] for case in mine if case.raw.count(b'"') % 2]
        for place, records in enumerate(parts):
            (directory / f"{place}.csv").write_bytes(b"\n".join([f"{name},n".encode(), *records]) + b"\n")
        db.sql(
            f"CREATE SOURCE csv_{name} ({name} {COLUMNS[name]}, n INT) "
            f"WITH (connector = 'files', format = '{form}', path = '{directory}')"
        )
    db.run()
    letters: dict[str, int] = {}
    for (name,) in db.sql("SELECT source_name FROM laminar_catalog.dead_letters").fetchall():
        letters[name] = letters.get(name, 0) + 1
    for name in COLUMNS:
        mine = {int(case.raw.rsplit(b",", 1)[1]): case for case in cases if case.column == name}
        found = db.sql(f"SELECT * FROM csv_{name}").spark().selectExpr("n", *shown([name])).collect()  # noqa: S608
        rows = {row["n"]: value_of(row, name) for row in found}
        assert len(found) + letters.get(f"csv_{name}", 0) == len(mine), name
        results = [(number in rows, rows.get(number)) for number in mine]
        wrong = differences(list(mine.values()), results, said_by_csv)
        assert not wrong, "\n".join(map(str, wrong))


def test_json_values_are_exact_or_refused_on_every_way(spark: SparkSession, db: lm.Database) -> None:
    check_json(spark, db, 7, 900)


def test_csv_values_are_exact_or_dead_letters(db: lm.Database, inbox: Path) -> None:
    check_files(db, inbox, 7, 500, "csv")


@pytest.mark.chaos
@pytest.mark.parametrize("seed", range(20))
def test_many_json_values_are_exact_or_refused(spark: SparkSession, db: lm.Database, seed: int) -> None:
    check_json(spark, db, seed, 5000)


def test_json_records_are_rows_or_dead_letters_and_nothing_else(db: lm.Database, inbox: Path) -> None:
    cases = [case for case in json_cases(Random(11), 400) if b"\n" not in case.raw and b"\r" not in case.raw]
    columns = ", ".join(f"{name} {kind}" for name, kind in KINDS.items())
    db.sql(f"CREATE SOURCE plain ({columns}) WITH (connector = 'files', format = 'json', path = '{inbox}')")
    (inbox / "1.json").write_bytes(b"\n".join(case.raw for case in cases))
    events = inbox.with_name("events")
    events.mkdir()
    db.sql(
        f"CREATE SOURCE events (id INT NOT NULL, {columns}, PRIMARY KEY (id)) WITH (connector = 'files', "
        f"format = 'debezium-json', path = '{events}', \"debezium.time\" = 'millis')"
    )
    made = [b'{"before":null,"after":{"id":%d,%b,"source":{"lsn":%d},"op":"c"}' % (n, case.raw.lstrip()[1:], n)
            for n, case in enumerate(cases) if case.raw.lstrip().startswith(b"{")]  # fmt: skip
    (events / "1.json").write_bytes(b"\n".join(made))
    db.run()
    rows = db.sql("SELECT count(*) FROM plain").fetchall()[0][0]
    kept = db.sql("SELECT id, s FROM events").fetchall()
    letters = dict(db.sql("SELECT source_name, count(*) FROM laminar_catalog.dead_letters GROUP BY ALL").fetchall())
    assert rows + letters["plain"] == len(cases)
    assert len(kept) + letters["events"] == len(made)
    assert rows > 50
    assert len(kept) > 50
    texts = {n: text for n, text in kept if cases[n].column == "s"}
    mine = [cases[n] for n in texts]
    wrong = differences(mine, [(True, text) for text in texts.values()], said_by_json)
    assert not wrong, "\n".join(map(str, wrong))
