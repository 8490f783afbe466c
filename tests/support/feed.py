"""A script of input and DDL that is the same in every run, whatever happens to the driver meanwhile.

Each file and each insert is one epoch. A change waits until all input before it is committed, and no input goes before
it, so that every epoch is planned with the same version in every run.
"""

from __future__ import annotations

import json
import os
import threading
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

import laminae as lm
from laminae.catalog import open_catalog
from laminae.catalog.model import SinkStatus, ViewStatus
from laminae.errors import IncompatibleChange
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from laminae.catalog import Catalog

SOURCES = """
CREATE SOURCE orders (id BIGINT NOT NULL, amount INT, note STRING DEFAULT 'none')
  WITH (connector = 'files', format = 'json', path = '{input}', max_files_per_epoch = 1, evolve = 'auto');
CREATE SOURCE clicks (id BIGINT NOT NULL, page STRING, seen INT) WITH (max_files_per_epoch = 1);
CREATE SOURCE prices (id BIGINT NOT NULL, shop STRING, price INT, gone BOOLEAN, PRIMARY KEY (id))
  WITH (changelog = 'upsert', deleted_by = 'gone', max_files_per_epoch = 1);
CREATE MATERIALIZED VIEW shops AS SELECT shop, COUNT(*) AS n, SUM(price) AS total, MAX(price) AS most FROM prices
  GROUP BY shop;
CREATE MATERIALIZED VIEW sizes AS SELECT n, COUNT(*) AS shops, SUM(total) AS total FROM shops GROUP BY n;
CREATE SINK shop_events FROM shops WITH (connector = 'files', format = 'debezium-json', path = '{output}/shop_events');
CREATE SINK orders_parquet FROM orders WITH (connector = 'files', format = 'parquet', path = '{output}/orders_parquet');
CREATE SINK orders_json FROM orders WITH (connector = 'files', format = 'json', path = '{output}/orders_json');
CREATE SINK clicks_json FROM clicks WITH (connector = 'files', format = 'json', path = '{output}/clicks_json');
"""
SINKS = ("orders_parquet", "orders_json", "clicks_json")
EVENTS = "shop_events"
VIEWS = ("shops", "sizes")
# Drivers that are killed early make no progress: the one that waits for their successors is patient.
COMMIT_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Put:
    """A file of orders: rows, and lines that are no records."""

    name: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Insert:
    source: str
    rows: tuple[dict[str, object], ...]


@dataclass(frozen=True, slots=True)
class Change:
    source: str
    statement: str


Step = Put | Insert | Change


def steps(number: int) -> Iterator[Step]:
    """Every round one file, every third an insert, every second a change; fields that nobody declared now and then."""
    yield Put(f"{number:05}.json", tuple(_orders(number)))
    if number % 3 == 1:
        yield Insert("clicks", ({"id": number, "page": f"/{number}", "seen": number}, {"id": -number, "seen": None}))
    if number % 2 == 0:
        yield Insert("prices", tuple(_prices(number)))
    if number % 2 == 1:
        yield _change(number // 2)


def _orders(number: int) -> Iterator[str]:
    row: dict[str, object] = {"id": number * 10, "amount": number, "note": f"note {number}"}
    yield json.dumps(row)
    yield json.dumps({"id": number * 10 + 1, "amount": None})
    if number % 4 == 2:
        yield '{"id": "not a number"}'
    if number % 6 == 3:
        yield json.dumps({"id": number * 10 + 2, f"found{number}": {"depth": number}})


def _prices(number: int) -> Iterator[dict[str, object]]:
    """New rows, corrections of earlier ones, one that moves to another shop, and deletions."""
    for place in range(4):
        yield {"id": number * 4 + place, "shop": f"shop {place % 3}", "price": number + place}
    yield {"id": number, "shop": f"shop {number % 5}", "price": -number}
    yield {"id": number // 2 + 1, "gone": number % 4 == 0, "shop": "shop 1", "price": 7}


def _change(number: int) -> Change:
    added = f"added{number // 6}"
    changes = (
        Change("orders", f"ALTER SOURCE orders ADD COLUMN {added} BIGINT DEFAULT {number} AFTER id"),
        Change("clicks", f"ALTER SOURCE clicks ADD COLUMN {added} INT"),
        Change("orders", f"ALTER SOURCE orders RENAME COLUMN {added} TO {added}_renamed"),
        Change("clicks", f"ALTER SOURCE clicks ALTER COLUMN {added} TYPE BIGINT"),
        Change("orders", "ALTER SOURCE orders ALTER COLUMN id TYPE INT"),
        Change("orders", f"ALTER SOURCE orders DROP COLUMN {added}_renamed"),
    )
    return changes[number % len(changes)]


@dataclass(slots=True)
class Feed:
    """Feeds a home in a thread of its own, as many rounds as are allowed. `fed` counts what each source was given."""

    directory: Path
    url: str | None
    rounds: int
    fed: dict[str, int] = field(default_factory=lambda: {"orders": 0, "clicks": 0, "prices": 0})
    problem: BaseException | None = None
    _allowed: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    _thread: threading.Thread = field(init=False)

    @property
    def home(self) -> str:
        return str(self.directory / "home")

    @property
    def output(self) -> Path:
        return self.directory / "output"

    def create(self) -> None:
        (self.directory / "input").mkdir(parents=True)
        with lm.connect(self.home, catalog=self.url) as db:
            db.sql(SOURCES.format(input=self.directory / "input", output=self.output))

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)
        self._thread.start()

    def allow(self, rounds: int) -> None:
        self._allowed.release(rounds)

    @property
    def is_fed(self) -> bool:
        """Whether the whole script was fed. Raises what went wrong in its thread."""
        if self.problem is not None:
            raise self.problem
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            with lm.connect(self.home, catalog=self.url) as db, closing(open_catalog(self.home, self.url)) as catalog:
                # Before the first epoch: a sink that comes later begins with a snapshot of what there is.
                until(lambda: _are_live(catalog), COMMIT_SECONDS, "views and sinks are live")
                for number in range(self.rounds):
                    self._allowed.acquire()
                    for step in steps(number):
                        self._feed(db, catalog, step)
        except BaseException as problem:  # noqa: BLE001  # raised again by whoever waits for the feed
            self.problem = problem

    def _feed(self, db: lm.Database, catalog: Catalog, step: Step) -> None:
        match step:
            case Put(name, lines):
                self.fed["orders"] += 1
                # Written elsewhere and renamed; the times are the script's too, since they order the files.
                hidden = self.directory / name
                hidden.write_text("\n".join(lines) + "\n")
                os.utime(hidden, (self.fed["orders"], self.fed["orders"]))
                hidden.rename(self.directory / "input" / name)
            case Insert(source, rows):
                self.fed[source] += 1
                db.insert(source, rows)
            case Change(source, statement):
                until(lambda: committed(catalog, source) == self.fed[source], COMMIT_SECONDS, f"{source} is committed")
                with suppress(IncompatibleChange):
                    db.sql(statement)


def _are_live(catalog: Catalog) -> bool:
    sinks_are_live = all(sink.state == SinkStatus.LIVE for sink in catalog.sinks())
    return sinks_are_live and all(view.state == ViewStatus.LIVE for view in catalog.views())


def committed(catalog: Catalog, source: str) -> int:
    """How many items of the source are in committed epochs."""
    record = catalog.source(source)
    assert record is not None, source
    return catalog.epoch_totals(record.id).epochs


def is_delivered(catalog: Catalog, feed: Feed) -> bool:
    """Whether every item that was fed is committed, and every sink has all of it."""
    if not feed.is_fed or any(committed(catalog, source) < items for source, items in feed.fed.items()):
        return False
    last = {source.name: _last_epoch(catalog, source.id) for source in catalog.sources()}
    last |= {view.name: catalog.last_advance(view.id) for view in catalog.views()}
    return all(sink.progress >= last[sink.relation] for sink in catalog.sinks())


def _last_epoch(catalog: Catalog, source_id: int) -> int:
    batch = catalog.last_batch(source_id)
    assert batch is not None, source_id
    return batch.epoch


def outcome(catalog: Catalog, feed: Feed) -> dict[str, object]:
    """Everything that must not depend on what happened to the driver, in a form that can be compared.

    Two sources share the numbers of epochs, in the order in which they happened to commit: so a sink's files are
    compared byte for byte and in their order, without their names, and an epoch by its place in its own source.
    """
    found: dict[str, object] = {}
    for sink in SINKS:
        found[sink] = [content(file) for file in sorted((feed.output / sink).iterdir())]
    found[EVENTS] = [_events(file) for file in sorted((feed.output / EVENTS).iterdir())]
    for owner in (*map(catalog.view, VIEWS), catalog.source("prices")):
        assert owner is not None
        advances = catalog.advances(owner.id)
        found[f"{owner.name} changes"] = [_changes(feed, advance.files) for advance in advances if advance.rows]
        found[f"{owner.name} counts"] = [(advance.rows, advance.anomalies, advance.dropped) for advance in advances]
    for source in catalog.sources():
        found[f"{source.name} epochs"] = [
            (epoch.batch_id, epoch.start_offsets, epoch.end_offsets, epoch.version, epoch.rows, epoch.dead_letters)
            for epoch in catalog.epochs(source.id)
        ]
        found[f"{source.name} versions"] = [
            (version.version, version.schema.serialize().to_pybytes(), version.position)
            for version in catalog.versions(source.id)
        ]
        found[f"{source.name} history"] = [row[:-1] for row in catalog.history(source.name)]
    return found


def _events(file: Path) -> list[object]:
    """The events of an epoch without its number and the time that Spark planned it at."""
    events = [json.loads(line) for line in file.read_text().splitlines()]
    for event in events:
        event.pop("ts_ms")
        event["source"] = {name: value for name, value in event["source"].items() if name not in ("epoch", "ts_ms")}
    return events


def _changes(feed: Feed, files: tuple[str, ...]) -> list[dict[str, object]]:
    tables = [pq.read_table(os.path.join(feed.home, file)).drop_columns(["_timestamp"]) for file in files]
    return [row for table in tables for row in table.to_pylist()]


def content(file: Path) -> object:
    """The bytes of a file; of Parquet those of its pages, and its footer with each list of encodings in order.

    parquet-java keeps the encodings of a column in a hash set of objects without a hash of their own, so that their
    order is another one in every JVM. Nothing else in the file may differ.
    """
    found = file.read_bytes()
    if file.suffix != ".parquet":
        return found
    size = int.from_bytes(found[-8:-4], "little")
    footer = pq.read_metadata(file)
    groups = footer.to_dict()["row_groups"]
    for column in (column for group in groups for column in group["columns"]):
        column["encodings"] = sorted(column["encodings"])
    schema = footer.schema.to_arrow_schema().serialize().to_pybytes()
    return found[: -8 - size], size, groups, footer.metadata, schema, footer.created_by
