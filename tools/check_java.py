"""Say whether the Java that Spark needs is here, and what to install when it is not. Never fails the set-up."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

NEEDED = 17
ADVICE = (
    f"  Spark needs Java {NEEDED}. Install a JDK (Debian, Ubuntu: apt-get install openjdk-{NEEDED}-jre-headless;\n"
    f"  macOS: brew install openjdk@{NEEDED}) or point JAVA_HOME at one, then run `make setup` again.\n"
    "  DDL, verdicts and history work without it."
)


def main() -> None:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None or not Path(java).exists():
        print(f"laminae: no Java found{f' in JAVA_HOME={home}' if home else ''}.\n{ADVICE}")
        return
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', told)
    if found is None or int(found[1]) < NEEDED:
        print(f"laminae: {java} is {told.splitlines()[0] if told else 'not a working Java'}.\n{ADVICE}")


if __name__ == "__main__":
    main()
