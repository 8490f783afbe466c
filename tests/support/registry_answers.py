"""Answers that a test writes down for a registry client, and waits that take no time."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from laminae.net.http import NoResponse, Response
from laminae.registry import Retry

if TYPE_CHECKING:
    from laminae.registry.transport import Request


def said(body: object, status: int = 200, retry_after: float = 0.0) -> Response:
    return Response(status, json.dumps(body).encode(), retry_after)


def refused(status: int, code: int | None = None, message: str = "no") -> Response:
    return said({"error_code": status if code is None else code, "message": message}, status)


AWAY = NoResponse("ConnectionRefusedError: Connection refused")


@dataclass(slots=True)
class Script:
    """A transport that gives its answers in turn, and keeps what it was asked."""

    answers: list[Response | NoResponse]
    asked: list[Request] = field(default_factory=list)

    def __call__(self, request: Request) -> Response:
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, NoResponse):
            raise answer
        return answer

    @property
    def paths(self) -> list[str]:
        return [request.path for request in self.asked]


@dataclass(slots=True)
class Waits:
    """A clock that only waiting moves."""

    now: float = 0.0
    waited: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.now += seconds

    def retry(self, chance: float = 1.0, attempts: int = 5, budget: float = 30.0) -> Retry:
        return Retry(attempts=attempts, budget=budget, clock=lambda: self.now, sleep=self.sleep, chance=lambda: chance)
