"""The head of a log: how much of it is there. What lies behind the head is an orphan of a crash and does not exist."""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from laminae.catalog.location import find_home
from laminae.errors import HomeUnwritable, LogDamaged, NewerHome, NotAvailable

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMAT = 1
HEAD, LOCK, FLOOR = "head.json", "lock", "floor.json"


@dataclass(frozen=True, slots=True)
class Head:
    """Items 0 to `items` - 1 are there. `extent` is what the kind of log counts besides: rows, or bytes of a list."""

    items: int
    extent: int


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """Where the log of one source incarnation is. It comes into being with the first item."""

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
        """How many there are, at least those `seen` before."""
        items = self.head().items
        if items < seen:
            raise self.damaged(self.head_file, f"it counts {items} items, and {seen} were there before")
        return items

    def floor(self) -> int:
        """The first item that retention has left."""
        try:
            return int(json.loads(Path(self.path, FLOOR).read_bytes())["item"])
        except FileNotFoundError:
            return 0
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self.damaged(os.path.join(self.path, FLOOR), f"it is not a floor: {error}") from error

    def raise_floor(self, item: int) -> None:
        """Items before this one are no more; to be called before their files go."""
        if item > self.floor():
            replace_durably(os.path.join(self.path, FLOOR), json.dumps({"format": FORMAT, "item": item}).encode())

    @contextmanager
    def writing(self) -> Iterator[Head]:
        """The head as no other writer changes it meanwhile: one writer at a time, of any thread or process."""
        try:
            lock = self._locked()
        except OSError as error:
            raise HomeUnwritable(location=self.path, problem=error.strerror or str(error)) from error
        try:
            yield self.head()
        except OSError as error:
            raise HomeUnwritable(location=error.filename or self.path, problem=error.strerror or str(error)) from error
        finally:
            os.close(lock)

    def publish(self, head: Head) -> None:
        """From here on the items are there; their files must be on disk before."""
        text = json.dumps({"format": FORMAT, **asdict(head)})
        replace_durably(self.head_file, text.encode())

    def damaged(self, file: str, problem: str) -> LogDamaged:
        return LogDamaged(source=self.source, file=file, problem=problem)

    def _locked(self) -> int:
        if not os.path.isdir(self.path):
            make_durably(self.path)
        # The head is replaced at every write, so the lock is a file of its own. flock, because two threads of one
        # process exclude each other by it, which they do not with lockf.
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
            found = json.loads(text)
            known, head = found["format"], Head(int(found["items"]), int(found["extent"]))
        except (ValueError, KeyError, TypeError) as error:
            raise self.damaged(self.head_file, f"it is not a head: {error}") from error
        if known > FORMAT:
            raise NewerHome(location=self.head_file, found=known, known=FORMAT)
        return head


def log_directory(source: str, source_id: int, home: str) -> LogDirectory:
    place = find_home(home)
    if place.directory is None:
        raise NotAvailable(
            feature=f"A source in the home {home}",
            problem="its log needs a directory of this machine's file system",
            advice="Use a home on a local or mounted directory.",
        )
    return LogDirectory(source, str(place.directory / "sources" / str(source_id) / "log"))


def offset_text(item: int) -> str:
    """The one way an offset is written: Spark and the catalog compare texts."""
    return json.dumps({"item": item})


def replace_durably(file: str, content: bytes) -> None:
    """The file is the old or the new one, whole, after any crash."""
    temporary = f"{file}.tmp"
    with open(temporary, "wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    os.replace(temporary, file)
    sync_directory(os.path.dirname(file))


def make_durably(path: str) -> None:
    """A directory and its parents, each on disk as an entry of its own parent."""
    parent = os.path.dirname(path)
    if not os.path.isdir(parent):
        make_durably(parent)
    try:
        os.mkdir(path)
    except FileExistsError:
        return
    sync_directory(parent)


def sync_directory(path: str) -> None:
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
