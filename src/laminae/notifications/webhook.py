"""Sends one notice to one webhook. Follows no redirects, which would send secrets to another host, and does not retry.

The address and headers may be references to secrets: they are resolved at each attempt, and only the host is shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from laminae.errors import InvalidOption
from laminae.net.http import HttpClient, InvalidAddress, NoResponse
from laminae.references import resolved
from laminae.secrets import is_reference

if TYPE_CHECKING:
    from laminae.catalog.model import Options

OPTION = "on_change"
HEADER = f"{OPTION}.header."
# One pool of connections for all webhooks of the process.
CLIENT = HttpClient(timeout=10.0)
# Statuses below 500 that are retried: too slow, too early, too many.
RETRIED_STATUSES = frozenset({408, 425, 429})


class NotDelivered(Exception):
    """The receiver did not accept the notice. `is_final`: a retry would not change that."""

    def __init__(self, problem: str, is_final: bool = False, retry_after: float = 0.0) -> None:
        super().__init__(problem)
        self.is_final = is_final
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Webhook:
    """The webhook of one source, from its options."""

    source: str
    address: str
    headers: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of_options(cls, options: Options, source: str) -> Webhook | None:
        address = dict(options).get(OPTION)
        if address is None:
            return None
        headers = ((name.removeprefix(HEADER), value) for name, value in options if name.startswith(HEADER))
        return cls(source, address, tuple(headers))

    def post(self, body: bytes) -> None:
        """Raises `NotDelivered` unless the receiver accepts the notice."""
        headers = {name: self._header_text(value, f"{HEADER}{name}") for name, value in self.headers}
        try:
            response = CLIENT.send(
                "POST", self._header_text(self.address, OPTION), {"Content-Type": "application/json", **headers}, body
            )
        except InvalidAddress:
            raise NotDelivered(
                f"the value that {OPTION} of {self.source} refers to is not a URL", is_final=True
            ) from None
        except NoResponse as error:
            raise NotDelivered(f"{self._host()} does not answer: {error}") from None
        if not 200 <= response.status < 300:
            is_final = response.status < 500 and response.status not in RETRIED_STATUSES
            raise NotDelivered(f"status {response.status} of {self._host()}", is_final, response.retry_after)

    def _header_text(self, value: str, option: str) -> str:
        text = resolved(value, option, self.source) if is_reference(value) else value
        # The library would quote the whole header in its error message.
        if not (text.isascii() and text.isprintable()):
            problem = "the referenced value is not a single line of printable characters"
            raise InvalidOption(option=option, owner=self.source, problem=problem, advice="Store only the value there.")
        return text

    def _host(self) -> str:
        return self.address if is_reference(self.address) else urlsplit(self.address).netloc.rpartition("@")[2]
