"""One HTTP request over a pool of connections: bytes out, a status and bytes back.

It follows no redirects, because that would send the credentials to another host. It does not retry: credentials are
read again for every attempt, and the wait must end when its owner is closed (`laminae.net.backoff`).
"""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from laminae.version import __version__

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator, Mapping

    import urllib3

USER_AGENT = f"laminae/{__version__}"
SCHEMES = frozenset({"http", "https"})
# A schema of Avro's maximum depth is far smaller; a larger response cannot be valid.
MOST_BYTES = 64 << 20
# A load balancer drops an idle connection silently, from a minute on: a request on it would get no response.
IDLE_SECONDS = 30.0

_is_sending: ContextVar[bool] = ContextVar("laminae_is_sending", default=False)


@dataclass(frozen=True, slots=True)
class Response:
    """`retry_after`: the server's Retry-After, in seconds."""

    status: int
    body: bytes
    retry_after: float = 0.0


class NoResponse(Exception):
    """The server could not be reached or closed the connection. The text contains nothing that was sent."""


class InvalidAddress(Exception):
    """Not an http or https address. It has no text, because an address may contain a secret."""


@dataclass(frozen=True, slots=True)
class HttpClient:
    """Connections are kept and used again, also by several threads. `timeout`: seconds to connect, and to wait for
    each part of a response. Proxies are those of the environment (`HTTPS_PROXY`, `NO_PROXY`).
    """

    timeout: float = 10.0
    tls: ssl.SSLContext | None = None
    _pools: dict[str | None, urllib3.PoolManager] = field(default_factory=dict, repr=False)
    _used: dict[str | None, float] = field(default_factory=dict, repr=False)

    def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None) -> Response:
        """Raises `NoResponse` or `InvalidAddress`; any status is a response, also a redirect."""
        from urllib3.exceptions import HTTPError, LocationValueError

        with _quiet_logs():
            try:
                response = self._pool(url).request(
                    method,
                    url,
                    body=body,
                    headers={"User-Agent": USER_AGENT, **headers},
                    timeout=self.timeout,
                    retries=False,
                    redirect=False,
                    preload_content=False,
                )
                try:
                    content = response.read(MOST_BYTES, decode_content=False)
                except (HTTPError, OSError):
                    # The status has arrived and says what the server did with the request.
                    content = b""
                finally:
                    # Closes the connection if there is more to read; else it is in the pool again.
                    response.close()
            except (LocationValueError, UnicodeError):
                raise InvalidAddress from None
            except (HTTPError, OSError) as error:
                raise NoResponse(cause_text(error)) from None
        return Response(response.status, content, retry_after_seconds(response.headers.get("Retry-After")))

    def _pool(self, url: str) -> urllib3.PoolManager:
        import urllib3

        proxy = _proxy(url)
        if proxy not in self._pools:
            self._pools[proxy] = (
                urllib3.PoolManager(ssl_context=self.tls)
                if proxy is None
                else urllib3.ProxyManager(proxy, proxy_headers=_proxy_headers(proxy), ssl_context=self.tls)
            )
        now = time.monotonic()
        if now - self._used.get(proxy, now) > IDLE_SECONDS:
            self._pools[proxy].clear()
        self._used[proxy] = now
        return self._pools[proxy]


def cause_text(error: BaseException) -> str:
    """What went wrong with the connection: the innermost cause, without anything that was sent."""
    for cause in (error.__cause__, *error.args):
        if isinstance(cause, BaseException):
            return cause_text(cause)
    # Not every error text is safe to show: urllib3 quotes addresses. This one is a system message about a connection.
    text = error.strerror if isinstance(error, OSError) else None
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def retry_after_seconds(text: str | None) -> float:
    """The value of a Retry-After header, a number of seconds or a date; 0 if it is neither."""
    from urllib3.exceptions import InvalidHeader
    from urllib3.util import Retry

    try:
        return 0.0 if text is None else float(Retry().parse_retry_after(text))
    except (InvalidHeader, OverflowError, ValueError):
        return 0.0


def _proxy(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        is_complete = parts.scheme in SCHEMES and bool(parts.hostname)
    except ValueError:
        raise InvalidAddress from None
    if not is_complete:
        raise InvalidAddress
    proxy = getproxies().get(parts.scheme)
    if not proxy or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _proxy_headers(proxy: str) -> dict[str, str]:
    from urllib3.util import make_headers

    parts = urlsplit(proxy)
    if parts.username is None:
        return {}
    return make_headers(proxy_basic_auth=f"{unquote(parts.username)}:{unquote(parts.password or '')}")


@contextmanager
def _quiet_logs() -> Iterator[None]:
    """urllib3 logs the path of every request at DEBUG, and the path of a webhook is a credential."""
    _filter_logs()
    token = _is_sending.set(True)
    try:
        yield
    finally:
        _is_sending.reset(token)


@cache
def _filter_logs() -> None:
    # A filter of a parent logger does not hold for its children.
    for name in ("urllib3.connection", "urllib3.connectionpool", "urllib3.util.retry", "urllib3.poolmanager"):
        logging.getLogger(name).addFilter(lambda _: not _is_sending.get())
