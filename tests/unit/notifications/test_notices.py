"""Whoever wants to know of a schema change is told once, again if need be, and never at the cost of the change."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import laminae as lm
from laminae.errors import EvolutionRejected, InvalidOption, SecretInOption
from laminae.notifications import Dispatcher
from laminae.registry import Retry
from tests.support.waiting import until
from tests.support.webhooks import SECONDS, webhook

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.webhooks import Inbox

QUICK = Retry(attempts=4, first=0.001, longest=0.002)


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    with webhook() as found:
        yield found


@pytest.fixture
def db(tmp_path: Path) -> Iterator[lm.Database]:
    with lm.connect(tmp_path / "home") as database:
        database._dispatcher._retry = QUICK
        yield database


def create(db: lm.Database, inbox: Inbox, extra: str = "") -> None:
    db.sql(f"CREATE SOURCE orders (id BIGINT) WITH (on_change = '{inbox.address}'{extra})")


def settled(db: lm.Database) -> tuple[int, int]:
    """(told, given up), when nothing is under way."""
    until(lambda: not db.notices().waiting, SECONDS, "everything is told or given up")
    return db.notices().sent, db.notices().failed


def test_a_notice_says_what_changed_the_verdict_and_the_version(db, inbox):
    create(db, inbox)
    db.sql("ALTER SOURCE orders ADD COLUMN note STRING DEFAULT 'x'")
    assert settled(db) == (1, 0)
    (notice,) = inbox.notices
    assert notice.pop("at").startswith("20")
    assert len(notice.pop("id")) == 32
    (change,) = notice.pop("changes")
    assert change == {
        "change_type": "ColumnAdded", "column_name": "note", "old_type": None, "new_type": "STRING", "old_name": None,
        "default": '"x"',
    }  # fmt: skip
    assert notice == {
        "event": "schema_change", "source": "orders", "outcome": "applied", "version": 2, "change_id": None,
        "verdict": "compatible", "mode": "NONE", "rules": "seed", "trigger": "Ddl", "reasons": [],
    }  # fmt: skip


def test_a_function_is_told_of_every_source_and_may_fail(tmp_path, caplog):
    told: list[lm.SchemaNotice] = []

    def note(notice: lm.SchemaNotice) -> None:
        told.append(notice)
        if notice.source == "b":
            raise RuntimeError("out of order")

    with lm.connect(tmp_path / "home", on_change=note) as db:
        db._dispatcher._retry = QUICK
        db.sql("CREATE SOURCE a (id BIGINT); CREATE SOURCE b (id BIGINT)")
        with caplog.at_level(logging.ERROR, "laminae"):
            db.sql("ALTER SOURCE a ADD COLUMN x INT; ALTER SOURCE b ADD COLUMN y INT")
            assert settled(db) == (1, 1)
        assert [(notice.source, notice.version) for notice in told] == [("a", 2), *[("b", 2)] * 4]
        assert "could not be delivered: RuntimeError: out of order" in caplog.text


def test_it_is_tried_again_where_that_may_help_and_not_where_it_cannot(db, inbox, caplog):
    create(db, inbox)
    inbox.statuses[:] = [503, 429]
    db.sql("ALTER SOURCE orders ADD COLUMN a INT")
    assert settled(db) == (1, 0)
    inbox.statuses[:] = [410]
    db.sql("ALTER SOURCE orders ADD COLUMN b INT")
    assert settled(db) == (1, 1)
    assert "(version 3) could not be delivered: status 410 of 127.0.0.1" in caplog.text
    inbox.statuses[:] = [302]
    db.sql("ALTER SOURCE orders ADD COLUMN c INT")
    assert settled(db) == (1, 2)
    inbox.statuses[:] = [500] * 4
    db.sql("ALTER SOURCE orders ADD COLUMN d INT")
    assert settled(db) == (1, 3)
    assert len(inbox.headers) == 9
    assert [notice["version"] for notice in inbox.notices] == [2]


def test_a_statement_does_not_wait_and_the_end_gives_up_what_nobody_takes(tmp_path, inbox, caplog):
    inbox.open.clear()
    with lm.connect(tmp_path / "home") as db:
        create(db, inbox)
        db.sql("ALTER SOURCE orders ADD COLUMN a INT; ALTER SOURCE orders ADD COLUMN b INT")
        assert inbox.asked.wait(SECONDS)
        assert db.version("orders") == 3
        assert db.notices().waiting == 2
        db._dispatcher.close(0.0)
        assert (db.notices().failed, db.notices().waiting) == (2, 0)
    assert caplog.text.count("could not be delivered: the process ended") == 2


def test_a_server_that_is_away_is_named_by_its_host_alone(db, inbox, caplog, monkeypatch):
    monkeypatch.setenv("HOOK", "http://127.0.0.1:1/path/hunter2")
    db.sql("CREATE SOURCE orders (id BIGINT) WITH (on_change = '${env:HOOK}')")
    db.sql("CREATE SOURCE others (id BIGINT) WITH (on_change = 'http://127.0.0.1:1/path/hook')")
    db.sql("ALTER SOURCE orders ADD COLUMN a INT; ALTER SOURCE others ADD COLUMN a INT")
    assert settled(db) == (0, 2)
    assert "${env:HOOK} does not answer" in caplog.text
    assert "127.0.0.1:1 does not answer: ConnectionRefusedError" in caplog.text
    assert "hunter2" not in caplog.text


def test_headers_are_secrets_by_reference(db, inbox, monkeypatch, caplog):
    with pytest.raises(SecretInOption):
        create(db, inbox, ", on_change.header.Authorization = 'Bearer hunter22'")
    create(db, inbox, ", on_change.header.Authorization = '${env:HOOK_AUTH}', on_change.header.X-Team = 'shop'")
    monkeypatch.setenv("HOOK_AUTH", "Bearer hunter22")
    db.sql("ALTER SOURCE orders ADD COLUMN a INT")
    assert settled(db) == (1, 0)
    assert (inbox.headers[0]["Authorization"], inbox.headers[0]["X-Team"]) == ("Bearer hunter22", "shop")
    monkeypatch.setenv("HOOK_AUTH", "Bearer hunter22\nX-Evil: 1")
    db.sql("ALTER SOURCE orders ADD COLUMN b INT")
    assert settled(db) == (1, 1)
    assert "on_change.header.Authorization of orders" in caplog.text
    assert "hunter22" not in caplog.text


@pytest.mark.parametrize("given", ["ftp://here/x", "here", "http://", "https://a b/"])
def test_only_an_address_can_be_told(db, given):
    with pytest.raises(InvalidOption, match="on_change of orders"):
        db.sql(f"CREATE SOURCE orders (id BIGINT) WITH (on_change = '{given}')")


def test_a_statement_that_is_refused_or_only_explained_is_no_news(db, inbox):
    create(db, inbox, ", compatibility = 'FULL'")
    with pytest.raises(EvolutionRejected):
        db.sql("ALTER SOURCE orders ALTER COLUMN id SET NOT NULL")
    db.sql("EXPLAIN ALTER SOURCE orders ADD COLUMN a INT")
    db.sql("ALTER SOURCE orders SET (dead_letter_limit = '7')")
    assert settled(db) == (0, 0)


def test_what_every_epoch_meets_again_is_told_once(db, inbox):
    told: list[lm.SchemaNotice] = []
    create(db, inbox)
    source, dispatcher = db._engine.source("orders"), Dispatcher(told.append, QUICK)
    notices: list[lm.SchemaNotice] = []
    db._engine._on_change = lambda _, notice: notices.append(notice)
    db.sql("ALTER SOURCE orders ADD COLUMN a INT")
    refused = replace(notices[0], outcome="refused", reasons=("a: why",))
    for notice in (refused, replace(refused, id="2"), replace(refused, version=3), refused):
        dispatcher.dispatch(source, notice)
    dispatcher.close(SECONDS)
    assert [notice.version for notice in told] == [2, 3, 2]
    assert dispatcher.counts().sent == 6
