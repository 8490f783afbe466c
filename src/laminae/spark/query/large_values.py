"""Finds integers beyond a bound in a column of a DataFrame, also inside structs, lists and maps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.schema.column import columns_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from laminae.schema.column import Columns, Path


def value_beyond(rows: DataFrame, schema: pa.Schema, path: Path, most: int) -> int | None:
    """A number that is greater than `most` or less than `-most`; None if there is none."""
    numbers = _numbers(F.col(f"`{path[0].replace('`', '``')}`"), columns_of(schema), path)
    large = F.filter(numbers, lambda number: (number > most) | (number < -most))
    row = rows.select(large.alias("large")).where(F.size("large") > 0).first()
    return None if row is None else int(row["large"][0])


def _numbers(value: Column, columns: Columns, path: Path) -> Column:
    """All numbers at this path in a row, as an array."""
    (node,) = (column for column in columns if column.name == path[0])
    if len(path) == 1:
        return F.array(value.cast("bigint"))
    if node.kind == "struct":
        return _numbers(value.getField(path[1]), node.children, path[1:])
    (inner,) = (child for child in node.children if child.name == path[1])
    items = value if node.kind != "map" else F.map_values(value) if inner is node.children[1] else F.map_keys(value)
    return F.flatten(F.transform(items, lambda item: _numbers(item, node.children, path[1:])))
