"""The error text of a catalog or a store, fit to be shown: one line, with the secrets it was given masked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.secrets import MASK, masked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def why(problem: Exception, secrets: Iterable[str] = ()) -> str:
    """What went wrong, in one line; the messages of client libraries often have many."""
    return (_hidden(str(problem), secrets).splitlines() or [type(problem).__name__])[0]


def cause(problem: Exception, secrets: Iterable[str] = ()) -> Exception | None:
    """The exception to chain as the cause of ours; None if it or any exception in its chain contains a secret, because
    a traceback prints the whole chain.
    """
    hidden, chain = tuple(secrets), [problem, *_behind(problem)]
    return problem if all(_hidden(str(error), hidden) == str(error) for error in chain) else None


def _behind(problem: BaseException) -> Iterator[BaseException]:
    error: BaseException | None = problem
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        error = error.__cause__ or error.__context__
        if error is not None:
            yield error


def _hidden(text: str, secrets: Iterable[str]) -> str:
    # Servers quote in their own wording what they reject. In a credential `id:secret`, the second part is the secret.
    parts = {part for secret in secrets for part in (secret, secret.partition(":")[2]) if part}
    for part in sorted(parts, key=len, reverse=True):
        text = text.replace(part, MASK)
    return masked(text)
