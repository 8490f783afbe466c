"""What happens at once: DDL while an epoch looks at its records, going back while a sink begins or delivers."""

import json

import pyarrow.parquet as pq
import pytest

import laminae as lm
from laminae.engine import faults
from laminae.errors import DeadLetterLimit, DeliveryFailed, EvolutionRejected, InvalidOption


@pytest.fixture
def db(spark, tmp_path):
    with lm.connect(str(tmp_path / "home"), spark=spark) as database:
        yield database
    faults.clear()


def delivered(directory):
    return sorted(row["id"] for file in directory.glob("*.parquet") for row in pq.read_table(file).to_pylist())


def put(directory, name, *records):
    directory.mkdir(exist_ok=True)
    (directory / name).write_text("".join(json.dumps(record) + "\n" for record in records))


def once(statement, db):
    """Run the statement when a fault point is first reached."""
    waiting = [statement]

    def act():
        if waiting:
            db.sql(waiting.pop())

    return act


def test_a_rename_while_an_epoch_finds_a_new_field_is_not_undone(db):
    db.sql("CREATE SOURCE s (id BIGINT, a INT) WITH (evolve = 'auto')")
    faults.install("schema inferred", once("ALTER SOURCE s RENAME COLUMN a TO b", db))
    db.insert("s", [{"id": 1, "a": 5, "c": "new"}])
    db.run()
    assert db.schema("s").names == ["id", "b", "c"]
    assert db.sql("SELECT id, b, c FROM s").fetchall() == [(1, 5, "new")]


def test_a_column_that_is_added_meanwhile_stays_and_the_first_record_keeps_its_value(db):
    db.sql("CREATE SOURCE s (id BIGINT) WITH (evolve = 'auto')")
    faults.install("schema inferred", once("ALTER SOURCE s ADD COLUMN z INT", db))
    db.insert("s", [{"id": 1, "c": "new"}])
    db.run()
    assert db.sql("SELECT id, z, c FROM s").fetchall() == [(1, None, "new")]
    assert db.sql("SELECT count(*) FROM laminar_catalog.pending_changes").fetchall() == [(0,)]


def test_former_names_and_the_version_field_never_become_columns(db, tmp_path):
    put(tmp_path / "in", "1.json", {"id": 1, "a": 1, "v": 1})
    db.sql(
        "CREATE SOURCE s (id BIGINT, a INT) WITH (connector = 'files', format = 'json', evolve = 'auto', "
        f"version_field = 'v', path = '{tmp_path / 'in'}')"
    )
    db.run()
    db.sql("ALTER SOURCE s RENAME COLUMN a TO b")
    put(tmp_path / "in", "2.json", {"id": 2, "a": 2, "c": "new"})
    db.run()
    assert db.schema("s").names == ["id", "b", "c"]
    assert db.sql("SELECT id, b, c FROM s ORDER BY id").fetchall() == [(1, 1, None), (2, 2, "new")]


def test_a_letter_of_an_older_version_is_replayed_with_the_one_in_force(db, tmp_path):
    put(tmp_path / "in", "1.json", {"id": 1, "a": "x", "v": 1})
    db.sql(
        "CREATE SOURCE s (id BIGINT, a INT) WITH (connector = 'files', format = 'json', version_field = 'v', "
        f"path = '{tmp_path / 'in'}')"
    )
    db.run()
    db.sql("ALTER SOURCE s DROP COLUMN a; ALTER SOURCE s ADD COLUMN a STRING")
    assert db.replay_dead_letters("s").rows == 1
    assert db.sql("SELECT id, a FROM s").fetchall() == [(1, "x")]


def test_a_replay_does_not_count_the_letters_it_takes_against_the_limit(db):
    db.sql("CREATE SOURCE s (id BIGINT NOT NULL) WITH (dead_letter_limit = '2')")
    db.insert("s", [{"x": 1}, {"id": "no"}])
    db.run()
    db.sql("ALTER SOURCE s ALTER COLUMN id DROP NOT NULL")
    done = db.replay_dead_letters("s")
    assert (done.rows, done.refused) == (1, 1)
    db.insert("s", [{"id": "no"}, {"id": "neither"}])
    with pytest.raises(DeadLetterLimit):
        db.run()


def test_a_sink_that_was_made_before_a_savepoint_and_began_after_it_begins_anew(db, tmp_path):
    db.sql("CREATE SOURCE s (id BIGINT)")
    db.insert("s", [{"id": 1}])
    db.run()
    db.sql(f"CREATE SINK k FROM s WITH (connector = 'files', path = '{tmp_path / 'out'}')")
    db.savepoint("p")
    db.insert("s", [{"id": 2}])
    db.run()
    assert delivered(tmp_path / "out") == [1, 2]
    db.restore("p")
    db.run()
    assert delivered(tmp_path / "out") == [1, 2]


def test_what_a_sink_delivered_beyond_its_progress_is_taken_back(db, tmp_path):
    db.sql("CREATE SOURCE s (id BIGINT)")
    db.sql(f"CREATE SINK k FROM s WITH (connector = 'files', path = '{tmp_path / 'out'}')")
    db.insert("s", [{"id": 1}])
    db.run()
    db.savepoint("p")

    def crash():
        raise RuntimeError("killed here")

    faults.install("segment delivered", crash)
    db.insert("s", [{"id": 2}])
    with pytest.raises(DeliveryFailed, match="killed here"):
        db.run()
    assert delivered(tmp_path / "out") == [1, 2]
    faults.clear()
    db.restore("p")
    db.run()
    assert delivered(tmp_path / "out") == [1, 2]


def test_going_back_does_not_bring_values_of_a_dropped_column_back(db, tmp_path):
    put(tmp_path / "in", "1.json", {"id": 1, "a": 5})
    db.sql(
        f"CREATE SOURCE s (id BIGINT, a INT) WITH (connector = 'files', format = 'json', path = '{tmp_path / 'in'}')"
    )
    db.savepoint("p")
    db.run()
    db.sql("ALTER SOURCE s DROP COLUMN a; ALTER SOURCE s ADD COLUMN a INT")
    db.restore("p")
    db.run()
    assert db.sql("SELECT id, a FROM s").fetchall() == [(1, None)]


@pytest.mark.parametrize("change", ["format = 'csv'", "version_field = 'v'", "accept_old_names = 'false'"])
def test_what_decides_how_records_are_read_stays_once_some_are_read(db, tmp_path, change):
    put(tmp_path / "in", "1.json", {"id": 1})
    db.sql(f"CREATE SOURCE s (id BIGINT) WITH (connector = 'files', format = 'json', path = '{tmp_path / 'in'}')")
    db.sql("ALTER SOURCE s SET (format = 'json')")
    db.run()
    with pytest.raises(InvalidOption, match="have already been read without it"):
        db.sql(f"ALTER SOURCE s SET ({change})")


def test_a_sink_does_not_mix_with_what_another_left(db, tmp_path):
    db.sql("CREATE SOURCE s (id BIGINT)")
    db.sql(f"CREATE SINK k FROM s WITH (connector = 'files', path = '{tmp_path / 'out'}')")
    db.insert("s", [{"id": 1}])
    db.run()
    db.sql("DROP SINK k")
    with pytest.raises(InvalidOption, match="already contains files of a sink"):
        db.sql(f"CREATE SINK k FROM s WITH (connector = 'files', path = '{tmp_path / 'out'}')")


def test_a_home_is_one_place_however_it_is_written(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with lm.connect(f"file://{tmp_path / 'a home'}", spark=spark) as db:
        db.sql("CREATE SOURCE s (id BIGINT)")
        db.insert("s", [{"id": 1}])
        db.run()
        assert db.sql("SELECT id FROM s").fetchall() == [(1,)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a home"]


def test_a_home_with_glob_characters_keeps_its_dead_letters(spark, tmp_path):
    with lm.connect(str(tmp_path / "h[1]*{x}"), spark=spark) as db:
        db.sql("CREATE SOURCE s (id BIGINT NOT NULL)")
        db.insert("s", [{"id": 1}, {"no": 1}])
        db.run()
        assert db.sql("SELECT count(*) FROM laminar_catalog.dead_letters").fetchall() == [(1,)]


@pytest.mark.parametrize("trigger", ["1 secnd", "", "soon"])
def test_a_trigger_that_is_no_time_is_refused_before_spark_starts(tmp_path, trigger):
    with lm.connect(str(tmp_path / "home")) as db, pytest.raises(InvalidOption, match="trigger"):
        db.start(trigger)


def test_an_epoch_has_at_least_one_file(db):
    with pytest.raises(InvalidOption, match="above 0"):
        db.sql("CREATE SOURCE s (id BIGINT) WITH (max_files_per_epoch = '0')")


def test_a_flood_of_new_columns_waits_for_a_person(db):
    db.sql("CREATE SOURCE s (id BIGINT) WITH (evolve = 'auto', max_new_columns = '1')")
    db.insert("s", [{"id": 1, "a": 1, "b": 2}])
    db.run()
    assert db.schema("s").names == ["id"]
    assert db.sql("SELECT count(*) FROM laminar_catalog.pending_changes").fetchall() == [(1,)]
    assert db.sql("SELECT id FROM s").fetchall() == []
    db.insert("s", [{"id": 2, "c": 3}])
    db.run()
    assert db.sql("SELECT id, c FROM s ORDER BY id").fetchall() == [(2, 3)]
    ((reason,),) = db.sql("SELECT reason FROM laminar_catalog.dead_letters WHERE replayed_by IS NULL").fetchall()
    assert reason.startswith("waits for confirmation of change ")


def test_a_source_may_stop_at_a_rejected_evolution(db):
    db.sql("CREATE SOURCE s (id BIGINT, a INT) WITH (evolve = 'auto', compatibility = 'FULL', on_rejected = 'stop')")
    db.insert("s", [{"id": 1, "a": 3000000000}])
    with pytest.raises(EvolutionRejected, match="FULL"):
        db.run()
    db.sql("ALTER SOURCE s SET (on_rejected = 'ignore')")
    db.run()
    assert len(db.dead_letters("s").fetchall()) == 1


def test_a_source_may_refuse_records_whose_new_fields_are_not_taken(db):
    db.sql("CREATE SOURCE s (id BIGINT, a INT) WITH (evolve = 'confirm', on_rejected = 'dead_letter')")
    db.insert("s", [{"id": 1, "a": 1}, {"id": 2, "b": "new"}])
    db.run()
    assert db.sql("SELECT id, a FROM s").fetchall() == [(1, 1)]
    ((reason,),) = db.sql("SELECT reason FROM laminar_catalog.dead_letters").fetchall()
    ((change,),) = db.sql("SELECT id FROM laminar_catalog.pending_changes").fetchall()
    assert reason.startswith(f"waits for confirmation of change {change}: ")
    db.sql(f"ALTER SOURCE s CONFIRM CHANGE {change}")
    assert db.replay_dead_letters("s").rows == 1
    assert db.sql("SELECT id, b FROM s ORDER BY id").fetchall() == [(1, None), (2, "new")]


def test_files_with_columns_that_are_not_taken_are_refused_where_the_source_says_so(db, inbox):
    db.sql(
        "CREATE SOURCE s (id BIGINT) "
        f"WITH (connector = 'files', format = 'csv', path = '{inbox}', on_rejected = 'dead_letter')"
    )
    (inbox / "a.csv").write_text("id\n1\n")
    (inbox / "b.csv").write_text("id,more\n2,x\n")
    db.run()
    assert db.sql("SELECT id FROM s").fetchall() == [(1,)]
    ((reason,),) = db.sql("SELECT reason FROM laminar_catalog.dead_letters").fetchall()
    assert reason == "the file has a column that the source does not accept"


def test_whether_new_fields_are_refused_stays_once_records_were_read(db):
    db.sql("CREATE SOURCE s (id BIGINT) WITH (on_rejected = 'dead_letter')")
    db.insert("s", [{"id": 1}])
    db.run()
    with pytest.raises(InvalidOption, match="on_rejected"):
        db.sql("ALTER SOURCE s SET (on_rejected = 'ignore')")


def test_an_option_that_decides_how_records_are_read_holds_for_the_epoch_that_reads_meanwhile(db):
    db.sql("CREATE SOURCE s (id BIGINT, a INT, PRIMARY KEY (id))")
    faults.install("epoch planned", once("ALTER SOURCE s SET (changelog = 'upsert')", db))
    db.insert("s", [{"id": 1, "a": 1}, {"id": 1, "a": 2}])
    db.run()
    assert db.sql("SELECT id, a FROM s").fetchall() == [(1, 2)]
    with pytest.raises(InvalidOption, match="records have already been read without it"):
        db.sql("ALTER SOURCE s SET (changelog = 'append')")
