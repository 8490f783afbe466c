"""`make test`: all tests, in two pytest processes side by side, one for each core.

The first runs the streams that read from services, on one Spark session. The second runs what needs no Spark, what
starts drivers in order to kill them, and then, on a Spark session of its own, the folders of `OWN_SESSION`. Both take
about the same time. The output of the second is printed at the end.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

STREAMS = Path("tests/integration/spark")
OWN_SESSION = tuple(STREAMS / name for name in ("checkpoint", "views", "epoch", "query", "catalyst"))
WITH_SERVICES = (str(STREAMS), *(f"--ignore={folder}" for folder in OWN_SESSION))
OTHERS = (
    "tests/unit",
    "tests/behaviours",
    "tests/properties",
    *(str(path) for path in sorted(STREAMS.parent.glob("[!_]*")) if path != STREAMS),
    *map(str, OWN_SESSION),
)
PYTEST = (sys.executable, "-m", "pytest", "--durations=15")


def main() -> int:
    with tempfile.TemporaryFile() as output:
        rest = subprocess.Popen([*PYTEST, *OTHERS], stdout=output, stderr=subprocess.STDOUT)
        try:
            session = subprocess.run([*PYTEST, *WITH_SERVICES], check=False).returncode
        finally:
            other = rest.wait()
            output.seek(0)
            sys.stdout.write(output.read().decode(errors="replace"))
    return session or other


if __name__ == "__main__":
    sys.exit(main())
