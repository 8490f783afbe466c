"""A table of a real PostgreSQL that has no key, through a real connector: equal rows, TRUNCATE, and a new column."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.support.debezium import AVRO, FORMS, JSON, new_database
from tests.support.debezium_events import message
from tests.support.topics import new_topic

if TYPE_CHECKING:
    import laminae as lm
    from tests.services.connect import Connect
    from tests.support.debezium import Database

pytestmark = [pytest.mark.services, pytest.mark.postgres, pytest.mark.usefixtures("connector_jars")]

TABLE = (
    "CREATE TABLE visits (page text, n int)",
    "ALTER TABLE visits REPLICA IDENTITY FULL",
    # A long text is stored apart, and not sent with a change of another column.
    "ALTER TABLE visits ALTER COLUMN page SET STORAGE EXTERNAL",
)
# Without an order among partitions it may come to a truncation that is read too late.
ONE_PARTITION = {"topic.creation.default.partitions": "1"}
VIEW = "CREATE MATERIALIZED VIEW {view} AS SELECT page, COUNT(*) AS c, SUM(n) AS s FROM {source} GROUP BY page"


def test_views_of_a_table_without_a_key_equal_the_table(
    db: lm.Database, postgres_url: str, connect_worker: Connect, kafka_address: str, registry_address: str
) -> None:
    with new_database(postgres_url) as shop:
        shop.execute(*TABLE, "INSERT INTO visits VALUES ('a', 1), ('a', 1), ('b', NULL), (NULL, NULL)")
        for form in FORMS:
            connect_worker.run(shop.prefix(form), shop.config(form, registry_address) | ONE_PARTITION)
        shop.until_sent(connect_worker, *FORMS)
        for form in FORMS:
            db.sql(declared(shop, form, kafka_address, registry_address))
            db.sql(VIEW.format(view=view(form), source=source(form)))

        def check(*statements: str) -> None:
            for statement in statements:
                shop.execute(statement)
            shop.until_sent(connect_worker, *FORMS)
            db.run()
            expected = Counter(tuple(row.values()) for row in shop.rows("visits"))
            groups = {page: [row for row in expected.elements() if row[0] == page] for page, *_ in expected}
            sums = Counter((page, len(rows), total(row[1] for row in rows)) for page, rows in groups.items())
            for form in FORMS:
                assert counted(db, source(form), *shop.columns("visits")) == expected, form
                assert counted(db, view(form)) == sums, form

        check("INSERT INTO visits VALUES ('a', 1), ('c', 3)")
        check("UPDATE visits SET n = 2 WHERE page = 'a'", "DELETE FROM visits WHERE page = 'b'")
        check(
            "DELETE FROM visits WHERE ctid = (SELECT min(ctid) FROM visits WHERE page = 'a')",
            "INSERT INTO visits VALUES (repeat('x', 10000), 1)",
            "UPDATE visits SET n = 5 WHERE length(page) > 9",
        )
        # Without a schema nobody else tells the default.
        db.sql(f"ALTER SOURCE {source(JSON)} ADD COLUMN size INT DEFAULT 7")
        check(
            "ALTER TABLE visits ADD COLUMN size int DEFAULT 7",
            # Not NULL in that column: converters write its default instead.
            "INSERT INTO visits VALUES ('d', 1, 8), ('d', 1, 8)",
            "UPDATE visits SET n = 9 WHERE page = 'a'",
        )
        check("DELETE FROM visits WHERE size = 7 AND page = 'c'")
        check("TRUNCATE visits", "INSERT INTO visits VALUES ('e', 1, 1), ('e', 1, 1)")
        assert db.sql("SELECT source_name, reason FROM laminar_catalog.dead_letters").fetchall() == []
        # No row went that was not there.
        assert [row for row in db.sql("SELECT * FROM laminar_catalog.anomalies").fetchall() if row[2]] == []


def test_default_identity_is_told_to_be_too_little(
    db: lm.Database, postgres_url: str, connect_worker: Connect, kafka_address: str, registry_address: str
) -> None:
    """A table with a key upstream, declared without one: its updates have no row before them."""
    with new_database(postgres_url) as shop:
        shop.execute("CREATE TABLE visits (page text PRIMARY KEY, n int)", "INSERT INTO visits VALUES ('a', 1)")
        connect_worker.run(shop.prefix(AVRO), shop.config(AVRO, registry_address) | ONE_PARTITION)
        shop.execute("UPDATE visits SET n = 2")
        shop.until_sent(connect_worker, AVRO)
        db.sql(declared(shop, AVRO, kafka_address, registry_address))
        db.run()
        shop.execute("UPDATE visits SET n = 3")
        shop.until_sent(connect_worker, AVRO)
        db.run()
        reasons = {reason for (reason,) in db.sql("SELECT reason FROM laminar_catalog.dead_letters").fetchall()}
        assert len(reasons) == 1
        assert "REPLICA IDENTITY FULL" in reasons.pop()


def declared(shop: Database, form: str, kafka: str, registry: str) -> str:
    how = f"format = 'avro', registry = '{registry}'" if form == AVRO else "format = 'debezium-json', evolve = 'auto'"
    return f"""CREATE SOURCE {source(form)} (page STRING, n INT) WITH (
                 connector = 'kafka', changelog = 'debezium', topic = '{shop.topic(form, "visits")}',
                 kafka.bootstrap.servers = '{kafka}', {how})"""


def source(form: str) -> str:
    return f"visits_{form}".replace("-", "_")


def view(form: str) -> str:
    return f"{source(form)}_sums"


def counted(db: lm.Database, relation: str, *names: str) -> Counter[tuple[object, ...]]:
    found = db.sql(f"SELECT {', '.join(names) or '*'} FROM {relation}")  # noqa: S608  # names of this file
    return Counter(found.fetchall())


def total(values: object) -> int | None:
    found = [value for value in values if value is not None]
    return sum(found) if found else None


def test_truncation_over_partitions_goes_by_the_place_in_the_log_of_the_database(
    db: lm.Database, kafka_address: str
) -> None:
    """What was read of other partitions too early or too late, and a truncation that nobody can place any more."""
    topic = new_topic(kafka_address, partitions=2)
    db.sql(f"""CREATE SOURCE visits (page STRING) WITH (connector = 'kafka', format = 'debezium-json',
                 topic = '{topic.name}', kafka.bootstrap.servers = '{kafka_address}')""")

    def read(*events: tuple[int, str, int, str | None]) -> list[str]:
        for partition, op, lsn, page in events:
            topic.send([message(op, lsn, None if page is None else {"page": page}).encode()], partition=partition)
        db.run()
        return sorted(page for (page,) in db.sql("SELECT page FROM visits").fetchall())

    assert read((0, "c", 10, "a"), (1, "c", 11, "b")) == ["a", "b"]
    # In one epoch, and of another partition: one row comes before it, one behind.
    assert read((0, "t", 20, None), (1, "c", 19, "before"), (1, "c", 21, "behind")) == ["behind"]
    assert read((1, "c", 18, "late"), (0, "c", 22, "c")) == ["behind", "c"]
    # This one was heard already, and is sent again to the other partition; of this one it is not known what it leaves.
    assert read((1, "t", 20, None)) == ["behind", "c"]
    assert read((1, "c", 40, "d"), (0, "t", 30, None)) == ["d"]
    assert read((1, "t", 29, None)) == ["d"]
    assert db.sql("SELECT reason FROM laminar_catalog.dead_letters").fetchall() == []
    assert read((0, "t", 35, None)) == ["d"]
    ((reason,),) = db.sql("SELECT reason FROM laminar_catalog.dead_letters").fetchall()
    assert reason.startswith("this TRUNCATE arrived after later events")
    assert reason.endswith("Use one partition for the topic")
    # Put through again it is as late as it was.
    assert db.replay_dead_letters("visits").refused == 1
    assert read((0, "t", 50, None)) == []
