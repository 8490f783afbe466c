"""Records that nobody would write, through the real decoders: each is a row or a dead letter, none is lost."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from laminae.spark.sources.log_head import Head, log_directory
from laminae.spark.sources.push import _write_item
from tests.support.fuzzing import COLUMNS, SEED, many, mutated_bytes, mutated_csv, mutated_event, mutated_json

if TYPE_CHECKING:
    from pathlib import Path

    import laminae as lm

# Of 100,000 inputs in `make chaos`, these are 60,000; the others are in tests/properties/test_api_fuzz.py.
MANY, BATCH, FEW = 15_000, 3_000, 250
CSV_COLUMNS = "id BIGINT, n INT, d DOUBLE, x DECIMAL(10, 2), t STRING, b BOOLEAN, day DATE, at TIMESTAMP"
CSV_HEADER = b"id,n,d,x,t,b,day,at"
PARQUET_ROWS = 50
# Types that a file may have for columns of other types.
PARQUET_COLUMNS = {
    "id": [pa.int64(), pa.int32(), pa.string(), pa.float64(), pa.int16()],
    "n": [pa.int32(), pa.int64(), pa.string(), pa.null()],
    "t": [pa.string(), pa.binary(), pa.large_string(), pa.int64()],
    "at": [pa.timestamp("us", "UTC"), pa.timestamp("ns"), pa.timestamp("ms", "UTC"), pa.int64(), pa.string()],
    "new": [pa.string(), pa.list_(pa.int64())],
}


def push_bytes(db: lm.Database, source: str, records: list[bytes]) -> None:
    """Into the spool as they are: `insert` takes rows only, and writes them well."""
    known = db._engine.source(source)
    directory = log_directory(known.name, known.id, db.home)
    with directory.writing() as head:
        _write_item(directory, head, records, None)
        directory.publish(Head(head.items + 1, head.extent + len(records)))


def letters(db: lm.Database, source: str) -> int:
    return db.dead_letters(source, limit=10**9).arrow().num_rows


def rows(db: lm.Database, source: str) -> int:
    ((count,),) = db.sql(f"SELECT COUNT(*) FROM {source}").fetchall()  # noqa: S608  # a name of this file
    return int(str(count))


def batches(count: int, batch: int) -> list[tuple[int, int]]:
    """(size, seed) of each."""
    return [(min(batch, count - start), SEED + start) for start in range(0, count, batch)]


def fuzz(db: lm.Database, inbox: Path, count: int, batch: int) -> None:
    db.sql(f"CREATE SOURCE plain ({COLUMNS})")
    db.sql(f"CREATE SOURCE growing ({COLUMNS}) WITH (evolve = 'auto', max_new_columns = '3')")
    events = "format = 'debezium-json', changelog = 'debezium'"
    db.sql(f"CREATE SOURCE events ({COLUMNS}, PRIMARY KEY (id)) WITH ({events})")
    for kind, columns in (("csv", CSV_COLUMNS), ("parquet", CSV_COLUMNS)):
        (inbox / kind).mkdir()
        place = f"connector = 'files', format = '{kind}', path = '{inbox / kind}'"
        db.sql(f"CREATE SOURCE of_{kind} ({columns}) WITH ({place})")
    db.sql("CREATE MATERIALIZED VIEW counted AS SELECT b, COUNT(*) AS n FROM plain GROUP BY b")
    sent, files = {"plain": 0, "growing": 0, "events": 0, "of_csv": 0}, 0
    for size, seed in batches(count, batch):
        for source in ("plain", "growing"):
            push_bytes(db, source, list(many(mutated_json, size, seed)))
            sent[source] += size
        push_bytes(db, "events", list(many(mutated_event, size, seed)))
        sent["events"] += size
        (inbox / "csv" / f"{seed}.csv").write_bytes(b"\n".join([CSV_HEADER, *many(mutated_csv, size, seed)]) + b"\n")
        sent["of_csv"] += size
        files += write_parquet(inbox / "parquet", max(4, size // 300), seed)
        db.run()
    for source in ("plain", "growing", "of_csv"):
        assert rows(db, source) + letters(db, source) == sent[source], (source, SEED)
    refused = db.dead_letters("of_parquet", limit=10**9).arrow().column("value")
    # A file that cannot be read is one letter, without a value.
    in_letters = refused.length() - refused.null_count + refused.null_count * PARQUET_ROWS
    assert rows(db, "of_parquet") + in_letters == files * PARQUET_ROWS, SEED
    epochs = db.sql(
        "SELECT source_name, SUM(rows), SUM(dead_letters) FROM laminar_catalog.epochs GROUP BY 1"
    ).fetchall()
    totals = {name: (int(str(good)), int(str(bad))) for name, good, bad in epochs}
    assert sum(totals["events"]) == sent["events"], (totals, SEED)
    ((in_view,),) = db.sql("SELECT SUM(n) FROM counted").fetchall()
    assert in_view == rows(db, "plain")
    assert min(min(totals[source]) for source in sent) > 0, totals


def write_parquet(place: Path, count: int, seed: int) -> int:
    """How many files, some of them broken."""
    chance = random.Random(seed)
    for number in range(count):
        names = [name for name in PARQUET_COLUMNS if chance.random() < 0.8] or ["id"]
        kinds = {name: chance.choice(PARQUET_COLUMNS[name][: chance.choice([1, 5])]) for name in names}
        table = pa.table({name: column_of(kind) for name, kind in kinds.items()})
        file = place / f"{seed}-{number}.parquet"
        pq.write_table(table, file)
        if chance.random() < 0.2:
            file.write_bytes(mutated_bytes(chance, file.read_bytes()[:-4]))
    return count


def column_of(kind: pa.DataType) -> pa.Array:
    if pa.types.is_null(kind) or pa.types.is_list(kind):
        return pa.nulls(PARQUET_ROWS, kind)
    numbers = pa.array(range(PARQUET_ROWS))
    if pa.types.is_binary(kind):
        return numbers.cast(pa.string()).cast(kind)
    return numbers.cast(kind)


def test_every_record_is_a_row_or_a_dead_letter(db: lm.Database, inbox: Path) -> None:
    fuzz(db, inbox, FEW, FEW)


@pytest.mark.chaos
def test_every_record_is_a_row_or_a_dead_letter_for_long(db: lm.Database, inbox: Path) -> None:
    fuzz(db, inbox, MANY, BATCH)
