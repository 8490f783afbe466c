"""What a job over the records of a source's table has done: asked of its notes, and handed on to whoever reads."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by
from pyspark.sql.types import StructType

from laminae.catalog.updates import AdvanceOwner
from laminae.spark.paths import literal_path
from laminae.spark.types import arrow_schema
from laminae.spark.views.notes import NOTE, ChangesNote, StateNote, note_of
from laminae.spark.views.tasks import TIMESTAMP
from laminae.views.kernels.changelog import OP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from laminae.spark.views.notes import Note
    from laminae.spark.views.tree import Place

    Advance = tuple[tuple[AdvanceOwner, ...], DataFrame | None]


def notes_in(found: DataFrame) -> list[Note]:
    """Runs the job."""
    return [note_of(row[NOTE]) for row in found.where(F.col(NOTE).isNotNull()).select(NOTE).collect()]


def advance_of(
    spark: SparkSession, owner: tuple[int, str, int], found: DataFrame, notes: Sequence[Note], place: Place
) -> Advance:
    """What the job asks the catalog to commit, and the changes. `owner` is an id, a name, and the advance it expects.

    The changes are read from the changelog that the job has written: its tasks must not run a second time for a reader.
    """
    owner_id, name, expected = owner
    kept = [note for note in notes if isinstance(note, StateNote)]
    changes = sorted((note for note in notes if isinstance(note, ChangesNote)), key=lambda note: note.file)
    if len({note.shard for note in kept}) != len(kept):
        raise AssertionError(f"a shard of source {name} was computed in two tasks")
    if not kept:
        return (), None
    schema = StructType([field for field in found.schema.fields if field.name != NOTE])
    update = AdvanceOwner(
        owner_id=owner_id,
        name=name,
        expected=expected,
        manifests=tuple(sorted((note.operator, note.shard, note.manifest) for note in kept)),
        files=tuple(note.file for note in changes),
        rows=sum(note.rows for note in changes),
        schema=arrow_schema(schema),
        anomalies=sum(note.anomalies - note.recovered for note in kept),
        dropped=sum(note.dropped for note in kept),
    )
    if not changes:
        return (update,), None
    files = [literal_path(os.path.join(place.home, note.file)) for note in changes]
    return (update,), spark.read.schema(schema).parquet(*files).drop(OP, TIMESTAMP)
