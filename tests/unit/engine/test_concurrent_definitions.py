"""A statement that rests on other definitions, and someone who changes one of them at the same moment."""

from __future__ import annotations

from contextlib import closing

import pytest

import laminae as lm
from laminae.catalog import open_catalog
from laminae.engine.engine import MOST_ATTEMPTS, Engine
from laminae.errors import ConcurrentChange, UnknownObject
from laminae.sql import parse

(VIEW,) = parse("CREATE MATERIALIZED VIEW v AS SELECT id, count(*) AS n FROM s GROUP BY id")


@pytest.fixture
def home(tmp_path):
    place = str(tmp_path / "home")
    with lm.connect(place) as db:
        db.sql("CREATE SOURCE s (id BIGINT)")
    return place


def interrupted(home, times):
    """An engine that finds the catalog changed by another connection after each of so many plans."""
    catalog, plans = open_catalog(home), iter(range(times))
    engine = Engine(catalog)
    plan = engine.plan

    def planned(statement):
        made = plan(statement)
        if (number := next(plans, None)) is not None:
            with lm.connect(home) as other:
                other.sql(f"CREATE SOURCE other_{number} (id BIGINT)")
        return made

    engine.plan = planned
    return closing(catalog), engine


def test_a_view_is_planned_again_when_another_definition_came_between(home):
    catalog, engine = interrupted(home, times=2)
    with catalog:
        engine.run(VIEW)
    with lm.connect(home) as db:
        assert [row[0] for row in db.sql("SHOW VIEWS").fetchall()] == ["v"]


def test_definitions_that_never_rest_are_told(home):
    catalog, engine = interrupted(home, times=MOST_ATTEMPTS)
    with catalog, pytest.raises(ConcurrentChange):
        engine.run(VIEW)


def test_a_dropped_source_is_found_out_when_the_view_is_planned_again(home):
    catalog, engine = interrupted(home, times=0)
    plan = engine.plan

    def planned(statement):
        made = plan(statement)
        with lm.connect(home) as other:
            other.sql("DROP SOURCE IF EXISTS s")
        return made

    engine.plan = planned
    with catalog, pytest.raises(UnknownObject):
        engine.run(VIEW)
