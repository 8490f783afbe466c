"""Runs any Spark SQL over sources, views and laminar_catalog: the query text itself, over temporary views of its
relations.

It runs in a clone of the session, so that neither its temporary views nor its settings are visible anywhere else.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from laminae.errors import QueryFailed
from laminae.spark.catalyst.session_settings import active, cloned
from laminae.spark.query.parser import reason
from laminae.spark.query.resolved import refuse_unknown_nodes
from laminae.views.operators import quoted

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from laminae.spark.query.parser import ParsedQuery, RelationName

_numbers = itertools.count()
_SAMPLED = re.compile(r"\s*TABLESAMPLE\b", re.IGNORECASE)


def run_query(
    spark: SparkSession, query: ParsedQuery, relation: Callable[[SparkSession, tuple[str, ...]], DataFrame]
) -> DataFrame:
    """The result, not computed yet. `relation` returns the rows of a named relation, in the session of the query."""
    own = cloned(spark)
    names = _names(query)
    try:
        with active(own):
            for key, name in names.items():
                relation(own, key).createOrReplaceTempView(quoted(name))
            answer = own.sql(_renamed(query, names))
            refuse_unknown_nodes(answer, calls_own=not query.is_built_in)
            return answer
    except PySparkException as problem:
        raise QueryFailed(problem=reason(problem)) from problem


def _names(query: ParsedQuery) -> dict[tuple[str, ...], str]:
    """The name of a temporary view for each relation: its own name, unless another relation of the query has it."""
    names = {relation.parts: relation.parts[-1] for relation in query.relations}
    counts: dict[str, set[tuple[str, ...]]] = {}
    for parts, name in names.items():
        counts.setdefault(name.casefold(), set()).add(tuple(part.casefold() for part in parts))
    for parts, name in names.items():
        is_shared = len(counts[name.casefold()]) > 1 or name.casefold() in query.defined
        if len(parts) > 1 and is_shared:
            names[parts] = f"laminae_relation_{next(_numbers)}"
    return names


def _renamed(query: ParsedQuery, names: dict[tuple[str, ...], str]) -> str:
    """The query text with the names of the temporary views; everything else stays as written."""
    text = query.text
    for relation in sorted(query.relations, key=lambda relation: -relation.start):
        name = names[relation.parts]
        if len(relation.parts) > 1:
            text = text[: relation.start] + _reference(query, relation, name) + text[relation.end :]
    return text


def _reference(query: ParsedQuery, relation: RelationName, name: str) -> str:
    last = relation.parts[-1]
    if name == last or relation.has_alias:
        return quoted(name)
    if _SAMPLED.match(query.text, relation.end):
        problem = f"give {'.'.join(relation.parts)} an alias: another relation of the query is also called {last}"
        raise QueryFailed(problem=problem)
    return f"{quoted(name)} AS {quoted(last)}"
