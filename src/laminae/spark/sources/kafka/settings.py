"""The Kafka client settings of a source or sink: every option that begins with `kafka.`, with its secrets resolved.

Secrets are resolved at each use and not cached here, so a rotated secret needs no restart.
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
    """The settings in the form that Spark's connector expects. A secret reference may be only a part of a value, as in
    a JAAS configuration.
    """
    settings = {name: value for name, value in options if name.startswith(PREFIX)}
    if SERVERS not in settings:
        advice = f"Give {SERVERS} = 'host:9092'."
        raise InvalidOption(option=SERVERS, owner=owner, problem="it is missing", advice=advice)
    return {name: _looked_up(name, value, owner) for name, value in settings.items()}


def _looked_up(name: str, value: str, owner: str) -> str:
    return REFERENCE.sub(lambda match: resolved(match[0], name, owner), value)


def servers(options: Options) -> str:
    """The bootstrap servers, for messages."""
    return dict(options).get(SERVERS, "no address")
