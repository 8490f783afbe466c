"""The head of a log: the number of its committed items. Files past the head are left over from a crash and ignored.

Kept light on purpose: it imports no Spark.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from laminae import durable
from laminae.catalog.location import find_home
from laminae.errors import LogDamaged, NewerHome, NotAvailable

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMAT = 1
HEAD, LOCK, FLOOR = "head.json", "lock", "floor.json"


@dataclass(frozen=True, slots=True)
class Head:
    """Items 0 to `items` - 1 are committed. `extent` is a second count that depends on the kind of log: the rows of a
    push log, or the bytes in the last chunk of an item list.
    """

    items: int
    extent: int


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """The directory of the log of one source incarnation. It is created by the first write."""

    source: str
    path: str

    @property
    def head_file(self) -> str:
        return os.path.join(self.path, HEAD)

    def head(self) -> Head:
        try:
            text = Path(self.head_file).read_bytes()
        except FileNotFoundError:
            if self._has_items():
                raise self.damaged(self.head_file, "it is missing, and the log has items") from None
            return Head(0, 0)
        except OSError as error:
            raise self.damaged(self.head_file, error.strerror or str(error)) from error
        return self._parsed(text)

    def items(self, seen: int) -> int:
        """The number of committed items; LogDamaged if there are fewer than the `seen` ones."""
        items = self.head().items
        if items < seen:
            raise self.damaged(self.head_file, f"it counts {items} items, and {seen} were there before")
        return items

    def floor(self) -> int:
        """The first item that retention has not removed."""
        try:
            return int(json.loads(Path(self.path, FLOOR).read_bytes())["item"])
        except FileNotFoundError:
            return 0
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self.damaged(os.path.join(self.path, FLOOR), f"it is not a valid floor file: {error}") from error

    def raise_floor(self, item: int) -> None:
        """Declare the items before this one removed. Call it before their files are deleted."""
        if item > self.floor():
            with durable.replace(os.path.join(self.path, FLOOR)) as out:
                out.write(json.dumps({"format": FORMAT, "item": item}).encode())

    @contextmanager
    def writing(self) -> Iterator[Head]:
        """Lock the log and yield its head: one writer at a time, across threads and processes."""
        with durable.home_errors(self.path):
            lock = self._locked()
            try:
                yield self.head()
            finally:
                os.close(lock)

    def publish(self, head: Head) -> None:
        """Commit the items up to this head; their files must already be on disk."""
        text = json.dumps({"format": FORMAT, **asdict(head)})
        with durable.replace(self.head_file) as out:
            out.write(text.encode())

    def damaged(self, file: str, problem: str) -> LogDamaged:
        return LogDamaged(source=self.source, file=file, problem=problem)

    def _locked(self) -> int:
        durable.make_directory(self.path)
        # Every write replaces the head file, so the lock is a separate file. flock, because it excludes two threads of
        # one process from each other; lockf does not.
        lock = os.open(os.path.join(self.path, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not os.path.exists(self.head_file) and not self._has_items():
                self.publish(Head(0, 0))
        except BaseException:
            os.close(lock)
            raise
        return lock

    def _has_items(self) -> bool:
        try:
            names = os.listdir(self.path)
        except FileNotFoundError:
            return False
        return any(name[0].isdigit() for name in names)

    def _parsed(self, text: bytes) -> Head:
        try:
            content = json.loads(text)
            known, head = content["format"], Head(int(content["items"]), int(content["extent"]))
        except (ValueError, KeyError, TypeError) as error:
            raise self.damaged(self.head_file, f"it is not a valid head file: {error}") from error
        if known > FORMAT:
            raise NewerHome(location=self.head_file, found=known, known=FORMAT)
        return head


def log_directory(source: str, source_id: int, home: str) -> LogDirectory:
    place = find_home(home)
    if place.directory is None:
        raise NotAvailable(
            feature=f"A source in the home {home}",
            problem="its log needs a directory on a local or mounted file system",
            advice="Use a home in a local or mounted directory.",
        )
    return LogDirectory(source, str(place.directory / "sources" / str(source_id) / "log"))
