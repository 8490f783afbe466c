"""SELECT over catalog relations without starting Spark: Spark's dialect is translated and run by an embedded DuckDB.

The relations are Arrow tables built for the query. DuckDB can access nothing else, neither files nor the network.
"""

from __future__ import annotations

import atexit
from functools import cache
from typing import TYPE_CHECKING

from sqlglot import exp

from laminae.errors import QueryFailed
from laminae.secrets import masked
from laminae.views.dependencies import tables_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb
    import pyarrow as pa

CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "threads": "1",
    "python_enable_replacements": "false",
}


def run_query(query: exp.Query, relations: Mapping[tuple[str, str], pa.Table]) -> pa.Table:
    """The result as an Arrow table. Every table of `query` must be a key of `relations`."""
    names = {key: f"relation_{i}" for i, key in enumerate(relations)}
    try:
        text = _renamed(query, names).sql(dialect="duckdb")
        with _database().cursor() as cursor:
            for key, table in relations.items():
                cursor.register(names[key], table)
            return cursor.sql(text).to_arrow_table()
    except Exception as problem:  # noqa: BLE001  # any text may reach sqlglot and DuckDB; what they raise is the answer
        # Not chained: the text may quote a secret of the query, and a traceback would show it.
        raise QueryFailed(problem=masked(str(problem).split("\n\n")[0])) from None


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """One empty database per process: opening one takes 20 ms, a cursor with its own tables almost nothing."""
    import duckdb

    connection = duckdb.connect(":memory:", config=CONFIG)
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    # Released before the interpreter exits: DuckDB complains on stderr about objects that are still alive then.
    atexit.register(_database.cache_clear)
    return connection


def _renamed(query: exp.Query, names: Mapping[tuple[str, str], str]) -> exp.Query:
    renamed = query.copy()
    for table in tables_of(renamed):
        plain = exp.to_table(names[table.db, table.name])
        table.replace(exp.alias_(plain, table.alias or table.name, table=True))
    return renamed
