"""One notice to one address. No redirect is followed, as that would hand secrets to another host; nothing is retried.

Address and headers may be references to secrets: they are looked up at each attempt, and only the host is shown.
"""

from __future__ import annotations

import urllib.error
import urllib.request
from dataclasses import dataclass
from http.client import HTTPException
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from laminae.errors import InvalidOption
from laminae.references import resolved
from laminae.registry.http import NoRedirect, seconds_of, words_of
from laminae.secrets import is_reference
from laminae.version import __version__

if TYPE_CHECKING:
    from laminae.catalog.model import Options

OPTION = "on_change"
HEADER = f"{OPTION}.header."
TIMEOUT = 10.0
# Statuses below 500 that another attempt may change: too slow, too early, too many.
WORTH_ANOTHER = frozenset({408, 425, 429})


class NotTaken(Exception):
    """The other side did not take the notice. `is_final`: another attempt would not change that."""

    def __init__(self, problem: str, is_final: bool = False, retry_after: float = 0.0) -> None:
        super().__init__(problem)
        self.is_final = is_final
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where notices of one source go, as its options say."""

    source: str
    address: str
    headers: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of_options(cls, options: Options, source: str) -> Webhook | None:
        address = dict(options).get(OPTION)
        if address is None:
            return None
        given = ((name.removeprefix(HEADER), value) for name, value in options if name.startswith(HEADER))
        return cls(source, address, tuple(given))

    def post(self, body: bytes) -> None:
        """Raises `NotTaken` unless the other side says yes."""
        opener = urllib.request.build_opener(NoRedirect())
        try:
            with opener.open(self._request(body), timeout=TIMEOUT):
                return
        except urllib.error.HTTPError as error:
            with error:
                is_final = error.code < 500 and error.code not in WORTH_ANOTHER
                wait = seconds_of(error.headers.get("Retry-After"))
                raise NotTaken(f"status {error.code} of {self._host()}", is_final, wait) from None
        except (OSError, HTTPException) as error:
            raise NotTaken(f"{self._host()} does not answer: {words_of(error)}") from None

    def _request(self, body: bytes) -> urllib.request.Request:
        headers = {"Content-Type": "application/json", "User-Agent": f"laminae/{__version__}"}
        for name, value in self.headers:
            headers[name] = self._plain(value, f"{HEADER}{name}")
        try:
            return urllib.request.Request(self._plain(self.address, OPTION), body, headers, method="POST")
        except ValueError:
            # The library would quote the address.
            raise NotTaken(f"what {OPTION} of {self.source} refers to is no address", is_final=True) from None

    def _plain(self, given: str, option: str) -> str:
        found = resolved(given, option, self.source) if is_reference(given) else given
        # The library would quote the whole header in its complaint.
        if not (found.isascii() and found.isprintable()):
            problem = "what it refers to is not one line of plain characters"
            raise InvalidOption(option=option, owner=self.source, problem=problem, advice="Put the value alone there.")
        return found

    def _host(self) -> str:
        return self.address if is_reference(self.address) else urlsplit(self.address).netloc.rpartition("@")[2]
