"""HTTP over real sockets: connections that are kept, limits of time and size, proxies, and logs without addresses."""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING

import pytest

from laminae.net import http
from laminae.net.http import HttpClient, InvalidAddress, NoResponse, retry_after_seconds
from tests.support.http_servers import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

SECRET = "hunter22"


@dataclass
class Server:
    """`paths` are the requests of every connection in turn. A request for /late waits until the server ends."""

    address: str = ""
    connections: list[list[str]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    ending: threading.Event = field(default_factory=threading.Event)


@contextmanager
def server() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            self.paths: list[str] = []
            state.connections.append(self.paths)

        def do_GET(self) -> None:  # the library's name
            self.paths.append(self.path)
            state.headers.append(dict(self.headers))
            if self.path.startswith("/late"):
                state.ending.wait(60)
            self.send_response(200)
            if self.path.startswith("/cut"):
                # The connection ends within the first chunk.
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                self.wfile.write(b"9\r\nbody")
                self.close_connection = True
                return
            self.send_header("Content-Length", "4")
            self.end_headers()
            self.wfile.write(b"body")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the library's name
            """Nothing: the requests are in the state."""

    with serving(Handler, state.ending) as address:
        state.address = address
        yield state


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def running() -> Iterator[Server]:
    with server() as state:
        yield state


def test_requests_share_a_connection(running: Server) -> None:
    client = HttpClient()
    for path in ("/a", "/b"):
        assert client.send("GET", running.address + path, {}).body == b"body"
    assert running.connections == [["/a", "/b"]]


def test_connection_that_was_idle_is_not_used_again(running: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "IDLE_SECONDS", -1.0)
    client = HttpClient()
    client.send("GET", f"{running.address}/a", {})
    client.send("GET", f"{running.address}/b", {})
    assert running.connections == [["/a"], ["/b"]]


def test_status_counts_where_the_body_breaks_off(running: Server) -> None:
    response = HttpClient().send("GET", f"{running.address}/cut", {})
    assert (response.status, response.body) == (200, b"")


def test_response_that_is_too_large_is_cut_and_its_connection_is_not_used_again(
    running: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "MOST_BYTES", 3)
    client = HttpClient()
    assert client.send("GET", f"{running.address}/a", {}).body == b"bod"
    assert client.send("GET", f"{running.address}/b", {}).body == b"bod"
    assert running.connections == [["/a"], ["/b"]]


def test_server_that_is_late_gives_no_response_and_its_address_is_not_shown(running: Server) -> None:
    with pytest.raises(NoResponse) as raised:
        HttpClient(timeout=0.05).send("GET", f"{running.address}/late/{SECRET}", {})
    assert str(raised.value) == "TimeoutError"


def test_host_that_is_unknown_is_told_by_its_cause() -> None:
    with pytest.raises(NoResponse, match="gaierror"):
        HttpClient().send("GET", f"http://no-such-host.invalid/{SECRET}", {})


@pytest.mark.parametrize(
    "address", ["ftp://host/x", "file:///etc/passwd", "host/x", "http://", "http://[::1/", "http://host:port/", ""]
)
def test_only_http_addresses_are_requested(address: str) -> None:
    with pytest.raises(InvalidAddress) as raised:
        HttpClient().send("GET", address, {})
    assert str(raised.value) == ""
    assert raised.value.__cause__ is None


def test_no_log_shows_the_path_of_a_request(running: Server, caplog: pytest.LogCaptureFixture) -> None:
    import urllib3

    with caplog.at_level(logging.DEBUG):
        HttpClient().send("GET", f"{running.address}/{SECRET}", {})
        assert SECRET not in caplog.text
        urllib3.PoolManager().request("GET", f"{running.address}/of-somebody-else")
    assert "/of-somebody-else" in caplog.text


def test_request_goes_through_the_proxy_of_the_environment(running: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", running.address.replace("://", f"://user:{SECRET}%21@"))
    HttpClient().send("GET", "http://registry.example/subjects", {"Authorization": "Basic x"})
    assert running.connections == [["http://registry.example/subjects"]]
    assert running.headers[0]["proxy-authorization"] == "Basic dXNlcjpodW50ZXIyMiE="
    assert running.headers[0]["Authorization"] == "Basic x"


def test_proxy_may_be_written_without_its_scheme(running: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", running.address.removeprefix("http://"))
    assert HttpClient().send("GET", "http://registry.example/x", {}).status == 200


def test_host_that_the_environment_excepts_is_reached_directly(
    running: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert HttpClient().send("GET", f"{running.address}/x", {}).status == 200
    assert running.connections == [["/x"]]


def test_proxy_that_is_away_is_told_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"http://user:{SECRET}@127.0.0.1:1")
    with pytest.raises(NoResponse) as raised:
        HttpClient().send("GET", "http://registry.example/x", {})
    assert str(raised.value) == "ConnectionRefusedError: Connection refused"


def test_retry_after_is_a_number_of_seconds_or_a_date() -> None:
    assert retry_after_seconds("7") == 7.0
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    assert 90 < retry_after_seconds(later) <= 100
    assert [retry_after_seconds(text) for text in (None, "", "soon", "-1")] == [0.0] * 4


def test_retry_after_of_too_many_digits_is_none() -> None:
    assert retry_after_seconds("9" * 5000) == 0.0
