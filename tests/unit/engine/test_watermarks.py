"""When a source counts as idle, and which windows a view has closed for good. No Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from laminae.engine.views.watermarks import closed_before, idle_sources
from laminae.views.emit import Kind, Strategy

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=1)


def idle(last: datetime, began: datetime | None) -> bool:
    source = SimpleNamespace(id=1, options=(("idle_timeout", "10 minutes"),), created_at=LONG_AGO)
    catalog = SimpleNamespace(last_batch=lambda source_id: SimpleNamespace(committed_at=last))
    return bool(idle_sources(catalog, [source], NOW, began))


def test_a_source_that_nobody_has_read_is_not_idle():
    assert idle(LONG_AGO, None)
    assert idle(LONG_AGO, NOW - timedelta(minutes=10))
    # The driver has just begun: what came to the source while none ran is yet to be read.
    assert not idle(LONG_AGO, NOW - timedelta(minutes=9))
    assert not idle(NOW - timedelta(minutes=9), None)


@pytest.mark.parametrize(
    ("kind", "bound", "closed"),
    [
        (Kind.CHANGES, None, 30),
        (Kind.ON_WINDOW_CLOSE, 50, 50),
        (Kind.FINAL, 50, 50),
        (Kind.ON_WATERMARK, 50, 40),
        (Kind.ON_WATERMARK, 35, 30),
        # The bound of EVERY is a time of the clock.
        (Kind.EVERY, 1000, 30),
    ],
)
def test_a_window_that_was_closed_stays_closed_whatever_the_watermark_says(kind, bound, closed):
    assert closed_before(Strategy(kind), watermark=40, bound=bound, lateness=10) == closed


def test_nothing_is_closed_before_there_is_a_watermark():
    assert closed_before(Strategy(Kind.CHANGES), watermark=None, bound=None, lateness=10) is None
