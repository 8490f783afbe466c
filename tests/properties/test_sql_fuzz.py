"""Any text given to `sql` succeeds or raises a LaminaeError, and never leaves a change half applied."""

import contextlib

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import laminae as lm
from laminae.errors import LaminaeError, NotAvailable
from laminae.schema.projection import projection_between

FUZZ = settings(
    max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)

WORDS = [
    "ALTER",
    "SOURCE",
    "s",
    "ADD",
    "DROP",
    "COLUMN",
    "RENAME",
    "TO",
    "TYPE",
    "SET",
    "NOT",
    "NULL",
    "DEFAULT",
    "FIRST",
    "AFTER",
    "FORCE",
    "RESTRICT",
    "IF",
    "EXISTS",
    "CREATE",
    "MATERIALIZED",
    "VIEW",
    "SINK",
    "FROM",
    "AS",
    "SELECT",
    "WITH",
    "EMIT",
    "CHANGES",
    "EXPLAIN",
    "DESCRIBE",
    "SHOW",
    "SOURCES",
    "CONFIRM",
    "CHANGE",
    "1",
    "a",
    "b",
    "m.x",
    "`a",
    "b`",
    "INT",
    "BIGINT",
    "STRING",
    "STRUCT<x:",
    "INT>",
    "DECIMAL(4,2)",
    "'x'",
    "7",
    "-1",
    "1.5",
    ";",
    "(",
    ")",
    ",",
    "=",
    "*",
    "laminar_catalog.schema_history",
    "COMPATIBILITY",
    "FULL",
    "connector",
    "'files'",
    "X'0g'",
    '"',
    "'",
    "`",
    "--",
    "/*",
    "INTERVAL",
    "'5'",
    "SECOND",
    "PRIMARY",
    "KEY",
    "WATERMARK",
    "FOR",
    "CASCADE",
    "COUNT(*)",
    "\x00",
    "é",
]
STATEMENTS = [
    "ALTER SOURCE s ADD COLUMN c STRING DEFAULT 'x' AFTER a FORCE",
    "ALTER SOURCE s ALTER COLUMN m.x TYPE BIGINT",
    "ALTER SOURCE s DROP COLUMN IF EXISTS c",
    "CREATE SOURCE IF NOT EXISTS t (a INT NOT NULL, PRIMARY KEY (a)) WITH (connector = 'push')",
    "SELECT source_name, count(*) FROM laminar_catalog.schema_history GROUP BY source_name",
    "CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT a, count(*) AS n FROM s GROUP BY a EMIT CHANGES",
    "EXPLAIN ALTER SOURCE s SET COMPATIBILITY = FULL",
    "DROP MATERIALIZED VIEW IF EXISTS v; SET late_retention = '3 days'",
]


@st.composite
def mutated(draw):
    text = draw(st.sampled_from(STATEMENTS))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text)))
        edit = draw(st.sampled_from(["cut", "insert", "twice"]))
        if edit == "cut":
            text = text[:at] + text[at + draw(st.integers(1, 8)) :]
        elif edit == "insert":
            text = text[:at] + draw(st.sampled_from(WORDS)) + text[at:]
        else:
            text = text[:at] + text[at // 2 :]
    return text


TEXTS = st.one_of(st.text(max_size=60), st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join), mutated())


def no_spark(database):
    """What Spark alone can read is not tried here: another JVM beside that of the Spark tests is too much."""
    raise NotAvailable(feature="Spark", problem="this test has none", advice="Give the test a session.")


@pytest.fixture(scope="module")
def db(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch, lm.connect(str(tmp_path_factory.mktemp("fuzz"))) as database:
        patch.setattr(lm.Database, "_on_spark", no_spark)
        database.sql("CREATE SOURCE s (a INT, m STRUCT<x: INT>)")
        yield database


@FUZZ
@given(text=TEXTS)
def test_random_text_never_escapes_laminae_error(db, text):
    with contextlib.suppress(LaminaeError):
        db.sql(text)
    for row in db.sql("SHOW SOURCES").fetchall():
        name, version = row[0], row[3]
        versions = db._catalog.versions(db._engine.source(name).id)
        assert [entry.version for entry in versions] == list(range(1, version + 1))
        assert db.schema(name).equals(versions[-1].schema, check_metadata=True)
        first = pa.RecordBatch.from_pylist([], versions[0].schema)
        assert projection_between(versions[0].schema, versions[-1].schema).project_batch(first).num_rows == 0
