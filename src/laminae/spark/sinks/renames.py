"""Order column renames so that no step uses a name that is still taken, also for swaps and cycles."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

ASIDE = "dropped"
_TEMPORARY = "laminae_renamed"


def rename_steps(renames: Mapping[str, str], names: Collection[str]) -> list[tuple[str, str]]:
    """(old name, new name) in an order in which each step is possible on a table with the columns `names`.

    A column that is not renamed but occupies the new name of another is moved aside first, see `name_aside`.
    """
    waiting = {old: new for old, new in renames.items() if old != new}
    taken = set(names)
    steps: list[tuple[str, str]] = []

    def rename(old: str, new: str) -> None:
        steps.append((old, new))
        taken.remove(old)
        taken.add(new)

    for new in list(waiting.values()):
        if new in taken and new not in waiting:
            rename(new, name_aside(new, taken))
    while waiting:
        ready = next((old for old, new in waiting.items() if new not in taken), None)
        if ready is not None:
            rename(ready, waiting.pop(ready))
            continue
        # All remaining renames form cycles: break one with a temporary name.
        old, new = next(iter(waiting.items()))
        temporary = _unused(_TEMPORARY, taken)
        rename(old, temporary)
        del waiting[old]
        waiting[temporary] = new
    return steps


def name_aside(name: str, taken: Collection[str]) -> str:
    """The name that a column gets when its own name is needed for another column."""
    return _unused(f"{name}_{ASIDE}", taken)


def _unused(name: str, taken: Collection[str]) -> str:
    number, candidate = 1, name
    while candidate in taken:
        number += 1
        candidate = f"{name}_{number}"
    return candidate
