"""What a statement gives back: an Arrow table with the ways out that DuckDB users know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.errors import NotAvailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    import pyarrow as pa


class Result:
    """An answer that is already complete. Iterating gives tuples."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    @property
    def columns(self) -> list[str]:
        return list(self._table.column_names)

    def fetchall(self) -> list[tuple[object, ...]]:
        columns = [column.to_pylist() for column in self._table.columns]
        return list(zip(*columns, strict=True))

    def fetchone(self) -> tuple[object, ...] | None:
        return next(iter(self.fetchall()), None)

    def arrow(self) -> pa.Table:
        return self._table

    def df(self) -> pd.DataFrame:
        """The answer as a pandas frame."""
        frame: pd.DataFrame = self._table.to_pandas()
        return frame

    def spark(self) -> object:
        raise NotAvailable(
            feature="Result.spark()",
            problem="this answer was made without Spark",
            advice="Use .arrow() or .df(), or spark.createDataFrame(result.arrow()).",
        )

    def show(self, limit: int = 50) -> None:
        """Print the first rows as a table."""
        from laminae.render import print_table

        print_table(self._table, limit)

    def __iter__(self) -> Iterator[tuple[object, ...]]:
        return iter(self.fetchall())

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __repr__(self) -> str:
        return f"Result({len(self)} rows: {', '.join(self.columns)})"
