"""More schema versions than one plan decodes: live records and a re-read come out the same."""

import pytest

import laminae as lm
from laminae.engine.epochs import MOST_STAMPS

VERSIONS = MOST_STAMPS + 4


@pytest.fixture
def db(spark, tmp_path):
    with lm.connect(str(tmp_path / "home"), spark=spark) as database:
        yield database


def test_stamped_records_of_more_versions_than_a_plan_holds(db):
    db.sql("CREATE SOURCE s (id BIGINT NOT NULL)")
    for number in range(VERSIONS):
        db.insert("s", [{"id": number, f"c{number}": "kept", "other": "of no version"}])
        db.sql(f"ALTER SOURCE s ADD COLUMN c{number + 1} STRING DEFAULT 'none'")
    db.run()
    rows = db.sql(f"SELECT id, c1, c{VERSIONS - 1} FROM s ORDER BY id").fetchall()  # noqa: S608  # fixed above
    assert [row[0] for row in rows] == list(range(VERSIONS))
    assert [row[1] for row in rows] == ["none", "kept", *["none"] * (VERSIONS - 2)]
    assert [row[2] for row in rows] == [*["none"] * (VERSIONS - 1), "kept"]


def test_records_whose_place_gives_them_more_versions_than_a_plan_holds(db, tmp_path):
    incoming = tmp_path / "in"
    incoming.mkdir()
    db.sql(f"CREATE SOURCE s (id BIGINT) WITH (connector = 'files', format = 'json', path = '{incoming}')")
    pipeline = db.start("10 milliseconds")
    try:
        for number in range(VERSIONS):
            (incoming / f".{number}").write_text(f'{{"id": {number}, "c{number}": "kept"}}\n')
            (incoming / f".{number}").rename(incoming / f"{number:03}.json")
            pipeline.process_all_available()
            db.sql(f"ALTER SOURCE s ADD COLUMN c{number + 1} STRING")
    finally:
        pipeline.stop()
    rows = db.sql(f"SELECT id, c1, c{VERSIONS - 1} FROM s ORDER BY id").fetchall()  # noqa: S608  # fixed above
    assert rows == [(n, "kept" if n == 1 else None, "kept" if n == VERSIONS - 1 else None) for n in range(VERSIONS)]
