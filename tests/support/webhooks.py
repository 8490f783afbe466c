"""A real server on the loopback address that takes what it is sent, refuses it, or does not answer."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING

from tests.support.http_servers import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = 60.0


@dataclass
class Inbox:
    """`statuses` are the answers to come, 200 once they are used up; while `open` is not set, none is given."""

    address: str = ""
    statuses: list[int] = field(default_factory=list)
    notices: list[dict[str, object]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    open: threading.Event = field(default_factory=threading.Event)
    asked: threading.Event = field(default_factory=threading.Event)


@contextmanager
def webhook() -> Iterator[Inbox]:
    inbox = Inbox()
    inbox.open.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # the library's name
            body = self.rfile.read(int(self.headers["Content-Length"]))
            inbox.asked.set()
            assert inbox.open.wait(SECONDS)
            status = inbox.statuses.pop(0) if inbox.statuses else 200
            if status == 200:
                inbox.notices.append(json.loads(body))
            inbox.headers.append(dict(self.headers))
            self.send_response(status)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the library's name
            """Nothing: what was sent is in the inbox."""

    with serving(Handler, inbox.open) as address:
        inbox.address = f"{address}/hook"
        yield inbox
