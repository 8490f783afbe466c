"""The log of a Kafka source: each slice of its topic is one item and one epoch. Spark's connector reads the records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.engine.source_spec import spec_of
from laminae.errors import SourceTruncated
from laminae.spark.catalyst.column_list import Columns, select
from laminae.spark.catalyst.expression import Expression, call, cases, column, each, literal
from laminae.spark.catalyst.streaming.micro_batch_stream import offset_text
from laminae.spark.formats.debezium.events import MOVES
from laminae.spark.formats.protocol import RAW_COLUMNS
from laminae.spark.sources.base import NumberedSource, no_records, settings_of
from laminae.spark.sources.kafka.broker import broker_of, slice_list
from laminae.spark.sources.kafka.records import records_of
from laminae.spark.sources.kafka.settings import PREFIX
from laminae.spark.sources.kafka.slices import Span, merged
from laminae.spark.sources.micro_batch_stream import LogOffsets

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from laminae.catalog.model import SourceRecord
    from laminae.spark.formats.fast_path import Planned
    from laminae.spark.sources.kafka.slices import Place, Slice, SliceList
    from laminae.spark.sources.latest_offset import Settings
    from laminae.spark.sources.protocol import LogRange

SKIP = "skip"
OPTIONS = ("topic", "topic_pattern", "start", "max_records_per_epoch", "version_header")
MOVED_ROW = ("__debezium.newkey", "__debezium.oldkey")
"""The headers that Debezium sets when a primary key changes: on the delete event, and on the following insert event."""
# PLAIN: columns taken unchanged from Spark's connector. OWN: also those computed from its columns alone, which do not
# depend on the range.
PLAIN = frozenset(("key", "value", "offset", "timestamp"))
OWN = PLAIN | {"partition"}
PLACE = call("concat", column("topic"), literal("-"), column("partition"))


def open_source(source: SourceRecord, home: str) -> KafkaSource:
    spec = spec_of(source)
    own = {name: value for name, value in spec.settings if name in OPTIONS or name.startswith(PREFIX)}
    return KafkaSource(settings_of(source, home, **own, on_data_loss=spec.setting("on_data_loss") or ""))


class KafkaSource(NumberedSource):
    """Settings: the topic, the starting position, the data loss policy, and the settings of Kafka's client."""

    def __init__(self, settings: Settings) -> None:
        slices = slice_list(settings)
        super().__init__(settings, slices)
        self._broker = broker_of(settings)
        self._slices = slices

    def latest(self) -> str:
        """Queries the broker, so that callers see when it is unavailable. Only the stream adds slices."""
        items = self._directory.items(0)
        last = next(self._slices.entries(range(items - 1, items))).ends if items else self._broker.starts()
        self._broker.ends(last)
        return offset_text(items)

    def offsets(self) -> LogOffsets:
        return SliceOffsets(self._slices)

    def broken(self, span: LogRange) -> tuple[tuple[int, str], ...]:
        """No item of Kafka is broken. Raises if the broker is unavailable or records are lost: that failed the job."""
        self._spans(self._read_slices(span))
        return span.broken

    def read(
        self,
        spark: SparkSession,
        span: LogRange,
        columns: Sequence[str] = RAW_COLUMNS,
        boundaries: Collection[int] | None = None,
    ) -> DataFrame:
        slices = self._read_slices(span)
        if boundaries is None:
            return self._read(spark, slices, columns, slices)
        # The item of a record matters only where another schema version comes into force.
        cuts = [entry for entry in slices if entry.item in boundaries or entry is slices[0]]
        return self._read(spark, slices, columns, cuts)

    def planned(self, spark: SparkSession, span: LogRange) -> Planned:
        """Only for ranges that have records, and for columns that come from the connector (`OWN`)."""

        def rows(columns: Sequence[str]) -> object | None:
            spans = _with_records(self._spans(self._read_slices(span))) if OWN.issuperset(columns) else {}
            return records_of(self._settings).rows(spark, spans, self._skips) if spans else None

        return rows

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
        records = records_of(self._settings).frame(spark, spans, self._skips, has_headers)
        if PLAIN.issuperset(columns):
            return records
        wanted = Columns(spark)
        for name, value in raw.items():
            if name in columns:
                wanted.add(value, name)
        return select(records, wanted)

    @property
    def _skips(self) -> bool:
        return self._settings["on_data_loss"] == SKIP

    def _spans(self, slices: Sequence[Slice]) -> dict[Place, Span]:
        """The offsets to read of each partition. Lost records are skipped or raise SourceTruncated (`on_data_loss`)."""
        spans = merged(slices)
        first = self._broker.starts() if any(span.end > span.start for span in spans.values()) else {}
        for place, span in spans.items():
            left = first.get(place, span.end)
            is_lost = span.is_anew or (left > span.start and span.end > span.start)
            if is_lost and not self._skips:
                raise SourceTruncated(
                    source=self._directory.source,
                    wanted=f"{place} from offset {span.start}" if not span.is_anew else f"{place} of the former topic",
                    first=f"offset {left}",
                    advice="Increase the retention in Kafka, or continue without them: "
                    "ALTER SOURCE ... SET (on_data_loss = 'skip').",
                )
            if is_lost:
                spans[place] = Span(min(max(left, span.start), span.end), span.end, span.is_anew)
        return spans

    def _version(self) -> Expression:
        """The schema version in the record's header; of several headers with that name the last counts, as in HTTP."""
        name = self._settings.get("version_header")
        if name is None:
            return Expression("CAST(NULL AS INT)")
        own = each("filter", column("headers"), lambda header: header.field("key").compared("=", literal(name)))
        return call("try_element_at", own, literal(-1)).field("value").cast("STRING").try_cast("INT")


class SliceOffsets(LogOffsets):
    """Each epoch reads one slice."""

    def __init__(self, slices: SliceList) -> None:
        super().__init__(slices, limit=1)
        self._slices = slices

    def fix_target(self) -> None:
        self._target = self._slices.all_items()


def _with_records(spans: Mapping[Place, Span]) -> dict[Place, Span]:
    return {place: span for place, span in spans.items() if span.end > span.start}


def _item(cuts: Sequence[Slice], places: Sequence[Place]) -> Expression:
    """The item of a record, among the slices in `cuts`: the last one that starts at or before the record's offset."""
    first, *later = cuts
    if not later:
        return literal(first.item).cast("BIGINT")
    by_place = []
    for place in places:
        begun = [(column("offset").compared(">=", cut.starts.get(place, 0)), literal(cut.item)) for cut in later[::-1]]
        by_place.append((PLACE.compared("=", literal(str(place))), cases(begun, literal(first.item))))
    return cases(by_place).cast("BIGINT")
