"""A Delta table by its path: what is asked of it, and of delta-rs, which is loaded when it is first asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.errors import InvalidOption, NotAvailable
from laminae.spark.paths import local_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalake import DeltaTable

# It panics at most of them (1.6.6), which is no error that could be caught, and takes the last one for a slash.
UNKNOWN = "[]^|\\"


def table_path(options: Mapping[str, str], owner: str) -> str:
    """The directory of the table, absolute."""
    if "path" not in options:
        raise InvalidOption(
            option="path", owner=owner, problem="it is missing", advice="Give the directory of the Delta table."
        )
    place = local_path(options["path"], owner)
    if found := [character for character in UNKNOWN if character in place]:
        raise InvalidOption(
            option="path",
            owner=owner,
            problem=f"delta-rs cannot open {place}, as its name has a {found[0]}",
            advice="Move the table to a directory of another name.",
        )
    return place


def opened(path: str, owner: str) -> DeltaTable:
    """Raises what delta-rs raises: who asks knows what it means there."""
    try:
        from deltalake import DeltaTable
    except ImportError as error:
        raise NotAvailable(
            feature=f"Delta for {owner}",
            problem="deltalake is not installed",
            advice="Install it: pip install 'laminae[delta]'.",
        ) from error
    return DeltaTable(path)
