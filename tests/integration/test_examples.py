"""The applications in examples/ run as their comments say, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

PRINTED = {
    "orders_evolve": """
        versions: [(2, 'ColumnAdded'), (3, 'TypeWidened'), (4, 'ColumnRenamed')]
        orders: [(1, 1000, 'EUR'), (2, 250, 'EUR'), (3, 700, 'EUR'), (4, 5000000000, 'NOK'), (5, 50, 'EUR')]
        -D ada 2 1250
        -U bob 2 750
        +U bob 3 1000
        totals: [('bob', 3, 1000), ('cy', 1, 5000000000)]
        sizes: [(1, 1), (3, 1)]
    """,
    "cdc_to_parquet": """
        customers: [(1, 'Ada', 'NO', 10)]
        dead letter: points is not a value of type INT
        replayed: 1 refused: 0
        countries: [('NO', 2, 3000000010)]
        parquet: [('NO', 2, 3000000010)]
    """,
    "clicks_analytics": """
        +I 12:00 / 2 2
        +I 12:00 /cart 1 1
        -U 12:00 / 2 2
        +U 12:00 / 3 3
        +I 12:01 / 1 1
        +I 12:02 /cart 1 1
        late: per_minute {"at":"2026-03-01T12:00:55.000Z","page":"/","visitor":"dee"}
        corrected: [('12:00', '/')]
        busiest: / 4
    """,
}


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_what_it_shows(name: str, tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / f"{name}.py")]
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.splitlines() == [line.strip() for line in PRINTED[name].strip().splitlines()]


def test_every_example_is_tested_and_small() -> None:
    lines = {path.stem: len(path.read_text(encoding="utf-8").splitlines()) for path in EXAMPLES.glob("*.py")}
    assert lines.keys() == PRINTED.keys()
    assert max(lines.values()) <= 120
