"""The command line: what it prints and with which code it ends."""

import json
import subprocess
import sys
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from laminae import Database
from laminae.catalog.model import SinkRecord
from laminae.cli import doctor, main
from laminae.errors import NotAvailable
from laminae.spark.driver import connectors
from laminae.spark.sinks.console import deliver_console
from laminae.spark.sinks.segment import Segment


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LAMINAE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["laminae", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return ended.value.code, printed.out, printed.err

    return call


@pytest.fixture
def orders(run):
    assert run("sql", "CREATE SOURCE orders (id BIGINT, amount INT)")[0] == 0
    return run


def test_sql_prints_the_answer_of_the_last_statement(orders):
    code, out, _ = orders("sql", "ALTER SOURCE orders ADD COLUMN c STRING; SHOW SOURCES")
    assert code == 0
    assert "orders" in out
    assert "push" in out


def test_sql_reads_a_file(orders, tmp_path):
    script = tmp_path / "change.sql"
    script.write_text("ALTER SOURCE orders ADD COLUMN c STRING -- a comment\n;")
    code, out, _ = orders("sql", "--file", str(script), "--json")
    assert (code, json.loads(out)[0]["version"]) == (0, 2)


def test_a_file_that_cannot_be_read_is_wrong_use(run, tmp_path):
    assert run("sql", "--file", str(tmp_path / "nope.sql"))[0] == 2


def test_sql_and_a_file_at_once_are_wrong_use(run, tmp_path):
    assert run("sql", "SHOW SOURCES", "--file", str(tmp_path / "x"))[0] == 2


def test_history_is_readable_and_json_is_for_machines(orders):
    code, out, _ = orders("history", "orders")
    assert code == 0
    assert "v1" in out
    assert "Created" in out
    _, out, _ = orders("history", "orders", "--json")
    assert [row["column_name"] for row in json.loads(out)] == ["id", "amount"]


def test_explain_runs_nothing_and_ends_with_one_when_it_would_be_refused(orders):
    code, out, _ = orders("explain", "ALTER SOURCE orders ALTER COLUMN amount TYPE BIGINT")
    assert (code, "widen INT to BIGINT" in out) == (0, True)
    code, out, _ = orders("explain", "ALTER SOURCE orders ALTER COLUMN amount TYPE SMALLINT", "--json")
    assert code == 1
    assert [line["detail"] for line in json.loads(out) if line["step"] == "outcome"] == ["is refused"]
    assert orders("explain", "SHOW SOURCES; SHOW SINKS")[0] == 2


def test_a_refusal_ends_with_one_and_wrong_use_with_two(orders):
    code, _, err = orders("sql", "ALTER SOURCE orders ALTER COLUMN amount TYPE SMALLINT")
    assert (code, "INCOMPATIBLE_CHANGE" in err, "remedy" in err) == (1, True, True)
    code, _, err = orders("sql", "ALTER SOURCE orders ADD")
    assert (code, "line 1, column" in err) == (2, True)
    assert orders("sql", "DESCRIBE SOURCE nope")[0] == 2


def test_looking_at_a_home_that_is_not_there_does_not_make_it(run, tmp_path):
    for command in (("history", "s"), ("explain", "SHOW SOURCES")):
        code, _, err = run(*command, "--home", str(tmp_path / "mistyped"))
        assert (code, "no home named" in err) == (2, True)
    assert not (tmp_path / "mistyped").exists()


@pytest.mark.spark
def test_json_is_json_whatever_the_answer_holds(run):
    _, out, _ = run("sql", "SELECT double('NaN') AS x, 1 AS a, 2 AS a", "--json")
    assert json.loads(out, parse_constant=pytest.fail) == [{"x": "nan", "a": 1, "a_3": 2}]


def test_version_is_printed(run):
    assert run("--version")[:2] == (0, "0.2.0\n")


def test_wide_answers_are_not_folded_when_piped(orders):
    _, out, _ = orders("sql", "SELECT * FROM laminar_catalog.schema_history")
    assert len(out.splitlines()) == 3


def test_errors_are_json_too_when_asked(orders):
    _, out, _ = orders("sql", "DESCRIBE SOURCE nope", "--json")
    assert json.loads(out)["error"] == "UNKNOWN_OBJECT"


@pytest.mark.parametrize(
    ("arguments", "message", "command"),
    [
        (("sql", "--nope"), "--nope", "laminae sql"),
        (("history",), "source", "laminae history"),
        (("dead-letters", "nope"), "nope", "laminae dead-letters"),
        (("explain", "SHOW SOURCES; SHOW SINKS"), "exactly one statement", "laminae"),
    ],
)
def test_wrong_arguments_are_json_too_when_asked(orders, arguments, message, command):
    code, out, err = orders(*arguments, "--json")
    told = json.loads(out)
    assert (code, told["error"], message in told["message"]) == (2, "WRONG_USE", True)
    assert told["remedy"].startswith(command)
    assert message in err


def test_the_history_of_a_dropped_source_says_that_it_was_dropped(orders):
    orders("sql", "DROP SOURCE orders")
    code, _, err = orders("history", "Orders")
    assert (code, "a source of this name was dropped at 20" in err) == (2, True)
    orders("sql", "CREATE SOURCE orders (other INT)")
    _, out, _ = orders("history", "orders", "--json")
    assert [row["column_name"] for row in json.loads(out)] == ["other"]


@pytest.mark.parametrize("asked", [False, True])
def test_what_a_console_sink_shows_is_kept_out_of_the_json(orders, monkeypatch, tmp_path, asked):
    """The run itself is in the tests with Spark; here the sink shows an epoch while it is under way."""
    (tmp_path / "segment").mkdir()
    rows = pa.table({"id": [4711]})
    pq.write_table(rows, tmp_path / "segment" / "1.parquet")
    segment = Segment(1, str(tmp_path / "segment"), rows.schema, 1)
    sink = SinkRecord(1, "k", "orders", (), "running", None, 0, datetime.now(UTC), 1, 0)
    monkeypatch.setattr(Database, "run", lambda _: deliver_console(segment, sink))
    code, out, err = orders("run", "--once", *(["--json"] if asked else []))
    assert code == 0
    assert ("4711" in out, "4711" in err) == (not asked, asked)
    if asked:
        assert [row["name"] for row in json.loads(out)] == ["orders"]


def test_doctor_says_which_java_and_what_is_missing(run):
    code, out, _ = run("doctor", "--no-spark", "--json")
    found = {row["part"]: row for row in json.loads(out)}
    assert {"laminae", "Python", "Java", "pyspark", "psycopg", "pyiceberg"} <= found.keys()
    assert code in (0, 1)


def test_doctor_starts_spark_where_it_can_and_says_what_it_lacks(run, monkeypatch):
    monkeypatch.setattr(doctor, "java", lambda: doctor.Finding("Java", "17"))
    finding = doctor.Finding("spark-avro", "not on Spark's class path", "for format avro: org.apache.spark:spark-avro")
    monkeypatch.setattr("laminae.cli.app.spark_connectors", lambda: (finding,))
    code, out, _ = run("doctor", "--json")
    assert json.loads(out)[-1] == {"part": "spark-avro", "state": finding.state, "advice": finding.advice}
    assert code == 0


def test_doctor_names_connectors_that_do_not_load_and_a_spark_that_does_not_start(monkeypatch):
    looked = (connectors.Looked("spark-avro", "format avro", "org.apache.spark:spark-avro_2.13:4.2.0"),)
    monkeypatch.setattr(connectors, "look_anew", lambda: looked)
    (finding,) = doctor.spark_connectors()
    assert (finding.state, finding.is_required) == ("not on Spark's class path", False)
    assert finding.advice == "for format avro: org.apache.spark:spark-avro_2.13:4.2.0"

    def fails():
        raise NotAvailable(feature="Spark", problem="it does not start: no memory", advice="Give it some.")

    monkeypatch.setattr(connectors, "look_anew", fails)
    (finding,) = doctor.spark_connectors()
    assert (finding.part, finding.is_required, "Give it some" in finding.advice) == ("Spark", True, True)


def test_doctor_advises_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    finding = doctor.java()
    assert finding.state == "not found"
    assert "openjdk-17" in finding.advice
    missing = doctor.package(doctor.Package("no-such-package", "no_such_module", "connector kafka", "kafka"))
    assert (missing.state, missing.is_required) == ("not installed", False)
    assert "laminae[kafka]" in missing.advice


def test_doctor_tells_a_package_that_is_there_from_one_that_loads():
    broken = doctor.package(doctor.Package("pyarrow", "pyarrow.no_such_part", "schemas"))
    assert "does not load: No module named 'pyarrow.no_such_part'" in broken.state
    assert "pip install" in broken.advice
    assert doctor.package(doctor.Package("pyarrow", "pyarrow", "schemas")).advice == ""


def test_demo_without_java_says_what_to_install(run, monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    code, _, err = run("demo")
    assert (code, "openjdk-17" in err) == (2, True)


def test_status_shows_sources_sinks_and_lag(orders):
    orders("sql", "CREATE SINK k FROM orders WITH (connector = 'console')")
    code, out, _ = orders("status", "--json")
    assert code == 0
    assert [(row["kind"], row["name"], row["lag"]) for row in json.loads(out)] == [
        ("source", "orders", None),
        ("sink", "k", 0),
    ]


def test_sql_reads_standard_input_and_works_as_a_module(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "laminae", "sql", "--home", str(tmp_path / "h"), "--json"],
        input="CREATE SOURCE s (a INT)",
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)[0]["status"] == "applied"
