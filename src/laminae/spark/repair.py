"""Rebuild the Spark checkpoint of a source at the offsets of the catalog, which alone decides what has been done."""

from __future__ import annotations

import json
import shutil
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from laminae.catalog.model import SourceRecord
    from laminae.catalog.port import Catalog
    from laminae.spark.storage import Storage


def repair(catalog: Catalog, storage: Storage, source: SourceRecord) -> int | None:
    """The batch the next epoch follows, None when it will be the first. The old checkpoint is kept beside it."""
    checkpoint = Path(storage.checkpoint(source.id))
    if checkpoint.exists():
        checkpoint.rename(checkpoint.with_name(f"checkpoint.replaced-{uuid.uuid4().hex}"))
    last = catalog.last_batch(source.id)
    if last is None:
        return None
    made = checkpoint.with_name(f"checkpoint.making-{uuid.uuid4().hex}")
    try:
        _write(made / "metadata", json.dumps({"id": str(uuid.uuid4())}))
        facts = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 0, "conf": {}})
        # Spark wants the offsets of the batch before the last one too, where there was one.
        for batch, offsets in ((last.batch_id - 1, last.start_offsets), (last.batch_id, last.end_offsets)):
            if batch >= 0:
                _write(made / "offsets" / str(batch), f"v1\n{facts}\n{offsets}")
                _write(made / "commits" / str(batch), 'v1\n{"nextBatchWatermarkMs":0}')
        made.rename(checkpoint)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return last.batch_id


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
