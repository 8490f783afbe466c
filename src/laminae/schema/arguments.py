"""Argument checks of the public schema functions: an argument of the wrong type is refused by name, at the call."""

from __future__ import annotations

from collections.abc import Iterable

from laminae.errors import InvalidOption


def require(owner: str, kind: type | tuple[type, ...], **arguments: object) -> None:
    """InvalidOption for the first argument that is not of this kind."""
    for name, value in arguments.items():
        if not isinstance(value, kind):
            kinds = kind if isinstance(kind, tuple) else (kind,)
            advice = f"Give a {' or a '.join(f'{expected.__module__}.{expected.__qualname__}' for expected in kinds)}."
            raise InvalidOption(option=name, owner=owner, problem=f"it is a {type(value).__name__}", advice=advice)


def require_each(owner: str, kind: type | tuple[type, ...], argument: str, values: object) -> None:
    """The same for the items of a sequence."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        advice = "Give a list."
        raise InvalidOption(option=argument, owner=owner, problem=f"it is a {type(values).__name__}", advice=advice)
    for index, value in enumerate(values):
        require(owner, kind, **{f"{argument}[{index}]": value})
