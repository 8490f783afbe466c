"""A gateway before a real server: it hands requests on and keeps what was sent; it loses answers, refuses, is mute."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tests.support.http_servers import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = 60.0
# Each hop has its own.
OF_A_HOP = {"host", "connection", "transfer-encoding", "content-length", "date", "server"}


@dataclass
class Gateway:
    """`lose` is the end of the path of a POST whose next answer is lost. While `open` is not set, nothing is answered.

    A gateway that refuses quotes what it was sent, as some do. The answer to a HEAD has no room for that.
    """

    address: str = ""
    authorizations: list[str | None] = field(default_factory=list)
    lose: str | None = None
    refuses: bool = False
    open: threading.Event = field(default_factory=threading.Event)


@contextmanager
def forwarding(address: str) -> Iterator[Gateway]:
    gateway, behind = Gateway(), urlsplit(address).netloc
    gateway.open.set()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:  # the library's name
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            told = self.headers.get("Authorization")
            assert gateway.open.wait(SECONDS)
            gateway.authorizations.append(told)
            if gateway.refuses and self.command != "HEAD":
                words = f"{told} is not known here"
                refusal = {"error": {"message": words, "type": "NotAuthorizedException", "code": 401}}
                self._answer(401, {"Content-Type": "application/json"}, json.dumps(refusal).encode())
                return
            status, headers, answer = self._ask(body)
            if self.command == "POST" and gateway.lose is not None and self.path.endswith(gateway.lose):
                gateway.lose = None
                self.close_connection = True
                return
            self._answer(status, headers, answer)

        do_POST = do_HEAD = do_DELETE = do_GET  # noqa: N815  # the library's names

        def _ask(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
            connection = HTTPConnection(behind, timeout=SECONDS)
            given = {name: value for name, value in self.headers.items() if name.lower() not in OF_A_HOP}
            connection.request(self.command, self.path, body or None, given)
            answer = connection.getresponse()
            content = answer.read()
            connection.close()
            return answer.status, dict(answer.getheaders()), content

        def _answer(self, status: int, headers: dict[str, str], content: bytes) -> None:
            # Whoever asked may have given up.
            with suppress(ConnectionError):
                self.send_response(status)
                for name, value in headers.items():
                    if name.lower() not in OF_A_HOP:
                        self.send_header(name, value)
                if status != 204:
                    self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the library's name
            """Nothing: what was sent is in the gateway."""

    with serving(Handler, gateway.open) as gateway.address:
        yield gateway
