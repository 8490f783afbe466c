"""A Delta table by its path: validates the path and opens the table with delta-rs, which is imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.errors import InvalidOption, NotAvailable
from laminae.spark.catalyst.paths import local_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalake import DeltaTable

# delta-rs 1.6.6 panics on most of these characters, which cannot be caught as an error, and takes the last one for a
# slash.
UNKNOWN = "[]^|\\"


def table_path(options: Mapping[str, str], owner: str) -> str:
    """The absolute path of the table's directory."""
    if "path" not in options:
        raise InvalidOption(
            option="path", owner=owner, problem="it is missing", advice="Give the directory of the Delta table."
        )
    place = local_path(options["path"], owner)
    if unsupported := [character for character in UNKNOWN if character in place]:
        raise InvalidOption(
            option="path",
            owner=owner,
            problem=f"delta-rs cannot open {place}, because its name contains {unsupported[0]}",
            advice="Move the table to a directory of another name.",
        )
    return place


def opened(path: str, owner: str) -> DeltaTable:
    """Exceptions of delta-rs are passed on: the caller knows what they mean in its context."""
    try:
        from deltalake import DeltaTable
    except ImportError as error:
        raise NotAvailable(
            feature=f"Delta for {owner}",
            problem="deltalake is not installed",
            advice="Install it: pip install 'laminae[delta]'.",
        ) from error
    return DeltaTable(path)
