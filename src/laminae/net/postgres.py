"""Connections to PostgreSQL, for the catalog and for sinks: parameters from a URL, time limits, and error texts.

Secrets in a URL come from references; they are passed to psycopg and to nothing else. psycopg is an optional extra and
is imported on use.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from laminae.errors import InvalidOption, NotAvailable
from laminae.references import resolved

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

LOCK_SECONDS = 10
# The defaults of a connection; the URL may give others. `tcp_user_timeout` in milliseconds: a server that disappears
# without closing the connection must not block an epoch or the other sinks.
DEFAULTS = {"connect_timeout": "10", "application_name": "laminae", "tcp_user_timeout": "30000"}
_REFERENCE = re.compile(r"\$\{(\w+):([^}]*)\}")
_URL = re.compile(r"postgres(?:ql)?://")


@dataclass(frozen=True, slots=True)
class PostgresSettings:
    """Where to connect, with every reference resolved. Its text shows no parameter, since one may be a password."""

    parameters: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of_url(cls, url: str, owner: str, option: str = "catalog", *, password: str | None = None) -> PostgresSettings:
        """From the URL in an option of `owner`, and a password that is given apart from it."""
        parameters = _parsed(*_without_references(url, owner, option), owner, option)
        secret = {} if password is None else {"password": password}
        return cls({**DEFAULTS, **parameters, **secret, "client_encoding": "utf8"})

    @property
    def address(self) -> str:
        """The address for messages, without a password."""
        user = f"{self.parameters['user']}@" if "user" in self.parameters else ""
        port = f":{self.parameters['port']}" if "port" in self.parameters else ""
        return f"postgresql://{user}{self.parameters.get('host', '')}{port}/{self.parameters.get('dbname', '')}"

    def connect(self, *, autocommit: bool, **session: str) -> Connection:
        """A new connection, whose waits for locks are limited; `session` are further settings.

        Without `autocommit` the settings hold for its first transaction.
        """
        import psycopg

        connection = psycopg.connect(**self.parameters, autocommit=autocommit)
        settings = {"lock_timeout": f"{LOCK_SECONDS}s", **session}
        try:
            # Set explicitly: with a stricter server default, a writer that waited for another one's lock would fail.
            connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
            # Within a transaction the settings end with it: a pooler may hand its server connection to others.
            calls = b", ".join([b"set_config(%s, %s, %s)"] * len(settings))
            values = [value for setting in settings.items() for value in (*setting, not autocommit)]
            connection.execute(b"SELECT " + calls, values)
        except BaseException:
            connection.close()
            raise
        return connection


def error_text(error: psycopg.Error) -> str:
    """The error message of the server or the client library."""
    return error.diag.message_primary or str(error).strip() or type(error).__name__


def _without_references(given: str, owner: str, option: str) -> tuple[str, dict[str, str]]:
    """The URL with a plain placeholder for each reference, and the value of each placeholder.

    A reference is a whole part of the URL (user, password, host, ...), so its value needs no percent-encoding.
    """
    whole = _REFERENCE.fullmatch(given)
    url = resolved(whole[0], option, owner) if whole else given
    values: dict[str, str] = {}

    def placeholder(reference: re.Match[str]) -> str:
        name = f"laminaereference{len(values)}x"
        values[name] = resolved(reference[0], option, owner)
        return name

    url = _REFERENCE.sub(placeholder, url)
    if not _URL.match(url):
        raise InvalidOption(
            option=option,
            owner=owner,
            problem="it is not a PostgreSQL URL",
            advice=f"Write {option} = 'postgresql://user@host:5432/database'"
            + (", or omit it to use a SQLite file in the home." if option == "catalog" else "."),
        )
    return url, values


def _parsed(url: str, values: Mapping[str, str], owner: str, option: str) -> dict[str, str]:
    try:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict
    except ImportError as error:
        raise NotAvailable(
            feature=f"PostgreSQL, which {option} of {owner} names,",
            problem="psycopg is not installed",
            advice="Install it: pip install 'laminae[postgres]'.",
        ) from error
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error:
        # The message quotes parts of the URL, possibly a password: it is neither shown nor chained.
        raise InvalidOption(
            option=option,
            owner=owner,
            problem="the PostgreSQL URL cannot be read",
            advice="Percent-encode special characters, or use a reference such as ${env:NAME}.",
        ) from None
    texts = {name: str(value) for name, value in parts.items() if value is not None}
    for placeholder, value in values.items():
        texts = {name: text.replace(placeholder, value) for name, text in texts.items()}
    return texts
