"""A notice, as a value and as the JSON body of a webhook."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from datetime import datetime

    from laminae.schema.change import HistoryChange


@dataclass(frozen=True, slots=True)
class SchemaNotice:
    """The outcome of a schema change of a source. A repeated delivery has the same `id`.

    `outcome` is `applied`, `waiting` (for confirmation of `change_id`) or `refused`; `version` is in force afterwards.
    """

    id: str
    source: str
    outcome: str
    version: int
    verdict: str
    mode: str
    rules: str
    trigger: str
    changes: tuple[HistoryChange, ...]
    reasons: tuple[str, ...]
    at: datetime
    change_id: int | None = None

    def to_json(self) -> bytes:
        fields = {
            "id": self.id,
            "event": "schema_change",
            "source": self.source,
            "outcome": self.outcome,
            "version": self.version,
            "change_id": self.change_id,
            "verdict": self.verdict,
            "mode": self.mode,
            "rules": self.rules,
            "trigger": self.trigger,
            "changes": [change._asdict() for change in self.changes],
            "reasons": self.reasons,
            "at": self.at,
        }
        return orjson.dumps(fields)

    def says_the_same(self, other: SchemaNotice | None) -> bool:
        """Whether it repeats `other`: every epoch with such records finds a refused or waiting change again."""
        facts = (self.outcome, self.version, self.changes, self.reasons)
        return other is not None and facts == (other.outcome, other.version, other.changes, other.reasons)
