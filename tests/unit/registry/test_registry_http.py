"""Requests over real sockets: headers, credentials, TLS, redirects, and servers that break off."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, ClassVar

import pytest

from laminae.errors import InvalidOption
from laminae.net.http import NoResponse
from laminae.registry import RegistryClient, RegistrySettings
from laminae.registry.transport import CONTENT_TYPE, HttpTransport, Request

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Echo(BaseHTTPRequestHandler):
    """Says what it was sent; `/moved` redirects, `/full` wants to be left alone, `/gone` breaks off."""

    seen: ClassVar[list[str]] = []

    def _answer(self) -> None:
        self.seen.append(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/gone":
            self.connection.close()
            return
        status, extra = {"/moved": (302, ("Location", "/other")), "/full": (429, ("Retry-After", "7"))}.get(
            self.path, (200, ("X-Nothing", "0"))
        )
        said = json.dumps({"headers": dict(self.headers), "body": body.decode(), "method": self.command}).encode()
        self.send_response(status)
        self.send_header(*extra)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    do_GET = do_POST = _answer  # noqa: N815  # the library's names

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the library's name
        """Nothing: what was asked is in `seen`."""


@contextmanager
def serving(context: ssl.SSLContext | None = None) -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Echo)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"{'http' if context is None else 'https'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def address() -> Iterator[str]:
    Echo.seen.clear()
    with serving() as found:
        yield found


def headers_of(settings: RegistrySettings) -> dict[str, str]:
    headers = json.loads(HttpTransport(settings)(Request("GET", "/x")).body)["headers"]
    assert isinstance(headers, dict)
    return headers


def test_a_body_is_sent_as_json_of_a_registry(address: str) -> None:
    said = json.loads(HttpTransport(RegistrySettings(address, "s"))(Request("POST", "/x", {"a": "ä"})).body)
    assert (said["method"], said["body"], said["headers"]["Content-Type"]) == ("POST", '{"a":"ä"}', CONTENT_TYPE)
    assert "Authorization" not in said["headers"]


def test_a_user_is_sent_as_basic_and_a_token_as_bearer(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INFO", "user:wörd")
    monkeypatch.setenv("TOKEN", "abc.def")
    basic = RegistrySettings(address, "s", user_info="${env:INFO}")
    assert headers_of(basic)["Authorization"] == "Basic dXNlcjp3w7ZyZA=="
    assert headers_of(RegistrySettings(address, "s", token="${env:TOKEN}"))["Authorization"] == "Bearer abc.def"


@pytest.mark.parametrize("token", ["two\nlines", "wörd"])
def test_a_token_that_is_no_header_is_refused_and_not_shown(
    address: str, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    monkeypatch.setenv("TOKEN", token)
    with pytest.raises(InvalidOption) as caught:
        headers_of(RegistrySettings(address, "s", token="${env:TOKEN}"))
    assert token not in str(caught.value)


def test_a_redirect_is_an_answer_and_is_not_followed(address: str) -> None:
    assert HttpTransport(RegistrySettings(address, "s"))(Request("GET", "/moved")).status == 302
    assert Echo.seen == ["/moved"]


def test_a_server_says_how_long_it_wants_to_be_left_alone(address: str) -> None:
    answer = HttpTransport(RegistrySettings(address, "s"))(Request("GET", "/full"))
    assert (answer.status, answer.retry_after) == (429, 7.0)


def test_a_server_that_breaks_off_or_is_not_there_gives_no_answer(address: str) -> None:
    with pytest.raises(NoResponse, match="RemoteDisconnected"):
        HttpTransport(RegistrySettings(address, "s"))(Request("GET", "/gone"))
    with serving() as closed:
        pass
    with pytest.raises(NoResponse, match="ConnectionRefusedError: Connection refused"):
        HttpTransport(RegistrySettings(closed, "s"))(Request("GET", "/x"))


def test_a_path_of_the_address_stands_before_that_of_the_request(address: str) -> None:
    HttpTransport(RegistrySettings(f"{address}/apis/v7/", "s"))(Request("GET", "/subjects"))
    assert Echo.seen == ["/apis/v7/subjects"]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of the loopback address that signs itself, with its encrypted key in the same file."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed: TLS to a registry was NOT tested")
    place = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-days", "2"),
            *("-subj", "/CN=laminae", "-addext", "subjectAltName=IP:127.0.0.1", "-passout", "pass:opener"),
            *("-keyout", str(place / "key.pem"), "-out", str(place / "ca.pem")),
        ],
        check=True,
        capture_output=True,
    )
    both = place / "both.pem"
    both.write_text((place / "key.pem").read_text() + (place / "ca.pem").read_text())
    return both


def server_context(certificate: Path, verify: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, password="opener")
    if verify:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(certificate.with_name("ca.pem"))
    return context


def test_a_server_is_trusted_by_the_authority_given_and_not_otherwise(certificate: Path) -> None:
    with serving(server_context(certificate)) as address:
        trusting = RegistrySettings(address, "s", ca=str(certificate.with_name("ca.pem")))
        assert headers_of(trusting)["Host"] in address
        with pytest.raises(NoResponse, match="SSLCertVerificationError"):
            HttpTransport(RegistrySettings(address, "s"))(Request("GET", "/x"))


def test_a_client_shows_its_own_certificate(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENER", "opener")
    with serving(server_context(certificate, verify=True)) as address:
        ca = str(certificate.with_name("ca.pem"))
        known = RegistrySettings(
            address, "s", ca=ca, certificate=str(certificate), certificate_password="${env:OPENER}"
        )
        assert headers_of(known)["Host"] in address
        with pytest.raises(NoResponse):
            HttpTransport(RegistrySettings(address, "s", ca=ca))(Request("GET", "/x"))


def test_files_for_tls_that_cannot_be_used_are_refused(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENER", "wrong word")
    for wrong in (
        RegistrySettings("https://r", "s", ca="/nowhere/ca.pem"),
        RegistrySettings("https://r", "s", certificate=str(certificate), certificate_password="${env:OPENER}"),
    ):
        with pytest.raises(InvalidOption, match="TLS") as caught:
            HttpTransport(wrong)
        assert "wrong word" not in str(caught.value)


def test_a_client_shows_its_address_and_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "hunter2")
    settings = RegistrySettings("https://registry", "s", token="${env:TOKEN}")
    assert "hunter2" not in repr(settings) + repr(RegistryClient(settings))
    assert "https://registry" in repr(RegistryClient(settings))
