"""Two lines over a logarithmic axis, as PNG and SVG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot  # after the choice of a backend that needs no screen

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Point:
    at: float
    ours: float
    native: float


def draw(target: Path, points: Sequence[Point], across: str, up: str) -> None:
    """`target` without a suffix: one file of each kind is written."""
    target.parent.mkdir(parents=True, exist_ok=True)
    figure, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
    at = [point.at for point in points]
    axes.plot(at, [point.ours for point in points], marker="o", label="laminae, with retractions")
    axes.plot(at, [point.native for point in points], marker="s", label="Spark's own, without (RocksDB)")
    axes.set(xscale="log", xlabel=across, ylabel=up)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    for suffix in (".png", ".svg"):
        figure.savefig(target.with_suffix(suffix), dpi=110, metadata={"Date": None} if suffix == ".svg" else None)
    pyplot.close(figure)
