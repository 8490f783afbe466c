"""The settings of Kafka's client that a source or sink has: every option below `kafka.`, with its secrets looked up.

They are looked up at each use, so one that is rotated needs no restart, and kept nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.errors import InvalidOption
from laminae.references import resolved
from laminae.secrets import REFERENCE

if TYPE_CHECKING:
    from laminae.catalog.model import Options

PREFIX = "kafka."
SERVERS = "kafka.bootstrap.servers"


def client_settings(options: Options, owner: str) -> dict[str, str]:
    """As Spark's connector takes them. A reference may be a part of a value: a JAAS configuration is a sentence."""
    given = {name: value for name, value in options if name.startswith(PREFIX)}
    if SERVERS not in given:
        advice = f"Give {SERVERS} = 'host:9092'."
        raise InvalidOption(option=SERVERS, owner=owner, problem="it is missing", advice=advice)
    return {name: _looked_up(name, value, owner) for name, value in given.items()}


def _looked_up(name: str, value: str, owner: str) -> str:
    return REFERENCE.sub(lambda found: resolved(found[0], name, owner), value)


def servers(options: Options) -> str:
    """For messages: where the brokers are."""
    return dict(options).get(SERVERS, "no address")
