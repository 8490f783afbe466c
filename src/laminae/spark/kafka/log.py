"""The log of a Kafka source: each slice of its topic is an item, and an epoch. Spark's connector reads the records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.errors import SourceTruncated
from laminae.spark.change_events import MOVES
from laminae.spark.columns import Columns, select
from laminae.spark.contract import RAW_COLUMNS
from laminae.spark.expression import Expression, call, cases, column, each, literal
from laminae.spark.json_records import json_records
from laminae.spark.kafka.broker import broker_of, slice_list
from laminae.spark.kafka.records import records_of
from laminae.spark.kafka.slices import Span, merged
from laminae.spark.logs.head import offset_text
from laminae.spark.logs.numbered import NumberedLog, no_records
from laminae.spark.logs.stream import LogOffsets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from laminae.codec.decoders import DecoderTable
    from laminae.spark.contract import Decoded, LogRange
    from laminae.spark.kafka.slices import Place, Slice, SliceList
    from laminae.spark.logs.tails import Settings
    from laminae.spark.quick import Planned

SKIP = "skip"
MOVED_ROW = ("__debezium.newkey", "__debezium.oldkey")
"""The headers of events about one row with two keys: the one that deletes it, and the one that inserts it again."""
# Columns of a record as Spark's connector gives them, and those that are made of these alone, whatever the range.
PLAIN = frozenset(("key", "value", "offset", "timestamp"))
OWN = PLAIN | {"partition"}
PLACE = call("concat", column("topic"), literal("-"), column("partition"))


class KafkaLog(NumberedLog):
    """Its settings have the topic, where to begin, what to do about lost records, and what Kafka's client is told."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._broker = broker_of(settings)
        self._slices = slice_list(settings)

    def latest(self) -> str:
        """Asks the broker, so that whoever looks sees that it is away; only the stream cuts slices."""
        there = self._directory.items(0)
        last = next(self._slices.entries(range(there - 1, there))).ends if there else self._broker.starts()
        self._broker.ends(last)
        return offset_text(there)

    def offsets(self) -> LogOffsets:
        return SliceOffsets(self._slices)

    def broken(self, span: LogRange) -> tuple[tuple[int, str], ...]:
        """None is: a job that failed because the broker is away, or records are lost, is told of as that."""
        self._spans(self._read_slices(span))
        return span.broken

    def read(self, spark: SparkSession, span: LogRange, columns: Sequence[str] = RAW_COLUMNS) -> DataFrame:
        slices = self._read_slices(span)
        return self._read(spark, slices, columns, slices)

    def planned(self, spark: SparkSession, span: LogRange) -> Planned:
        """Of ranges that have records, for columns that are the connector's own."""

        def rows(columns: Sequence[str]) -> object | None:
            spans = _with_records(self._spans(self._read_slices(span))) if OWN.issuperset(columns) else {}
            return records_of(self._settings).rows(spark, spans, self._skips) if spans else None

        return rows

    def decoded(self, spark: SparkSession, span: LogRange, table: DecoderTable) -> Decoded:
        # Which item a record is of matters only where another version begins to hold.
        slices, places = self._read_slices(span), {decoder.since for decoder in table.decoders}
        cuts = [each for each in slices if each.item in places or each is slices[0]]
        return json_records(self._read(spark, slices, RAW_COLUMNS, cuts), table)

    def _read_slices(self, span: LogRange) -> list[Slice]:
        items = self._items(span)
        self._directory.items(items.stop)
        return list(self._slices.entries(items))

    def _read(
        self, spark: SparkSession, slices: Sequence[Slice], columns: Sequence[str], cuts: Sequence[Slice]
    ) -> DataFrame:
        spans = _with_records(self._spans(slices))
        if not spans:
            return no_records(spark)
        raw = {
            "key": column("key"),
            "value": column("value"),
            "partition": PLACE,
            "offset": column("offset"),
            "item": _item(cuts, list(spans)),
            "timestamp": column("timestamp"),
            "version": self._version(),
            MOVES: each("exists", column("headers"), lambda header: header.field("key").is_one_of(MOVED_ROW)),
        }
        has_headers = MOVES in columns or "version_header" in self._settings
        found = records_of(self._settings).frame(spark, spans, self._skips, has_headers)
        if PLAIN.issuperset(columns):
            return found
        wanted = Columns(spark)
        for name, value in raw.items():
            if name in columns:
                wanted.add(value, name)
        return select(found, wanted)

    @property
    def _skips(self) -> bool:
        return self._settings["on_data_loss"] == SKIP

    def _spans(self, slices: Sequence[Slice]) -> dict[Place, Span]:
        """What is read of each partition; what is gone is left out, or is SourceTruncated, as the source wants it."""
        spans = merged(slices)
        first = self._broker.starts() if any(span.end > span.start for span in spans.values()) else {}
        for place, span in spans.items():
            left = first.get(place, span.end)
            is_lost = span.is_anew or (left > span.start and span.end > span.start)
            if is_lost and not self._skips:
                raise SourceTruncated(
                    source=self._directory.source,
                    wanted=f"{place} from offset {span.start}" if not span.is_anew else f"{place} as it was before",
                    first=f"offset {left}",
                    advice="Keep records longer in Kafka, or go on without them: "
                    "ALTER SOURCE ... SET (on_data_loss = 'skip').",
                )
            if is_lost:
                spans[place] = Span(min(max(left, span.start), span.end), span.end, span.is_anew)
        return spans

    def _version(self) -> Expression:
        """The stamp that a header gives; the last one of that name counts, as with HTTP."""
        name = self._settings.get("version_header")
        if name is None:
            return Expression("CAST(NULL AS INT)")
        own = each("filter", column("headers"), lambda header: header.field("key").compared("=", literal(name)))
        return call("try_element_at", own, literal(-1)).field("value").cast("STRING").try_cast("INT")


class SliceOffsets(LogOffsets):
    """Each epoch takes one slice."""

    def __init__(self, slices: SliceList) -> None:
        super().__init__(slices, limit=1)
        self._slices = slices

    def fix_target(self) -> None:
        self._target = self._slices.all_items()


def _with_records(spans: Mapping[Place, Span]) -> dict[Place, Span]:
    return {place: span for place, span in spans.items() if span.end > span.start}


def _item(cuts: Sequence[Slice], places: Sequence[Place]) -> Expression:
    """The item that a record is of, as far as these slices tell: the last of them that begins at or before it."""
    first, *others = cuts
    if not others:
        return literal(first.item).cast("BIGINT")
    by_place = []
    for place in places:
        begun = [(column("offset").compared(">=", cut.starts.get(place, 0)), literal(cut.item)) for cut in others[::-1]]
        by_place.append((PLACE.compared("=", literal(str(place))), cases(begun, literal(first.item))))
    return cases(by_place).cast("BIGINT")
