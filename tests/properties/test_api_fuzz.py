"""Whatever is handed to the public API and to `sql`, only a LaminaeError comes out, and the home stays whole."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

import laminae as lm
from laminae.state import RowSerializer
from tests.support.fuzzing import SEED, mutated_statement, odd_arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

# Of 100,000 inputs in `make chaos`, these are 40,000; records are in spark/formats/test_record_fuzz.py.
CALLS, STATEMENTS = 15_000, 25_000
FEW_CALLS, FEW_STATEMENTS = 1_500, 600
SCHEMA = "a INT, b STRING, ts TIMESTAMP, m STRUCT<x: INT>"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[lm.Database]:
    with lm.connect(tmp_path / "home") as database:
        database.sql(f"CREATE SOURCE s ({SCHEMA})")
        database.sql("CREATE MATERIALIZED VIEW v AS SELECT a, COUNT(*) AS n FROM s GROUP BY a")
        yield database


def calls(db: lm.Database) -> list[tuple[Callable[..., Any], int, int]]:
    """Each public call that starts no Spark, with the fewest and the most arguments that it takes."""
    projection = lm.apply_evolution(db.schema("s"), ())[1]
    snapshot = RowSerializer(db.schema("s")).snapshot()
    return [
        (lm.diff_schemas, 2, 2), (lm.evaluate_evolution, 2, 4), (lm.apply_evolution, 2, 2), (lm.is_safe_widening, 2, 3),
        (lm.check_avro, 2, 3), (projection.project_batch, 1, 1), (RowSerializer, 1, 1),
        (snapshot.resolve_schema_compatibility, 1, 1), (lambda home: lm.connect(home).close(), 1, 1),
        (lambda *given: lm.connect(db.home, *given).close(), 1, 4), (db.sql, 1, 1), (db.insert, 2, 2),
        (lambda rows: db.insert("s", rows), 1, 1), (db.history, 1, 1), (db.version, 1, 1), (db.schema, 1, 1),
        (db.last_change, 1, 1), (db.savepoint, 1, 1), (db.drop_savepoint, 1, 1), (db.restore, 1, 1), (db.repair, 1, 1),
        (lambda *given: db.dead_letters("s", *given), 2, 2), (lambda since: db.changes("v", since), 1, 1),
        (lambda limit: db.sql("SHOW SOURCES").show(limit), 1, 1), (db.gc, 0, 1), (db.status, 0, 0), (db.notices, 0, 0),
    ]  # fmt: skip


def fuzz_calls(db: lm.Database, count: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    chance, surface, odd = random.Random(SEED), calls(db), odd_arguments()
    for number in range(count):
        call, least, most = chance.choice(surface)
        arguments = [chance.choice(odd) for _ in range(chance.randint(least, most))]
        try:
            call(*arguments)
        except lm.LaminaeError:
            pass
        except Exception as problem:
            problem.add_note(f"seed {SEED}, input {number}: {call} of {arguments!r:.300}")
            raise


def fuzz_statements(db: lm.Database, count: int) -> None:
    chance = random.Random(SEED)
    for number in range(count):
        text = mutated_statement(chance)
        try:
            answer = db.sql(text) if "SELECT" not in text or "laminar_catalog" in text or "VIEW" in text else None
            if answer is not None and answer._table is not None:
                answer.fetchall()
        except lm.LaminaeError:
            pass
        except Exception as problem:
            problem.add_note(f"seed {SEED}, input {number}: {text!r}")
            raise
        if number % 100 == 0:
            for (
                name,
                *_,
            ) in db.sql("SELECT name FROM laminar_catalog.sources").fetchall():
                versions = db._catalog.versions(db._engine.source(str(name)).id)
                assert [entry.version for entry in versions] == list(range(1, db.version(str(name)) + 1))


def test_only_laminae_errors_come_out_of_the_api(db, monkeypatch, tmp_path, capsys) -> None:
    fuzz_calls(db, FEW_CALLS, monkeypatch, tmp_path)


@pytest.mark.spark
def test_only_laminae_errors_come_out_of_sql(db) -> None:
    fuzz_statements(db, FEW_STATEMENTS)


@pytest.mark.chaos
def test_only_laminae_errors_come_out_of_the_api_for_long(db, monkeypatch, tmp_path, capsys) -> None:
    fuzz_calls(db, CALLS, monkeypatch, tmp_path)


@pytest.mark.chaos
@pytest.mark.spark
def test_only_laminae_errors_come_out_of_sql_for_long(db) -> None:
    fuzz_statements(db, STATEMENTS)
