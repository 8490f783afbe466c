"""Rebuild the Spark checkpoint of a source at the offsets in the catalog, which is the only authority on progress."""

from __future__ import annotations

import json
import shutil
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from laminae.catalog.model import SourceRecord
    from laminae.catalog.port import Catalog
    from laminae.spark.driver.storage import Storage


# When Spark runs a batch again, it compares it with the settings of the previous batch; without them the query fails
# with `None.get` (Spark 4.2). A stateless query uses none of them. These are Spark's defaults, used if the old
# checkpoint cannot be read.
QUERY_SETTINGS = {
    "spark.sql.shuffle.partitions": "200",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
    ),
    "spark.sql.streaming.multipleWatermarkPolicy": "min",
    "spark.sql.streaming.aggregation.stateFormatVersion": "2",
    "spark.sql.streaming.join.stateFormatVersion": "2",
    "spark.sql.streaming.flatMapGroupsWithState.stateFormatVersion": "2",
    "spark.sql.streaming.statefulOperator.useStrictDistribution": "true",
    "spark.sql.streaming.stateStore.compression.codec": "lz4",
    "spark.sql.streaming.stateStore.encodingFormat": "unsaferow",
    "spark.sql.streaming.stateStore.rocksdb.formatVersion": "5",
    "spark.sql.optimizer.pruneFiltersCanPruneStreamingSubplan": "false",
}


def repair(catalog: Catalog, storage: Storage, source: SourceRecord) -> int | None:
    """Rebuild the checkpoint and return its last batch id, None if no batch was committed.

    The old checkpoint is kept next to it under another name.
    """
    checkpoint = Path(storage.checkpoint(source.id))
    settings = {**QUERY_SETTINGS, **query_settings(checkpoint)}
    if checkpoint.exists():
        checkpoint.rename(checkpoint.with_name(f"checkpoint.replaced-{uuid.uuid4().hex}"))
    last = catalog.last_batch(source.id)
    if last is None:
        return None
    staging = checkpoint.with_name(f"checkpoint.making-{uuid.uuid4().hex}")
    try:
        _write(staging / "metadata", json.dumps({"id": str(uuid.uuid4())}))
        facts = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 0, "conf": settings})
        # Spark also needs the offsets of the batch before the last one, if there was one.
        for batch, offsets in ((last.batch_id - 1, last.start_offsets), (last.batch_id, last.end_offsets)):
            if batch >= 0:
                _write(staging / "offsets" / str(batch), f"v1\n{facts}\n{offsets}")
                _write(staging / "commits" / str(batch), 'v1\n{"nextBatchWatermarkMs":0}')
        staging.rename(checkpoint)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return last.batch_id


def query_settings(checkpoint: Path) -> dict[str, str]:
    """The settings that Spark stored with the newest readable batch of a checkpoint; empty if none is readable."""
    batches = (file for file in checkpoint.glob("offsets/*") if file.name.isdigit())
    for file in sorted(batches, key=lambda file: int(file.name), reverse=True):
        try:
            conf = json.loads(file.read_text(encoding="utf-8").splitlines()[1])["conf"]
            return {str(name): str(value) for name, value in conf.items()}
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            # Unreadable files are expected: a checkpoint is often repaired because it is damaged.
            continue
    return {}


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
