"""Fractions in columns of whole numbers: a person lets them in where the type was inferred, and nobody unasked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from laminae.errors import DependentsExist, EvolutionRejected, ValuesNotExact

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import laminae as lm

LETTERS = "SELECT CAST(value AS STRING), reason FROM laminar_catalog.dead_letters WHERE replayed_by IS NULL ORDER BY 1"


def test_a_fraction_in_an_inferred_column_waits_for_a_person_and_is_let_in(db: lm.Database) -> None:
    db.sql("CREATE SOURCE s (id BIGINT) WITH (evolve = 'auto')")
    db.insert("s", [{"id": 1, "n": 1}])
    db.run()
    db.insert("s", [{"id": 2, "n": 1.5, "more": "x"}, {"id": 3, "n": 3}])
    db.run()
    # What is new and lossless does not wait with it.
    assert [str(field.type) for field in db.schema("s")] == ["int64", "int64", "string"]
    ((change, changes),) = db.sql("SELECT id, changes FROM laminar_catalog.pending_changes").fetchall()
    assert changes == "n: narrow BIGINT to DOUBLE"
    ((value, reason),) = db.sql(LETTERS).fetchall()
    assert (value, reason) == (
        '{"id":2,"n":1.5,"more":"x"}',
        f"n is not a value of type BIGINT; it may fit when change {change} is confirmed",
    )
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT n, count(*) AS c FROM s GROUP BY n")
    with pytest.raises(DependentsExist, match="materialized view v"):
        db.sql(f"ALTER SOURCE s CONFIRM CHANGE {change}")
    db.sql("DROP MATERIALIZED VIEW v")
    db.sql(f"ALTER SOURCE s CONFIRM CHANGE {change}")
    db.run()
    assert db.sql("SELECT id, n, more FROM s ORDER BY id").fetchall() == [(1, 1.0, None), (2, 1.5, "x"), (3, 3.0, None)]
    assert db.sql(LETTERS).fetchall() == []


SHAPES = [
    ("BIGINT", lambda n: n),
    ("nested", lambda n: {"a": n}),
    ("list", lambda n: [1, n]),
    ("both", lambda n: [{"a": [n]}]),
]


@pytest.mark.parametrize("shape", [shape for _, shape in SHAPES], ids=[name for name, _ in SHAPES])
def test_a_change_that_would_round_values_that_are_there_cannot_be_confirmed(
    db: lm.Database, shape: Callable[[float], object]
) -> None:
    large = 2**53 + 1
    db.sql("CREATE SOURCE s (id BIGINT) WITH (evolve = 'auto')")
    db.insert("s", [{"id": 1, "n": shape(2**53)}, {"id": 2, "n": shape(large)}, {"id": 3, "n": None}])
    db.run()
    db.insert("s", [{"id": 4, "n": shape(1.5)}])
    db.run()
    ((change,),) = db.sql("SELECT id FROM laminar_catalog.pending_changes").fetchall()
    rows = db.sql("SELECT * FROM s ORDER BY id").fetchall()
    assert [row[0] for row in rows] == [1, 2, 3]
    with pytest.raises(ValuesNotExact, match=str(large)):
        db.sql(f"ALTER SOURCE s CONFIRM CHANGE {change}")
    assert db.sql("SELECT * FROM s ORDER BY id").fetchall() == rows
    assert len(db.sql(LETTERS).fetchall()) == 1
    db.sql(f"ALTER SOURCE s REJECT CHANGE {change}")


def test_a_large_number_after_the_change_is_the_nearest_double_and_no_null(db: lm.Database) -> None:
    """As in any column of that type."""
    db.sql("CREATE SOURCE s (id BIGINT) WITH (evolve = 'auto')")
    db.insert("s", [{"id": 1, "n": 2**53}, {"id": 2, "n": 1.5}])
    db.run()
    if pending := db.sql("SELECT id FROM laminar_catalog.pending_changes").fetchall():
        db.sql(f"ALTER SOURCE s CONFIRM CHANGE {pending[0][0]}")
    db.insert("s", [{"id": 3, "n": 2**53 + 1}])
    db.run()
    expected = [(1, float(2**53)), (2, 1.5), (3, float(2**53 + 1))]
    assert db.sql("SELECT id, n FROM s ORDER BY id").fetchall() == expected
    assert db.sql(LETTERS).fetchall() == []


@pytest.mark.parametrize("mode", ["NONE", "BACKWARD", "FULL_TRANSITIVE"])
def test_a_fraction_holds_no_new_column_back(db: lm.Database, mode: str) -> None:
    db.sql(f"CREATE SOURCE s (id BIGINT) WITH (evolve = 'confirm', compatibility = '{mode}')")
    db.insert("s", [{"id": 1, "n": 1}])
    db.run()
    ((first,),) = db.sql("SELECT id FROM laminar_catalog.pending_changes").fetchall()
    db.sql(f"ALTER SOURCE s CONFIRM CHANGE {first}")
    db.run()
    db.insert("s", [{"id": 2, "n": 1.5, "more": "x"}, {"id": 3, "n": 3, "more": "y"}])
    db.run()
    ((second, changes),) = db.sql("SELECT id, changes FROM laminar_catalog.pending_changes").fetchall()
    assert changes == "more: add STRING"
    db.sql(f"ALTER SOURCE s CONFIRM CHANGE {second}")
    db.run()
    assert db.sql("SELECT id, n, more FROM s ORDER BY id").fetchall() == [(1, 1, None), (3, 3, "y")]
    pending = db.sql("SELECT id, changes FROM laminar_catalog.pending_changes").fetchall()
    if mode != "NONE":
        # No mode lets a type be narrowed: the fraction stays a dead letter, and holds nothing else back.
        assert pending == []
        assert [value for value, _ in db.sql(LETTERS).fetchall()] == ['{"id":2,"n":1.5,"more":"x"}']
        return
    ((third, changes),) = pending
    assert changes == "n: narrow BIGINT to DOUBLE"
    db.sql(f"ALTER SOURCE s CONFIRM CHANGE {third}")
    db.run()
    assert db.sql("SELECT id, n, more FROM s ORDER BY id").fetchall() == [(1, 1.0, None), (2, 1.5, "x"), (3, 3.0, "y")]


def test_a_column_that_refresh_found_in_the_data_is_no_declared_one(db: lm.Database, inbox: Path) -> None:
    db.sql(
        f"CREATE SOURCE s (id BIGINT) WITH (connector = 'files', format = 'json', path = '{inbox}', evolve = 'auto')"
    )
    (inbox / "1.json").write_text('{"id": 1, "n": 1}\n')
    db.sql("ALTER SOURCE s REFRESH SCHEMA")
    assert str(db.schema("s").field("n").type) == "int64"
    (inbox / "2.json").write_text('{"id": 2, "n": 1.5}\n')
    db.run()
    ((change, changes),) = db.sql("SELECT id, changes FROM laminar_catalog.pending_changes").fetchall()
    assert changes == "n: narrow BIGINT to DOUBLE"
    db.sql(f"ALTER SOURCE s CONFIRM CHANGE {change}")
    db.run()
    assert db.sql("SELECT id, n FROM s ORDER BY id").fetchall() == [(1, 1.0), (2, 1.5)]


def test_a_declared_integer_stays_one_whatever_the_data_have(db: lm.Database, inbox: Path) -> None:
    db.sql("CREATE SOURCE j (id BIGINT, a INT) WITH (evolve = 'auto')")
    db.sql(
        "CREATE SOURCE c (id BIGINT, a INT) "
        f"WITH (connector = 'files', format = 'csv', path = '{inbox}', evolve = 'auto')"
    )
    db.insert("j", [{"id": 1, "a": 1}, {"id": 2, "a": 1.5}, {"id": 3, "a": 5.0}])
    (inbox / "1.csv").write_text("id,a\n1,1\n2,1.5\n3,5.0\n")
    db.run()
    for source in ("j", "c"):
        assert str(db.schema(source).field("a").type) == "int32"
        assert db.sql(f"SELECT id, a FROM {source}").fetchall() == [(1, 1)]  # noqa: S608  # a name from above
    assert db.sql("SELECT * FROM laminar_catalog.pending_changes").fetchall() == []
    assert len(db.sql(LETTERS).fetchall()) == 4
    with pytest.raises(EvolutionRejected, match="FORCE"):
        db.sql("ALTER SOURCE j ALTER COLUMN id TYPE DOUBLE")
    db.sql("ALTER SOURCE j ALTER COLUMN id TYPE DOUBLE FORCE; ALTER SOURCE j ALTER COLUMN a TYPE DOUBLE")
    assert db.replay_dead_letters("j").rows == 2
    assert db.sql("SELECT id, a FROM j ORDER BY id").fetchall() == [(1.0, 1.0), (2.0, 1.5), (3.0, 5.0)]
