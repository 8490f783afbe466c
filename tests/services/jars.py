"""The jars of a service, fetched once by Maven into a cache outside the repository, and kept until pom.xml changes."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

POM = Path(__file__).with_name("pom.xml")
FETCH_SECONDS = 600.0
# The registry is an archive that is taken alone; see pom.xml.
GOALS = {"registry": "dependency:copy"}
ALL_DEPENDENCIES = "dependency:copy-dependencies"


class ServiceMissing(Exception):
    """A service cannot be started on this machine, and why."""


def cache_directory() -> Path:
    return Path(os.environ.get("LAMINAE_SERVICES") or Path.home() / ".cache" / "laminae").absolute()


def jars(profile: str) -> Path:
    """The directory that holds what a profile of pom.xml names, fetched now if it is not there."""
    if shutil.which("java") is None:
        raise ServiceMissing(f"Java is not installed: {profile} was NOT tested")
    version = hashlib.sha256(POM.read_bytes()).hexdigest()[:12]
    place = cache_directory() / version / profile
    if not place.is_dir():
        _fetch(profile, place)
    return place


def java_command(profile: str, main: str, *arguments: str) -> list[str]:
    """A small JVM with these jars: tests share the machine with it, and start it often."""
    return [
        "java",
        "-Xmx384m",
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-cp",
        f"{jars(profile)}/*",
        main,
        *arguments,
    ]


def _fetch(profile: str, place: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise ServiceMissing(f"Maven is not installed: {profile} was NOT tested")
    place.parent.mkdir(parents=True, exist_ok=True)
    # Two runs may fetch at once: each into a directory of its own, and a whole one takes the name.
    with tempfile.TemporaryDirectory(prefix=f".{profile}-", dir=place.parent) as scratch:
        fetched = Path(scratch) / "jars"
        goal = GOALS.get(profile, ALL_DEPENDENCIES)
        command = [maven, "-q", "-B", "-f", str(POM), "-P", profile, goal, f"-DoutputDirectory={fetched}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False)
        if done.returncode != 0:
            raise ServiceMissing(f"Maven could not fetch {profile}, which was NOT tested: {done.stdout[-500:].strip()}")
        for archive in fetched.glob("*.tar.gz"):
            shutil.unpack_archive(archive, fetched, filter="data")
            archive.unlink()
        if not place.is_dir():
            fetched.rename(place)
