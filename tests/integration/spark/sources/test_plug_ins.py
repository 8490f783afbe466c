"""A transport and a format that are not shipped: each is one folder and one row of a table, and runs as others do."""

from __future__ import annotations

import gzip
import io
import tarfile
from typing import TYPE_CHECKING

import pytest

import laminae as lm
from laminae.engine.options import register_connector, register_format
from laminae.engine.options.connectors import CONNECTORS, FORMATS
from laminae.errors import NotAvailable
from tests.support import logfmt, tarball

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

VIEW = "CREATE MATERIALIZED VIEW totals AS SELECT city, SUM(amount) AS total FROM orders GROUP BY city"


@pytest.fixture
def plug_ins() -> Iterator[None]:
    known = dict(CONNECTORS)
    register_connector(tarball.ROW)
    register_format(logfmt.ROW, connectors=("files", "tarball"))
    yield
    CONNECTORS.clear()
    CONNECTORS.update(known)
    del FORMATS["logfmt"]


@pytest.fixture
def db(spark: SparkSession, tmp_path: Path, plug_ins: None) -> Iterator[lm.Database]:
    with lm.connect(str(tmp_path / "home"), spark=spark) as database:
        yield database


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


def tar_of_day(path: Path, **files: str) -> None:
    with tarfile.open(path, "w") as tar:
        for name, text in files.items():
            packed = gzip.compress(text.encode())
            member = tarfile.TarInfo(f"{name}.json.gz")
            member.size = len(packed)
            tar.addfile(member, io.BytesIO(packed))


def totals(db: lm.Database) -> list[tuple[object, ...]]:
    return db.sql("SELECT city, total FROM totals ORDER BY city").fetchall()


def test_a_new_transport_feeds_a_view_epoch_by_epoch(db: lm.Database, inbox: Path) -> None:
    db.sql(f"CREATE SOURCE orders (city STRING, amount BIGINT) WITH (connector = 'tarball', path = '{inbox}')")
    db.sql(VIEW)
    tar_of_day(inbox / "monday.tar", a='{"city": "Bern", "amount": 1}\n{"city": "Rome", "amount": 2}\n')
    db.run()
    assert totals(db) == [("Bern", 1), ("Rome", 2)]
    tar_of_day(inbox / "tuesday.tar", a='{"city": "Bern", "amount": 4}\n', b='{"city": "Oslo", "amount": 8}\n')
    db.run()
    assert totals(db) == [("Bern", 5), ("Oslo", 8), ("Rome", 2)]
    assert db.sql("SELECT city, amount FROM orders ORDER BY amount").fetchall() == [
        ("Bern", 1), ("Rome", 2), ("Bern", 4), ("Oslo", 8),
    ]  # fmt: skip


def test_a_new_format_feeds_a_view_and_its_dead_letters_keep_their_lines(db: lm.Database, inbox: Path) -> None:
    db.sql(
        "CREATE SOURCE orders (city STRING, amount BIGINT) "
        f"WITH (connector = 'files', format = 'logfmt', path = '{inbox}', evolve = 'auto')"
    )
    db.sql(VIEW)
    (inbox / "a.log").write_text('city=Bern amount=1\ncity="New York" amount=2\ncity=Rome amount=much\n')
    db.run()
    assert totals(db) == [("Bern", 1), ("New York", 2)]
    ((line, reason),) = db.sql("SELECT CAST(value AS STRING), reason FROM laminar_catalog.dead_letters").fetchall()
    assert line == "city=Rome amount=much"
    assert "amount" in reason
    (inbox / "b.log").write_text("city=Bern amount=4 paid=true\n")
    db.run()
    assert db.sql("SELECT amount, paid FROM orders ORDER BY amount").fetchall() == [(1, None), (2, None), (4, True)]
    assert totals(db) == [("Bern", 5), ("New York", 2)]


def test_a_new_transport_carries_a_new_format(db: lm.Database, inbox: Path) -> None:
    db.sql(
        "CREATE SOURCE orders (city STRING, amount BIGINT) "
        f"WITH (connector = 'tarball', format = 'logfmt', path = '{inbox}')"
    )
    db.sql(VIEW)
    tar_of_day(inbox / "monday.tar", a="city=Bern amount=1\ncity=Bern amount=2\n")
    db.run()
    assert totals(db) == [("Bern", 3)]


def test_a_format_that_a_new_transport_does_not_carry_is_refused(db: lm.Database, inbox: Path) -> None:
    db.sql(f"CREATE SOURCE orders (id BIGINT) WITH (connector = 'tarball', format = 'csv', path = '{inbox}')")
    with pytest.raises(NotAvailable, match="Reading csv from tar files"):
        db.run()
