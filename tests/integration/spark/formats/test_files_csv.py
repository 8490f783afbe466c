"""CSV files as a stream: every record is a row under the source's schema, or a dead letter that says why."""

import pytest

from laminae.errors import InvalidOption, NotAvailable
from tests.support.files import create_source, rows


def create(db, inbox, columns, **options):
    create_source(db, inbox, columns, **{"format": "csv", **options})


def letters(db):
    found = db.sql("SELECT value, reason FROM laminar_catalog.dead_letters").fetchall()
    return {None if value is None else bytes(value): reason for value, reason in found}


def test_records_of_every_shape_are_rows(db, inbox):
    create(db, inbox, "id INT, name STRING, price DECIMAL(6, 2), at TIMESTAMP, note STRING DEFAULT 'none'")
    (inbox / "plain.csv").write_bytes(b"id,name,price,at\n1,a,1.50,2024-01-02 03:04:05\r\n\n2,,,\n")
    (inbox / "mixed.csv").write_bytes(
        b'\xef\xbb\xbfname,"id",note,price\r\n"x,""y""\nz",3,"",12.30\r\n5" pipe,4,seen,\r\nlast,5,,"7"'
    )
    (inbox / "order.csv").write_bytes(b"at,id\n2024-01-01T00:00:00+02:00,6\n2024-01-01,7\n")
    (inbox / "empty.csv").write_bytes(b"")
    (inbox / "header.csv").write_bytes(b"id,name\n")
    db.run()
    columns = "id, name, CAST(price AS STRING), CAST(at AS STRING), note"
    assert rows(db, columns) == [
        (1, "a", "1.50", "2024-01-02 03:04:05", "none"),
        (2, None, None, None, "none"),
        (3, 'x,"y"\nz', "12.30", None, ""),
        (4, '5" pipe', None, None, "seen"),
        (5, "last", "7.00", None, None),
        (6, None, None, "2023-12-31 22:00:00", "none"),
        (7, None, None, "2024-01-01 00:00:00", "none"),
    ]
    assert letters(db) == {}


def test_bad_records_are_dead_letters_with_their_bytes_and_come_back_once(db, inbox):
    create(db, inbox, "id INT NOT NULL, n TINYINT, d DECIMAL(4, 2), f DOUBLE, day DATE, b BOOLEAN, t STRING")
    header = b"id,n,d,f,day,b,t"
    bad = {
        b"10,1": "does not have the 7 fields",
        b"11,1,1,1,2024-01-01,true,x,y": "does not have the 7 fields",
        b"12,200,1,1,2024-01-01,true,x": "n is not a valid TINYINT: 200",
        b"13,1.5,1,1,2024-01-01,true,x": "n is not a valid TINYINT: 1.5",
        b"14,1,1.239,1,2024-01-01,true,x": "d is not a valid DECIMAL(4, 2): 1.239",
        b"15,1,1,1e400,2024-01-01,true,x": "f is not a valid DOUBLE: 1e400",
        b"16,1,1,1d,2024-01-01,true,x": "f is not a valid DOUBLE: 1d",
        b"17,1,1,1,2024,true,x": "day is not a valid DATE: 2024",
        b"18,1,1,1,2024-02-30,true,x": "day is not a valid DATE",
        b"19,1,1,1,2024-01-01 10:00,true,x": "day is not a valid DATE",
        b"20,1,1,1,2024-01-01,perhaps,x": "b is not a valid BOOLEAN",
        b"21,1,1,1,2024-01-01,true,\xff": "not valid UTF-8",
        b",1,1,1,2024-01-01,true,x": "id is NULL in a NOT NULL column",
        b"23" + b"," * 30_000: "does not have the 7 fields",
    }
    good = b"1,127,12.30,1e3,2024-01-31,yes,\xc3\xa9"
    (inbox / "a.csv").write_bytes(b"\n".join([header, good, *bad]) + b"\n")
    long = b'24,1,1,1,2024-01-01,true,"a\n\xff"'
    cut = b"25,1,1,1,2024-01-01,true,\xe9"
    (inbox / "b.csv").write_bytes(header + b"\n" + long + b"\n" + cut + b"\r\n")
    db.run()
    found = letters(db)
    assert found.keys() == {*bad, long, cut}
    assert {value: reason in found[value] for value, reason in bad.items()} == dict.fromkeys(bad, True)
    assert rows(db, "id, n, f, t") == [(1, 127, 1000.0, "é")]
    db.sql("ALTER SOURCE s ALTER COLUMN n TYPE INT; ALTER SOURCE s ALTER COLUMN id DROP NOT NULL")
    replayed = db.replay_dead_letters("s")
    assert (replayed.rows, replayed.refused) == (2, len(bad) + 2 - 2)
    assert rows(db, "id, n") == [(None, 1), (1, 127), (12, 200)]
    assert db.replay_dead_letters("s").rows == 0
    assert rows(db, "id, n") == [(None, 1), (1, 127), (12, 200)]


def test_a_file_that_cannot_be_read_is_one_dead_letter_and_is_read_again_when_mended(db, inbox):
    create(db, inbox, "id INT NOT NULL, name STRING", csv_delimiter=r"\t")
    broken = {
        "twice.csv": (b"id\tid\n1\t2\n", "has id twice"),
        "case.csv": (b"ID\tname\n1\tx\n", "the file has no column id"),
        "case2.csv": (b"id\tNAME\n1\tx\n", "column NAME differs from name only in case"),
        "missing.csv": (b"name\nx\n", "the file has no column id, which is NOT NULL"),
        "nameless.csv": (b"id\t\n1\t2\n", "no name for column 2"),
        "latin.csv": (b"id\tn\xe9\n1\t2\n", "not valid UTF-8"),
        "mac.csv": (b"id\tname\r1\tx\r", "carriage return"),
    }
    for name, (content, _) in broken.items():
        (inbox / name).write_bytes(content)
    (inbox / "good.csv").write_bytes(b'id\tname\textra\n0\t,\t1\n9\t"a\n\tb"\t\n')
    db.run()
    found = db.sql("SELECT partition, value, reason FROM laminar_catalog.dead_letters").fetchall()
    assert [value for _, value, _ in found] == [None] * len(broken)
    told = {partition.rsplit("/", 1)[1]: reason for partition, _, reason in found}
    assert {name: reason in told[name] for name, (_, reason) in broken.items()} == dict.fromkeys(broken, True)
    assert rows(db) == [(0, ","), (9, "a\n\tb")]
    (inbox / "twice.csv").write_bytes(b"id\tname\n1\tone\n2\ttwo\n")
    replayed = db.replay_dead_letters("s")
    assert (replayed.rows, replayed.refused) == (2, len(broken) - 1)
    (inbox / "mac.csv").write_bytes(b"id\tname\n3\tthree\n")
    (inbox / "latin.csv").unlink()
    assert db.replay_dead_letters("s").rows == 1
    assert rows(db) == [(0, ","), (1, "one"), (2, "two"), (3, "three"), (9, "a\n\tb")]


def test_columns_follow_renames_and_defaults_of_the_version_in_force(db, inbox):
    create(db, inbox, "id INT, amount INT DEFAULT 5")
    (inbox / "1.csv").write_bytes(b"id,amount\n1,10\n")
    (inbox / "2.csv").write_bytes(b"id\n2\n")
    db.run()
    db.sql("ALTER SOURCE s RENAME COLUMN amount TO cents; ALTER SOURCE s ALTER COLUMN cents SET DEFAULT 7")
    (inbox / "3.csv").write_bytes(b"id,amount\n3,30\n")
    (inbox / "4.csv").write_bytes(b"id,amount,cents\n4,1,40\n")
    (inbox / "5.csv").write_bytes(b"id\n5\n")
    db.run()
    db.sql("ALTER SOURCE s DROP COLUMN cents; ALTER SOURCE s ADD COLUMN cents BIGINT")
    (inbox / "6.csv").write_bytes(b"id,cents,amount\n6,60,9\n")
    db.run()
    assert rows(db) == [(1, None), (2, None), (3, None), (4, None), (5, None), (6, 60)]
    assert letters(db) == {}


def test_new_columns_and_wider_values_evolve_the_schema_and_keep_the_first_value(db, inbox, tmp_path):
    create(db, inbox, "id INT, amount INT", evolve="auto")
    db.sql(f"CREATE SINK k FROM s WITH (connector = 'files', format = 'json', path = '{tmp_path / 'out'}')")
    (inbox / "1.csv").write_bytes(b"id,amount\n1,3000000000\n")
    (inbox / "2.csv").write_bytes(b"id,amount,city,zip,score,ok,nothing\n2,2,Rome,00185,1.5,true,\n")
    db.run()
    assert [field.name for field in db.schema("s")] == ["id", "amount", "city", "zip", "score", "ok"]
    assert [str(field.type) for field in db.schema("s")] == ["int32", "int64", "string", "string", "double", "bool"]
    assert rows(db) == [(1, 3000000000, None, None, None, None), (2, 2, "Rome", "00185", 1.5, True)]
    assert letters(db) == {}
    db.sql("ALTER SOURCE s SET (evolve = 'confirm')")
    (inbox / "3.csv").write_bytes(b"id,amount,late\n3,0.5,x\n4,4,y\n")
    db.run()
    assert sorted(letters(db)) == [b"3,0.5,x", b"4,4,y"]
    (change,) = db.sql("SELECT id, changes FROM laminar_catalog.pending_changes").fetchall()
    assert "late: add STRING" in change[1]
    assert f"change {change[0]}" in letters(db)[b"4,4,y"]


def create_and_run(db, inbox, options):
    create(db, inbox, "id INT", **options)
    db.run()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"csv_delimiter": ",,"}, InvalidOption),
        ({"csv_delimiter": '"'}, InvalidOption),
        ({"version_field": "v"}, InvalidOption),
        ({"format": "avro"}, NotAvailable),
    ],
)
def test_what_csv_cannot_do_is_refused(db, inbox, options, error):
    with pytest.raises(error):
        create_and_run(db, inbox, options)
