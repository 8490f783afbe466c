"""Resolves the location of a home: a directory of this machine, or an address that another system resolves."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from laminae.errors import HomeUnwritable

# At least two letters: a drive letter is not a scheme.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+:")
_LOCAL_HOSTS = frozenset({"", "localhost"})
_SLUG_LENGTH = 30
_HASH_LENGTH = 16


@dataclass(frozen=True, slots=True)
class Home:
    """`identity` is the same for every spelling of a home; `directory` is None if it is not on a local disk."""

    identity: str
    directory: Path | None

    @property
    def schema_name(self) -> str:
        """The PostgreSQL schema of its catalog: a readable part and a unique part."""
        last = self.identity.rstrip("/").rsplit("/", 1)[-1]
        slug = re.sub(r"[^a-z0-9]+", "_", last.lower())[:_SLUG_LENGTH].strip("_") or "home"
        return f"laminae_{slug}_{hashlib.sha256(os.fsencode(self.identity)).hexdigest()[:_HASH_LENGTH]}"


def find_home(home: str) -> Home:
    if not home.strip() or "\0" in home or not _is_encodable(home):
        raise HomeUnwritable(location=repr(home), problem="this is not the name of a directory")
    if not _SCHEME.match(home):
        return _local(home)
    parts = urlsplit(home)
    if parts.scheme == "file" and parts.netloc in _LOCAL_HOSTS:
        return _local(unquote(parts.path))
    return Home(identity=home.rstrip("/"), directory=None)


def _is_encodable(path: str) -> bool:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True


def make_directory(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        problem = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise HomeUnwritable(location=str(directory), problem=problem) from error


def _local(path: str) -> Home:
    directory = os.path.realpath(os.path.expanduser(path))
    return Home(identity=directory, directory=Path(directory))
