"""The result of a statement: an Arrow table with the accessors that DuckDB users know."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from laminae.api.python_values import pandas_frame, python_rows, valid_text
from laminae.errors import InvalidOption, LaminaeError, NotAvailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame


REPR_ROWS = 20


class Result:
    """A result: an Arrow table, or a Spark DataFrame that is computed on first access."""

    def __init__(self, table: pa.Table | None = None, frame: DataFrame | None = None) -> None:
        self._table, self._frame = None if table is None else valid_text(table), frame

    @property
    def columns(self) -> list[str]:
        return list(self._frame.columns if self._frame is not None else self.arrow().column_names)

    def fetchall(self) -> list[tuple[object, ...]]:
        """Every row. A value that Python's types cannot hold, for instance a date in the year 10000, is text."""
        return python_rows(self.arrow())

    def fetchone(self) -> tuple[object, ...] | None:
        return next(iter(self.fetchall()), None)

    def arrow(self) -> pa.Table:
        """The result as an Arrow table. Failures while Spark computes it are raised as `QueryFailed`."""
        if self._table is None and self._frame is not None:
            from laminae.spark.query.arrow_answer import arrow_answer

            self._table = valid_text(arrow_answer(self._frame))
        return self._table

    def df(self) -> pd.DataFrame:
        """The result as a pandas frame."""
        return pandas_frame(self.arrow())

    def spark(self) -> DataFrame:
        """The result as a Spark DataFrame, if Spark produced it."""
        if self._frame is None:
            raise NotAvailable(
                feature="Result.spark()",
                problem="this result was computed without Spark",
                advice="Use .arrow() or .df(), or spark.createDataFrame(result.arrow()).",
            )
        return self._frame

    def show(self, limit: int = 50) -> None:
        """Print the first rows as a table."""
        from laminae.api.render import print_table

        if not isinstance(limit, int) or not 0 <= limit < sys.maxsize:
            advice = "Pass the maximum number of rows to print, an integer of 0 or more."
            raise InvalidOption(option="limit", owner="show", problem=f"{limit!r} does not fit", advice=advice)

        print_table(self.arrow(), limit)

    def __iter__(self) -> Iterator[tuple[object, ...]]:
        return iter(self.fetchall())

    def __len__(self) -> int:
        return int(self.arrow().num_rows)

    def __repr__(self) -> str:
        """The first rows, as `show` prints them. If Spark has yet to compute the result, it computes only these."""
        from laminae.api.render import table_text

        try:
            return table_text(self._first(REPR_ROWS + 1), REPR_ROWS)
        except LaminaeError as problem:
            return f"Result({', '.join(self.columns)}): {problem}"

    def _first(self, rows: int) -> pa.Table:
        if self._table is None and self._frame is not None:
            return Result(frame=self._frame.limit(rows)).arrow()
        return self.arrow().slice(0, rows)
