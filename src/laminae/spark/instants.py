"""Instants as whole microseconds since 1970: what Arrow, Spark and the catalog count in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def microseconds_of(instant: datetime) -> int:
    return (instant - _EPOCH) // timedelta(microseconds=1)
