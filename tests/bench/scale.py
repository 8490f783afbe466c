"""What an epoch of a view costs, as a formula with the constants that were measured, and what it says for a cluster.

`python -m tests.bench.scale` prints the table of `docs/explanation/scale.md` and draws its plots. Nothing is measured
here, and no cluster was run: the constants come from `python -m tests.bench trace views` on two cores.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

PLOTS = Path("docs/explanation/plots")


@dataclass(frozen=True, slots=True)
class Constants:
    """Seconds and bytes as measured. Where a machine has more than two slow cores they are too high."""

    driver: float = 0.25
    """Of an epoch with nothing in it: Spark's batch, the plan, the commit."""
    per_shard: float = 0.002
    """Of the driver: a task's launch, its answer, its rows in the catalog."""
    row: float = 2.0e-6
    """Of a core: read a Parquet row, evaluate, aggregate before the shuffle."""
    group: float = 0.65e-6
    """Of a core: look a group up, combine it, write it and its changes."""
    merged_row: float = 0.25e-6
    """Of a core: a row of an older run that a merge writes again."""
    row_bytes: int = 56
    """Of a group of COUNT and SUM with one BIGINT key: state, uncompressed."""
    changes_bytes: int = 60
    """Of the two rows -U and +U of a group in the changelog."""
    request: float = 0.03
    """An object store's answer to one PUT or GET."""
    bandwidth: float = 200e6
    """Of one core's file, to or from an object store, bytes a second."""


@dataclass(frozen=True, slots=True)
class Load:
    """One view on a cluster."""

    rows_per_second: float
    groups_per_row: float
    """Distinct groups in an epoch for each of its rows; 1: no two rows of an epoch share a group."""
    state_bytes: float
    cores: int
    shards: int
    seconds: float
    """Between two epochs."""


@dataclass(frozen=True, slots=True)
class Cost:
    rows: float
    groups: float
    seconds: float
    worst_seconds: float
    written: float
    files: int
    requests: int
    catalog_rows: int


def cost(load: Load, known: Constants = Constants()) -> Cost:  # noqa: B008  # a frozen value
    """Of one epoch. `seconds` and `worst_seconds` are parts of the time between two epochs."""
    rows = load.rows_per_second * load.seconds
    groups = min(rows * load.groups_per_row, load.state_bytes / known.row_bytes)
    in_shard, of_shard = groups / load.shards, load.state_bytes / known.row_bytes / load.shards
    # Sizes of runs double with age: each row is written again once for each doubling, shared out over the epochs.
    rewrites = math.log2(max(2.0, of_shard / max(1.0, in_shard)))
    shards_per_core = max(1.0, load.shards / load.cores)
    kernel = shards_per_core * in_shard * (known.group + rewrites * known.merged_row)
    written = groups * (known.row_bytes * (1 + rewrites) + known.changes_bytes)
    upload = shards_per_core * 2 * known.request + written / load.cores / known.bandwidth
    spent = known.driver + load.shards * known.per_shard + rows * known.row / load.cores + kernel + upload
    whole = of_shard * (known.merged_row + known.row_bytes / known.bandwidth) * shards_per_core
    return Cost(
        rows=rows,
        groups=groups,
        seconds=spent / load.seconds,
        worst_seconds=(spent + whole) / load.seconds,
        written=written,
        files=2 * load.shards,
        requests=2 * load.shards,
        catalog_rows=2 + load.shards,
    )


HERE = Load(rows_per_second=400_000, groups_per_row=0.37, state_bytes=5.6e6, cores=2, shards=2, seconds=0.625)
CLUSTER = Load(rows_per_second=1e6, groups_per_row=0.5, state_bytes=1e12, cores=400, shards=400, seconds=10)
LOADS = {
    "two cores, 100k keys": HERE,
    "100 executors of 4 cores, 1 TB, epochs of 10 s": CLUSTER,
    "the same, epochs of 1 s": replace(CLUSTER, seconds=1),
    "the same, epochs of 60 s": replace(CLUSTER, seconds=60),
    "the same, 4,000 shards": replace(CLUSTER, shards=4000),
}


def main() -> None:
    table = Table("load", "rows", "groups", "time used", "in the worst epoch", "written", "files", "catalog rows")
    for name, load in LOADS.items():
        found = cost(load)
        table.add_row(
            name,
            f"{found.rows:,.0f}",
            f"{found.groups:,.0f}",
            f"{found.seconds:.0%}",
            f"{found.worst_seconds:.0%}",
            f"{found.written / 1e6:,.0f} MB",
            f"{found.files:,}",
            f"{found.catalog_rows:,}",
        )
    Console(width=150).print(table)
    _draw()


def _draw() -> None:
    from matplotlib import pyplot

    PLOTS.mkdir(parents=True, exist_ok=True)
    lengths = [2**n for n in range(7)]
    figure, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
    for shards in (400, 1600, 4000):
        used = [cost(replace(CLUSTER, seconds=length, shards=shards)).seconds * 100 for length in lengths]
        axes.plot(lengths, used, marker="o", label=f"{shards:,} shards")
    axes.axhline(100, color="black", linewidth=0.8)
    axes.set(xscale="log", xlabel="seconds between epochs", ylabel="% of that time used")
    axes.set_ylim(0, 300)
    axes.legend(title="1 TB, 1M rows/s, 400 cores")
    axes.grid(alpha=0.3)
    for suffix in (".png", ".svg"):
        figure.savefig(PLOTS / f"scale{suffix}", dpi=110, metadata={"Date": None} if suffix == ".svg" else None)
    pyplot.close(figure)


if __name__ == "__main__":
    main()
