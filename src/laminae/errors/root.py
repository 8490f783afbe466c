"""The root of all errors, and the row of the error table that each of them carries.

Nothing here imports another part of laminae.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import Formatter
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """One row of the error table. `{name}` in a text is a parameter that the raise site must give."""

    message: str
    remedy: str

    @property
    def parameters(self) -> tuple[str, ...]:
        names = (name for text in (self.message, self.remedy) for _, name, _, _ in Formatter().parse(text) if name)
        return tuple(dict.fromkeys(names))


class LaminaeError(Exception):
    """Root of all errors. `code` is stable, `params` are the values behind the text, `remedy` says what to do."""

    code: ClassVar[str]
    row: ClassVar[ErrorRow]
    classes: ClassVar[dict[str, type[LaminaeError]]] = {}

    def __init_subclass__(cls) -> None:
        cls.__doc__ = f"{cls.code}: {cls.row.message}"
        LaminaeError.classes[cls.code] = cls

    def __init__(self, **params: object) -> None:
        row = self.row
        if unknown := params.keys() ^ set(row.parameters):
            raise TypeError(f"{type(self).__name__} needs exactly {row.parameters}, differs in {sorted(unknown)}")
        self.params = params
        self.message = row.message.format(**params)
        self.remedy = row.remedy.format(**params)
        super().__init__(f"[{self.code}] {self.message}\n  remedy: {self.remedy}")

    def __reduce__(self) -> tuple[object, tuple[type[LaminaeError], dict[str, object]]]:
        return _rebuild, (type(self), self.params)


def _rebuild(cls: type[LaminaeError], params: dict[str, object]) -> LaminaeError:
    return cls(**params)
