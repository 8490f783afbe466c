"""One request to a registry and its answer, over the standard library: JSON out, bytes and a status back.

It follows no redirect, because that would hand the credentials to another host. It retries nothing.
"""

from __future__ import annotations

import base64
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from http.client import HTTPException
from typing import TYPE_CHECKING, Protocol

import orjson

from laminae.errors import InvalidOption

if TYPE_CHECKING:
    from email.message import Message
    from typing import IO

    from laminae.registry.settings import RegistrySettings

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
# A schema of Avro's greatest depth is far smaller; more than this is not an answer to a question of ours.
MOST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    body: object = None

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(frozen=True, slots=True)
class Answer:
    """`retry_after`: seconds for which the server wants to be left alone."""

    status: int
    body: bytes
    retry_after: float = 0.0


class NoAnswer(Exception):
    """The server was not reached, or broke off. The text holds no credentials."""


class Transport(Protocol):
    def __call__(self, request: Request) -> Answer:
        """Raises `NoAnswer`; any status is an answer."""
        ...


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is an answer like any other status."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        return None


class HttpTransport:
    """Requests below the address of the settings. Certificates are read once, credentials for every request."""

    __slots__ = ("_opener", "_settings")

    def __init__(self, settings: RegistrySettings) -> None:
        self._settings = settings
        self._opener = urllib.request.build_opener(NoRedirect(), urllib.request.HTTPSHandler(context=_tls(settings)))

    def __call__(self, request: Request) -> Answer:
        url = self._settings.address.rstrip("/") + request.path
        body = None if request.body is None else orjson.dumps(request.body)
        asked = urllib.request.Request(url, data=body, method=request.method, headers=self._headers())
        try:
            with self._opener.open(asked, timeout=self._settings.timeout) as answer:
                return Answer(answer.status, answer.read(MOST_BYTES))
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, _body(error), seconds_of(error.headers.get("Retry-After")))
        except (OSError, HTTPException) as error:
            raise NoAnswer(words_of(error)) from None

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": f"{CONTENT_TYPE}, application/json", "Content-Type": CONTENT_TYPE}
        if (user_info := self._settings.secret("user_info")) is not None:
            headers["Authorization"] = "Basic " + base64.b64encode(user_info.encode()).decode()
        if (token := self._settings.secret("token")) is not None:
            # The library would quote the whole header in its complaint.
            if not (token.isascii() and token.isprintable()):
                raise InvalidOption(
                    option="registry.bearer.auth.token",
                    owner=self._settings.source,
                    problem="what it refers to is not one line of plain characters",
                    advice="Put the token alone there.",
                )
            headers["Authorization"] = f"Bearer {token}"
        return headers


def _body(error: urllib.error.HTTPError) -> bytes:
    try:
        return error.read(MOST_BYTES)
    except (OSError, HTTPException):
        # The status alone says enough: what the body would have told is only its words.
        return b""


def _tls(settings: RegistrySettings) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=settings.ca)
        if settings.certificate is not None:
            context.load_cert_chain(settings.certificate, password=settings.secret("certificate_password"))
    except (OSError, ValueError) as error:
        raise InvalidOption(
            option="registry.ssl.*",
            owner=settings.source,
            problem=f"the files for TLS cannot be used: {words_of(error)}",
            advice="Give PEM files; that of the certificate holds its private key, too.",
        ) from None
    return context


def words_of(error: Exception) -> str:
    """What went wrong on the way, without anything that was sent."""
    reason = getattr(error, "reason", None)
    if isinstance(reason, Exception):
        return words_of(reason)
    # Not every text may be shown; these two are words of the system about a connection.
    text = getattr(error, "strerror", None) or reason
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def seconds_of(text: str | None) -> float:
    """A number of seconds; the other form, a date, is left to our own waits."""
    return float(text) if text is not None and text.isdecimal() else 0.0
