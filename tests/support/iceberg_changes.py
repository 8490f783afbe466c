"""Every kind of change that an Iceberg table can make, and the verdict of the rules under every mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyiceberg.types import DoubleType, LongType, StringType

from tests.support.following import followed
from tests.support.iceberg import put_row

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyiceberg.table import Table
    from pyiceberg.table.update.schema import UpdateSchema

    import laminae as lm
    from tests.support.iceberg import Lake

APPLIED, WAITS, REJECTED, NOTHING = "Applied", "NeedsConfirmation", "Rejected", "NoChange"
MODES = ("BACKWARD", "FORWARD", "FULL", "NONE")
OK = (APPLIED,) * 4
COLUMNS = {"id": pa.int64(), "amount": pa.int32(), "rate": pa.float32(), "note": pa.string()}


def reused_name(table: Table) -> None:
    with table.update_schema() as update:
        update.delete_column("note")
    with table.update_schema() as update:
        update.add_column("note", LongType())


def changed(edit: Callable[[UpdateSchema], object], **how: bool) -> Callable[[Table], None]:
    def change(table: Table) -> None:
        with table.update_schema(**how) as update:
            edit(update)

    return change


# What the table does; the answers under BACKWARD, FORWARD, FULL and NONE; the columns where it is applied.
ROWS: dict[str, tuple[Callable[[Table], None], tuple[str, ...], list[str]]] = {
    "add, nullable": (
        changed(lambda u: u.add_column("city", StringType())),
        OK,
        ["id", "amount", "rate", "note", "city"],
    ),
    "add, NOT NULL without default": (
        changed(lambda u: u.add_column("city", StringType(), required=True), allow_incompatible_changes=True),
        (REJECTED, APPLIED, REJECTED, WAITS),
        ["id", "amount", "rate", "note", "city"],
    ),
    "drop": (
        changed(lambda u: u.delete_column("note")),
        (REJECTED, APPLIED, REJECTED, WAITS),
        ["id", "amount", "rate"],
    ),
    "drop, and the name used again": (
        reused_name,
        (REJECTED, APPLIED, REJECTED, WAITS),
        ["id", "amount", "rate", "note"],
    ),
    "rename": (changed(lambda u: u.rename_column("note", "text")), OK, ["id", "amount", "rate", "text"]),
    "rename and promote": (
        changed(lambda u: u.update_column("amount", LongType()).rename_column("amount", "cents")),
        (APPLIED, REJECTED, REJECTED, APPLIED),
        ["id", "cents", "rate", "note"],
    ),
    "promote": (
        changed(lambda u: u.update_column("rate", DoubleType())),
        (APPLIED, REJECTED, REJECTED, APPLIED),
        list(COLUMNS),
    ),
    "NULL -> NOT NULL": (
        changed(lambda u: u.update_column("note", required=True), allow_incompatible_changes=True),
        (REJECTED, APPLIED, REJECTED, WAITS),
        list(COLUMNS),
    ),
    "NOT NULL -> NULL": (
        changed(lambda u: u.update_column("id", required=False)),
        (APPLIED, REJECTED, REJECTED, APPLIED),
        list(COLUMNS),
    ),
    "reorder": (changed(lambda u: u.move_first("note")), OK, ["note", "id", "amount", "rate"]),
    "a comment": (changed(lambda u: u.update_column("note", doc="text")), (NOTHING,) * 4, list(COLUMNS)),
}


def create(
    db: lm.Database,
    lake: Lake,
    columns: str = "id BIGINT NOT NULL, amount INT, rate FLOAT, note STRING",
    **options: str,
) -> None:
    db.sql(f"CREATE SOURCE s ({columns}) WITH {lake.options('orders', **options)}")


def assert_follows(db: lm.Database, lake: Lake, row: str, mode: int) -> None:
    """A table that makes this change is followed as the row says of the mode."""
    change, answers, names = ROWS[row]
    table = put_row(lake.table("orders", COLUMNS, required=["id"]))
    create(db, lake, compatibility=MODES[mode])
    assert followed(db, 0) == APPLIED
    assert db.schema("s").names == list(COLUMNS)
    change(table)
    put_row(table)
    assert followed(db, 1) == answers[mode]
    assert db.schema("s").names == (names if answers[mode] == APPLIED else list(COLUMNS))
    put_row(table)
    assert followed(db, 2) is None
