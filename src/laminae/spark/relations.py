"""Any Spark SQL over sources and laminar_catalog: each relation becomes a temporary view under a name of our own."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from sqlglot import exp

from laminae.errors import QueryFailed
from laminae.views.dependencies import tables_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

_numbers = itertools.count()


def run_query(spark: SparkSession, query: exp.Query, relations: Mapping[tuple[str, str], DataFrame]) -> DataFrame:
    """The answer, not computed yet. Every table of `query` is a key of `relations`."""
    views = {key: f"laminae_relation_{next(_numbers)}" for key in relations}
    try:
        for key, frame in relations.items():
            frame.createOrReplaceTempView(views[key])
        return spark.sql(_renamed(query, views).sql(dialect="spark"))
    except PySparkException as problem:
        raise QueryFailed(problem=str(problem).split("\n")[0]) from problem
    finally:
        # The plan is resolved by now and no longer needs the names.
        for view in views.values():
            spark.catalog.dropTempView(view)


def _renamed(query: exp.Query, views: Mapping[tuple[str, str], str]) -> exp.Query:
    """The query over our names; a common table expression keeps its own, also where it has that of a relation."""
    renamed = query.copy()
    for table in tables_of(renamed):
        plain = exp.to_table(views[table.db, table.name])
        table.replace(exp.alias_(plain, table.alias or table.name, table=True))
    return renamed
