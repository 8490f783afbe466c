"""What a statement gives back: an Arrow table with the ways out that DuckDB users know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.errors import NotAvailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame


class Result:
    """An answer: an Arrow table that is already there, or a Spark DataFrame that is computed when it is looked at."""

    def __init__(self, table: pa.Table | None = None, frame: DataFrame | None = None) -> None:
        self._table, self._frame = table, frame

    @property
    def columns(self) -> list[str]:
        return list(self._frame.columns if self._frame is not None else self.arrow().column_names)

    def fetchall(self) -> list[tuple[object, ...]]:
        columns = [column.to_pylist() for column in self.arrow().columns]
        return list(zip(*columns, strict=True))

    def fetchone(self) -> tuple[object, ...] | None:
        return next(iter(self.fetchall()), None)

    def arrow(self) -> pa.Table:
        if self._table is None and self._frame is not None:
            self._table = self._frame.toArrow()
        return self._table

    def df(self) -> pd.DataFrame:
        """The answer as a pandas frame."""
        frame: pd.DataFrame = self.arrow().to_pandas()
        return frame

    def spark(self) -> DataFrame:
        """The answer as a Spark DataFrame, where Spark gives it."""
        if self._frame is None:
            raise NotAvailable(
                feature="Result.spark()",
                problem="this answer was made without Spark",
                advice="Use .arrow() or .df(), or spark.createDataFrame(result.arrow()).",
            )
        return self._frame

    def show(self, limit: int = 50) -> None:
        """Print the first rows as a table."""
        from laminae.render import print_table

        print_table(self.arrow(), limit)

    def __iter__(self) -> Iterator[tuple[object, ...]]:
        return iter(self.fetchall())

    def __len__(self) -> int:
        return int(self.arrow().num_rows)

    def __repr__(self) -> str:
        return f"Result({', '.join(self.columns)})"
