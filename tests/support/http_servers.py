"""Servers of tests, on the loopback address alone."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from http.server import BaseHTTPRequestHandler

HOST = "127.0.0.1"


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler], answers: threading.Event) -> Iterator[str]:
    """The address of a server that answers by this handler. `answers` is set before it ends, for those who wait."""
    server = ThreadingHTTPServer((HOST, 0), handler)
    # Clients keep their connections, each with a thread that waits for its next request.
    server.daemon_threads = True
    server.block_on_close = False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_port}"
    finally:
        answers.set()
        server.shutdown()
        server.server_close()
        thread.join()
