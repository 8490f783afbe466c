"""What a run tells the person who started it: sinks that took nothing, where bad records stand, what would help."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from laminae.errors import DeliveryFailed, RecordRefused

if TYPE_CHECKING:
    from pathlib import Path

    import laminae as lm

LINES = b'{"id": 1}\n{"id": "x"}\r\n{"id": 2}\n\n{"id": "x"}\n{"id": 3, "id": 4}\n'
TABLE = b'id,t\n1,a\nx,b\n2,"two\nlines"\ny,"three\nlines"\nx,b\n'


def test_a_run_names_the_sink_that_took_nothing_and_delivers_later(db: lm.Database, tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("not a directory")
    db.sql("CREATE SOURCE orders (id BIGINT)")
    for name, place in (("broken", in_the_way), ("good", tmp_path)):
        db.sql(f"CREATE SINK {name} FROM orders WITH (connector = 'files', format = 'json', path = '{place / name}')")
    db.insert("orders", [{"id": 1}])
    with pytest.raises(DeliveryFailed, match=r"delivery to sink broken failed: .*cannot write to"):
        db.run()
    assert [row[0] for row in db.sql("SELECT id FROM orders").fetchall()] == [1]
    assert [row["lag"] for row in db.status().to_pylist() if row["name"] == "good"] == [0]
    in_the_way.unlink()
    db.run()
    assert {row["lag"] for row in db.status().to_pylist() if row["kind"] == "sink"} == {0}


def test_letters_of_text_files_have_the_number_of_their_line(db: lm.Database, inbox: Path) -> None:
    for kind, content in (("json", LINES), ("csv", TABLE)):
        (inbox / kind).mkdir()
        (inbox / kind / f"a.{kind}").write_bytes(content)
        given = f"connector = 'files', format = '{kind}', path = '{inbox / kind}'"
        db.sql(f"CREATE SOURCE of_{kind} (id BIGINT, t STRING) WITH ({given})")
    db.run()
    found = {
        name: sorted((row["offset"], bytes(row["value"])) for row in db.dead_letters(name).arrow().to_pylist())
        for name in ("of_json", "of_csv")
    }
    assert found == {
        "of_json": [(1, b'{"id": "x"}\r'), (3, b""), (4, b'{"id": "x"}'), (5, b'{"id": 3, "id": 4}')],
        "of_csv": [(2, b"x,b"), (5, b'y,"three\nlines"'), (7, b"x,b")],
    }
    page = db.dead_letters("of_json", limit=1, offset=1)
    assert page.arrow().num_rows == 1
    everything = db.dead_letters("of_json", offset=0, limit=10).arrow()
    assert everything.schema.names == db.dead_letters("of_json").columns
    assert everything.to_pylist() == db.dead_letters("of_json").arrow().to_pylist()
    db.sql("ALTER SOURCE of_json SET (on_error = 'fail')")
    (inbox / "json" / "b.json").write_bytes(b'{"id": 1}\n{"id": 2}\nnonsense\n')
    with pytest.raises(RecordRefused, match=r"b\.json at 2"):
        db.run()


def test_the_command_line_lists_letters_in_two_seconds_and_pages(db: lm.Database, tmp_path: Path) -> None:
    db.sql("CREATE SOURCE s (id BIGINT)")
    db.insert("s", [{"id": f"x{number}"} for number in range(120)])
    db.run()
    command = [sys.executable, "-X", "importtime", "-m", "laminae", "dead-letters", "list", "s", "--home", db.home]
    environment = {**os.environ, "COLUMNS": "200", "JAVA_HOME": "/nowhere"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert '{"id":"x0"}' in done.stdout
    assert "... more with --offset 50" in done.stdout
    # Its own time, and what would take it: a clock on the wall shows what else the machine does.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 6
    assert not any(f"| {name}" in re.sub(" +", " ", done.stderr) for name in ("pyspark", "py4j"))
    given = [*command[:1], *command[3:], "--offset", "100", "--json"]
    last = json.loads(subprocess.run(given, capture_output=True, text=True, check=True, env=environment).stdout)
    assert len(last) == 20
    assert {"offset", "reason", "value", "epoch"} <= last[0].keys()


def test_a_letter_names_the_option_that_would_help(db: lm.Database) -> None:
    db.sql(
        "CREATE SOURCE d (id BIGINT, price DECIMAL(10, 2), PRIMARY KEY (id)) "
        "WITH (changelog = 'debezium', format = 'debezium-json')"
    )
    source = {"connector": "postgresql", "lsn": 1, "ts_ms": 1}
    db.insert("d", [{"op": "c", "after": {"id": 1, "price": "12.50"}, "source": source}])
    db.run()
    ((reason,),) = db.sql("SELECT reason FROM laminar_catalog.dead_letters").fetchall()
    assert "debezium.decimal = 'text'" in str(reason)
