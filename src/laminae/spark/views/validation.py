"""Validates a view when it is created: plans it over empty relations, in the same way as its epochs.

No job runs. Without a Spark session the first epoch validates the view, and an invalid view fails without the others.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from laminae.engine.views.resolution import view_plan
from laminae.errors import LaminaeError, QueryFailed
from laminae.spark.tasks.failures import failure_text, is_view_failure
from laminae.spark.views.input_types import InputTypes
from laminae.spark.views.plan import ShardPlacement, ViewState, view_delta
from laminae.spark.views.runner import with_weight
from laminae.views.operators import reads_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from pyspark.sql import SparkSession

    from laminae.catalog.model import SourceRecord, ViewRecord

LOG = logging.getLogger(__name__)
# A placeholder: the plan is not run, so nothing is written.
NOWHERE = ShardPlacement("", 1, 0)


def judge_view(
    spark: Callable[[], AbstractContextManager[SparkSession]],
    name: str,
    query: str,
    sources: Sequence[SourceRecord],
    views: Sequence[ViewRecord],
) -> None:
    """Raise if Spark cannot plan a view, or its types cannot be stored. If the session fails, the check is skipped.

    `spark` must provide a session owned by laminae: planning a view changes settings such as the Arrow batch limits.
    """
    plan, inputs = view_plan(name, query, sources, views, ()), InputTypes(sources, views)
    try:
        with spark() as session:
            names = {read.relation.casefold() for read in reads_in(plan.root)}
            deltas = {relation: with_weight(inputs.relation(session, relation)) for relation in sorted(names)}
            view_delta(ViewState(0, name, plan, inputs=inputs), deltas, NOWHERE, "")
    except LaminaeError:
        raise
    except Exception as problem:
        if not is_view_failure(problem):
            LOG.info("view %s is validated by its first epoch: %s", name, failure_text(problem))
            return
        raise QueryFailed(problem=f"Spark rejects view {name}: {failure_text(problem)}") from problem
