"""`make test`: all tests, as two runs of pytest side by side, since a test of a stream waits more than it computes.

The first has the streams, on one Spark session, and the services they read from. The second has the rest: what needs no
Spark, what starts drivers of its own in order to kill them, and at last, on a session of its own, the state of any
query, and views. Its output comes at the end.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

STREAMS = Path("tests/integration/spark")
APART = (
    STREAMS / "checkpoint",
    *sorted(STREAMS.glob("test_view*.py")),
)
ON_THE_SESSION = (str(STREAMS), *(f"--ignore={place}" for place in APART))
THE_REST = (
    "tests/unit",
    "tests/behaviours",
    "tests/properties",
    *(str(place) for place in sorted(STREAMS.parent.glob("[!_]*")) if place != STREAMS),
    *map(str, APART),
)
PYTEST = (sys.executable, "-m", "pytest", "--durations=15")


def main() -> int:
    with tempfile.TemporaryFile() as output:
        rest = subprocess.Popen([*PYTEST, *THE_REST], stdout=output, stderr=subprocess.STDOUT)
        try:
            session = subprocess.run([*PYTEST, *ON_THE_SESSION], check=False).returncode
        finally:
            other = rest.wait()
            output.seek(0)
            sys.stdout.write(output.read().decode(errors="replace"))
    return session or other


if __name__ == "__main__":
    sys.exit(main())
