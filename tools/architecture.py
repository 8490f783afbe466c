"""Write docs/architecture.svg from the boxes and arrows below; `--check` says whether the file is current."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Literal

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "architecture.svg"
WIDTH, HEIGHT = 1000, 640
BOX_WIDTH, BOX_HEIGHT = 172, 76
COLUMNS = (28, 224, 420, 616, 812)
ROWS = (62, 206, 350, 522)
Side = Literal["left", "right", "top", "bottom"]


@dataclass(frozen=True, slots=True)
class Band:
    """A part of the system that runs in one place, from one height to another."""

    title: str
    top: int
    bottom: int
    fill: str


@dataclass(frozen=True, slots=True)
class Box:
    """A package: its name, and what it does in at most two lines."""

    column: int
    row: int
    title: str
    lines: tuple[str, ...]

    @property
    def corner(self) -> tuple[int, int]:
        return COLUMNS[self.column], ROWS[self.row]

    def at(self, side: Side, share: float = 0.5) -> tuple[int, int]:
        """A point on one side, this share of its length along."""
        left, top = self.corner
        across, down = left + round(BOX_WIDTH * share), top + round(BOX_HEIGHT * share)
        places = {
            "left": (left, down),
            "right": (left + BOX_WIDTH, down),
            "top": (across, top),
            "bottom": (across, top + BOX_HEIGHT),
        }
        return places[side]


@dataclass(frozen=True, slots=True)
class Arrow:
    """Starts and ends at (box, side, share of that side)."""

    start: tuple[str, Side, float]
    end: tuple[str, Side, float]
    label: str = ""
    is_dashed: bool = False


BANDS = (
    Band("Control plane (no Spark)", 24, 160, "#eef4ff"),
    Band("Driver (holds the lease)", 168, 304, "#eefaf0"),
    Band("Data plane (Spark job)", 312, 476, "#fff7e8"),
    Band("Delivery (after commit)", 484, 620, "#f6efff"),
)
BOXES = {
    "sql": Box(0, 0, "sql", ("text to statements", "(DDL, SELECT)")),
    "engine": Box(1, 0, "engine + schema", ("diff, judge, plan:", "Plan is a value")),
    "catalog": Box(3, 0, "catalog", ("versions, epochs, manifests", "SQLite or PostgreSQL")),
    "driver": Box(0, 1, "spark/driver", ("one streaming query", "per source, foreachBatch")),
    "epoch": Box(1, 1, "spark/epoch", ("plan, read, evolve,", "write, commit once")),
    "commit": Box(3, 1, "commit", ("one transaction:", "offsets, state, changelog")),
    "sources": Box(0, 2, "spark/sources", ("Kafka, files, Iceberg,", "Delta, push, rate")),
    "formats": Box(1, 2, "spark/formats", ("decode by writer schema,", "project by column id")),
    "tables": Box(2, 2, "spark/source_tables", ("upsert and Debezium:", "old row, -U/+U")),
    "views": Box(3, 2, "spark/views + tasks", ("JVM partial sums, shuffle,", "kernel per shard")),
    "trace": Box(4, 2, "trace", ("sorted runs,", "manifests")),
    "feeder": Box(0, 3, "sinks/feeder", ("committed changes", "as segments")),
    "outbox": Box(1, 3, "sinks/outbox", ("progress, retry,", "backoff per sink")),
    "modes": Box(2, 3, "sinks/modes", ("append, changelog,", "upsert (net change)")),
    "connectors": Box(3, 3, "sink connectors", ("PostgreSQL, Kafka, files,", "Iceberg, Delta, console")),
}
ARROWS = (
    Arrow(("sql", "right", 0.5), ("engine", "left", 0.5)),
    Arrow(("engine", "right", 0.5), ("catalog", "left", 0.5), "compare-and-set on the version"),
    Arrow(("catalog", "left", 0.85), ("epoch", "top", 0.7), "schema versions, views, manifests", is_dashed=True),
    Arrow(("driver", "right", 0.5), ("epoch", "left", 0.5)),
    Arrow(("epoch", "right", 0.5), ("commit", "left", 0.5), "files fsynced first"),
    Arrow(("commit", "top", 0.5), ("catalog", "bottom", 0.5), "lease token asserted"),
    Arrow(("epoch", "bottom", 0.3), ("sources", "top", 0.8), "offset range"),
    Arrow(("sources", "right", 0.5), ("formats", "left", 0.5)),
    Arrow(("formats", "right", 0.5), ("tables", "left", 0.5)),
    Arrow(("tables", "right", 0.5), ("views", "left", 0.5)),
    Arrow(("views", "right", 0.35), ("trace", "left", 0.35)),
    Arrow(("trace", "left", 0.7), ("views", "right", 0.7)),
    Arrow(("views", "top", 0.5), ("commit", "bottom", 0.5), "one report per shard"),
    Arrow(
        ("views", "bottom", 0.2),
        ("feeder", "top", 0.5),
        "changelog files (Parquet), read once committed",
        is_dashed=True,
    ),
    Arrow(("feeder", "right", 0.5), ("outbox", "left", 0.5)),
    Arrow(("outbox", "right", 0.5), ("modes", "left", 0.5)),
    Arrow(("modes", "right", 0.5), ("connectors", "left", 0.5)),
)


def picture() -> str:
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="Helvetica, Arial, sans-serif">',
        "<title>laminae: control plane, driver, data plane and delivery</title>",
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0 10 5 0 10z" fill="#444"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        *map(_band, BANDS),
        *map(_arrow, ARROWS),
        *map(_box, BOXES.values()),
        *(_label(arrow) for arrow in ARROWS if arrow.label),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _band(band: Band) -> str:
    shape = f'<rect x="8" y="{band.top}" width="{WIDTH - 16}" height="{band.bottom - band.top}" rx="8"'
    return f'{shape} fill="{band.fill}"/>\n{_text(20, band.top + 20, band.title, 13, weight="bold")}'


def _box(box: Box) -> str:
    left, top = box.corner
    middle = left + BOX_WIDTH // 2
    shape = f'<rect x="{left}" y="{top}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="6" fill="#fff" stroke="#444"/>'
    texts = [_text(middle, top + 24, box.title, 14, anchor="middle", weight="bold")]
    texts += [_text(middle, top + 44 + 17 * n, line, 12, anchor="middle") for n, line in enumerate(box.lines)]
    return "\n".join([shape, *texts])


def _ends(arrow: Arrow) -> tuple[tuple[int, int], tuple[int, int]]:
    (first, *from_), (last, *to) = arrow.start, arrow.end
    return BOXES[first].at(*from_), BOXES[last].at(*to)


def _arrow(arrow: Arrow) -> str:
    (x, y), (to_x, to_y) = _ends(arrow)
    dashes = ' stroke-dasharray="5 4"' if arrow.is_dashed else ""
    return f'<path d="M{x} {y} {to_x} {to_y}" stroke="#444" fill="none"{dashes} marker-end="url(#tip)"/>'


def _label(arrow: Arrow) -> str:
    (x, y), (to_x, to_y) = _ends(arrow)
    if x == to_x:
        return _text(x + 8, (y + to_y) // 2 + 4, arrow.label, 11)
    return _text((x + to_x) // 2, (y + to_y) // 2 - 6, arrow.label, 11, anchor="middle")


def _text(x: int, y: int, text: str, size: int, anchor: str = "start", weight: str = "normal") -> str:
    # The outline keeps a label readable where it crosses its arrow.
    outline = 'paint-order="stroke" stroke="#fff" stroke-width="3"'
    style = f'font-size="{size}" font-weight="{weight}" text-anchor="{anchor}" fill="#222" {outline}'
    return f'<text x="{x}" y="{y}" {style}>{escape(text)}</text>'


def main(arguments: list[str]) -> int:
    if "--check" not in arguments:
        PICTURE.write_text(picture(), encoding="utf-8")
    elif not PICTURE.exists() or PICTURE.read_text(encoding="utf-8") != picture():
        print("docs/architecture.svg differs from tools/architecture.py, run `make docs`")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
