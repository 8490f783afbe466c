"""Requests to one registry: JSON out, bytes and a status back. Certificates are read once, credentials each time."""

from __future__ import annotations

import base64
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import orjson

from laminae.errors import InvalidOption
from laminae.net.http import HttpClient, InvalidAddress, NoResponse, cause_text

if TYPE_CHECKING:
    from laminae.net.http import Response
    from laminae.registry.settings import RegistrySettings

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    body: object = None

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class Transport(Protocol):
    def __call__(self, request: Request) -> Response:
        """Raises `NoResponse`; any HTTP status is a response."""
        ...


class HttpTransport:
    """Sends requests below the address of the settings."""

    __slots__ = ("_client", "_settings")

    def __init__(self, settings: RegistrySettings) -> None:
        self._settings = settings
        self._client = HttpClient(settings.timeout, _tls(settings))

    def __call__(self, request: Request) -> Response:
        url = self._settings.address.rstrip("/") + request.path
        body = None if request.body is None else orjson.dumps(request.body)
        try:
            return self._client.send(request.method, url, self._headers(), body)
        except InvalidAddress:
            raise NoResponse("its address cannot be used") from None

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": f"{CONTENT_TYPE}, application/json", "Content-Type": CONTENT_TYPE}
        if (user_info := self._settings.secret("user_info")) is not None:
            headers["Authorization"] = "Basic " + base64.b64encode(user_info.encode()).decode()
        if (token := self._settings.secret("token")) is not None:
            # The library would quote the whole header in its error message.
            if not (token.isascii() and token.isprintable()):
                raise InvalidOption(
                    option="registry.bearer.auth.token",
                    owner=self._settings.source,
                    problem="the referenced value is not a single line of printable characters",
                    advice="Store only the token there.",
                )
            headers["Authorization"] = f"Bearer {token}"
        return headers


def _tls(settings: RegistrySettings) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=settings.ca)
        if settings.certificate is not None:
            context.load_cert_chain(settings.certificate, password=settings.secret("certificate_password"))
    except (OSError, ValueError) as error:
        raise InvalidOption(
            option="registry.ssl.*",
            owner=settings.source,
            problem=f"the TLS files cannot be used: {cause_text(error)}",
            advice="Use PEM files; the certificate file must also contain the private key.",
        ) from None
    return context
