"""Schemas that records change while a pipeline runs: whoever is told of it cannot hold an epoch up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import laminae as lm
from tests.support.waiting import until
from tests.support.webhooks import SECONDS, webhook

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.webhooks import Inbox


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    with webhook() as found:
        yield found


def test_epochs_go_on_while_nobody_answers_and_every_change_is_told_in_order(
    spark: SparkSession, tmp_path: Path, inbox: Inbox
) -> None:
    inbox.open.clear()
    with lm.connect(str(tmp_path / "home"), spark=spark) as db:
        db.sql(f"CREATE SOURCE orders (id BIGINT) WITH (evolve = 'auto', on_change = '{inbox.address}')")
        for row in ({"id": 1, "a": 1}, {"id": 2, "b": "x"}):
            db.insert("orders", [row])
            db.run()
        assert inbox.asked.wait(SECONDS)
        assert inbox.notices == []
        assert db.sql("SELECT id, a, b FROM orders ORDER BY id").fetchall() == [(1, 1, None), (2, None, "x")]
        inbox.open.set()
        until(lambda: db.notices().sent == 2, SECONDS, "both changes are told")
    # On a slow machine a notice that nobody answered in time comes again, under the same id.
    once = {notice["id"]: notice for notice in inbox.notices}.values()
    told = [(notice["trigger"], notice["version"], notice["changes"][0]["column_name"]) for notice in once]
    assert told == [("Data", 2, "a"), ("Data", 3, "b")]


def test_a_change_that_waits_is_told_once_with_its_number_and_again_when_it_is_confirmed(
    spark: SparkSession, tmp_path: Path, inbox: Inbox
) -> None:
    with lm.connect(str(tmp_path / "home"), spark=spark) as db:
        db.sql(f"CREATE SOURCE orders (id BIGINT) WITH (evolve = 'confirm', on_change = '{inbox.address}')")
        for number in (1, 2):
            db.insert("orders", [{"id": number, "a": 1}])
            db.run()
        ((change_id,),) = db.sql("SELECT id FROM laminar_catalog.pending_changes").fetchall()
        db.sql(f"ALTER SOURCE orders CONFIRM CHANGE {change_id}")
        until(lambda: not db.notices().waiting, SECONDS, "everything is told")
    once = {notice["id"]: notice for notice in inbox.notices}.values()
    told = [(notice["outcome"], notice["version"], notice["change_id"]) for notice in once]
    assert told == [("waiting", 1, change_id), ("applied", 2, None)]
