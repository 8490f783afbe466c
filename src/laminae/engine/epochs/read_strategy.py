"""How the records of an epoch are read: a pure choice from the source's definition and what earlier epochs showed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from laminae.engine.source_spec import spec_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from laminae.catalog.model import SourceRecord
    from laminae.codec.decoders import DecoderTable
    from laminae.engine.source_spec import SourceSpec


class ReadStrategy(Enum):
    """Fastest first. A record that a fast strategy cannot decide makes the epoch run again with the next one."""

    ARROW_SHORT_LINES = "plain text by Arrow in Python workers, no record longer than 8 KiB"
    ARROW_LINES = "plain text by Arrow in Python workers"
    FAST_PLAN = "one prepared Spark plan without a reason for refused records"
    EXACT = "every record with its row, or with the reason why it has none"


ARROW = (ReadStrategy.ARROW_SHORT_LINES, ReadStrategy.ARROW_LINES)


@dataclass(frozen=True, slots=True)
class RangeFacts:
    """What is known of the range before it is read. `has_broken_items`: items that Spark failed to read.

    `waits_for_change`: records with fields of a pending change are set aside, which takes the reason of each.
    """

    has_broken_items: bool = False
    waits_for_change: bool = False


NO_FACTS = RangeFacts()


def read_strategies(
    source: SourceRecord,
    table: DecoderTable,
    disabled: Collection[ReadStrategy] = (),
    facts: RangeFacts = NO_FACTS,
) -> tuple[ReadStrategy, ...]:
    """The strategies to try, in this order; the last is always EXACT.

    A format may still answer that it has no rows by a strategy, for instance because a range of files is small.
    """
    if facts.has_broken_items or facts.waits_for_change:
        return (ReadStrategy.EXACT,)
    usable = (*_arrow(source, table), *_fast_plan(source))
    return (*(strategy for strategy in usable if strategy not in disabled), ReadStrategy.EXACT)


def _arrow(source: SourceRecord, table: DecoderTable) -> tuple[ReadStrategy, ...]:
    spec = spec_of(source)
    has_one_decoder = len(table.decoders) == 1 and table.version_field is None
    if not has_one_decoder or table.writers is not None or table.heads or _needs_record(source):
        return ()
    if spec.is_debezium:
        # Both rows of an event without a key are read record by record.
        return ARROW if source.primary_key else ()
    # The length of the lines in a file is not known. A row by Arrow has no position, and no condition is tested on it.
    is_plain = spec.format.name == "json" and spec.connector.numbers_lines
    return (ReadStrategy.ARROW_LINES,) if is_plain and _takes_bare_rows(spec) and not spec.is_retract else ()


def _fast_plan(source: SourceRecord) -> tuple[ReadStrategy, ...]:
    spec = spec_of(source)
    has_plan = spec.format.has_fast_plan and not spec.connector.has_external_schema
    is_usable = has_plan and not _needs_record(source) and _takes_bare_rows(spec)
    return (ReadStrategy.FAST_PLAN,) if is_usable else ()


def _takes_bare_rows(spec: SourceSpec) -> bool:
    """Whether rows suffice: a source that keeps a table needs the position of each record too."""
    return not spec.keeps_table


def _needs_record(source: SourceRecord) -> bool:
    """Whether a row is judged with its record's timestamp, which is not part of the row."""
    return spec_of(source).max_future is not None and source.watermark is not None
