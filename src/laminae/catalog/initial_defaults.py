"""A catalog migration step: writes into stored schemas which default each column was added with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.catalog.rows import schema, schema_bytes
from laminae.schema.column import ID, columns_of
from laminae.schema.identity import default_metadata, rewrite

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from laminae.catalog.drivers.protocol import Transaction
    from laminae.schema.column import Columns


def write_initial_defaults(transaction: Transaction) -> None:
    """The initial default of a column is its default in the first version that has it."""
    first: dict[tuple[int, int], str | None] = {}
    versions = transaction.query("SELECT source_id, version, arrow_schema FROM schema_versions ORDER BY 1, 2")
    for source_id, version, encoded in versions:
        old = schema(bytes(encoded))
        for number, default in _defaults(columns_of(old)):
            first.setdefault((source_id, number), default)
        initial = {number: default for (source, number), default in first.items() if source == source_id}
        new = with_initial(old, initial)
        if not new.equals(old, check_metadata=True):
            transaction.execute(
                "UPDATE schema_versions SET arrow_schema = ? WHERE source_id = ? AND version = ?",
                schema_bytes(new),
                source_id,
                version,
            )


def with_initial(old: pa.Schema, initial: dict[int, str | None]) -> pa.Schema:
    present = dict(_defaults(columns_of(old)))

    def marked(metadata: dict[bytes, bytes]) -> dict[bytes, bytes]:
        number = int(metadata.get(ID, b"0"))
        if number not in present:
            return metadata
        return default_metadata(metadata, present[number], initial[number])

    return rewrite(old, marked)


def _defaults(columns: Columns) -> Iterator[tuple[int, str | None]]:
    for node in columns:
        if node.id is not None:
            yield node.id, node.default
        yield from _defaults(node.children)
