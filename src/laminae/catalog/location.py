"""Where a home is and which database holds its catalog, worked out from what the user wrote.

Secrets in a URL come from references; they reach the database driver and nothing else.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from laminae.errors import HomeUnwritable, InvalidOption
from laminae.references import resolved

# Two letters at least: a drive letter is not a scheme.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+:")
_REFERENCE = re.compile(r"\$\{(\w+):([^}]*)\}")
_POSTGRES = re.compile(r"postgres(?:ql)?://")
_LOCAL_HOSTS = frozenset({"", "localhost"})
_SLUG_LENGTH = 30
_HASH_LENGTH = 16


@dataclass(frozen=True, slots=True)
class Home:
    """`identity` is the same for every spelling of a home; `directory` is None when it is not on a local disk."""

    identity: str
    directory: Path | None

    @property
    def schema_name(self) -> str:
        """The PostgreSQL schema of its catalog: a part for people, a part that is unique."""
        last = self.identity.rstrip("/").rsplit("/", 1)[-1]
        slug = re.sub(r"[^a-z0-9]+", "_", last.lower())[:_SLUG_LENGTH].strip("_") or "home"
        return f"laminae_{slug}_{hashlib.sha256(os.fsencode(self.identity)).hexdigest()[:_HASH_LENGTH]}"


def find_home(home: str) -> Home:
    if not home.strip() or "\0" in home:
        raise HomeUnwritable(location=repr(home), problem="this is not the name of a directory")
    if not _SCHEME.match(home):
        return _local(home)
    parts = urlsplit(home)
    if parts.scheme == "file" and parts.netloc in _LOCAL_HOSTS:
        return _local(unquote(parts.path))
    return Home(identity=home.rstrip("/"), directory=None)


def make_directory(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        problem = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise HomeUnwritable(location=str(directory), problem=problem) from error


def postgres_url(given: str, owner: str, option: str = "catalog") -> tuple[str, dict[str, str]]:
    """The URL with a plain word in place of each reference, and what each word stands for.

    A reference is a whole part of the URL (user, password, host, ...), so its value needs no percent-encoding.
    """
    whole = _REFERENCE.fullmatch(given)
    url = resolved(whole[0], option, owner) if whole else given
    values: dict[str, str] = {}

    def word(reference: re.Match[str]) -> str:
        name = f"laminaereference{len(values)}x"
        values[name] = resolved(reference[0], option, owner)
        return name

    url = _REFERENCE.sub(word, url)
    if not _POSTGRES.match(url):
        raise InvalidOption(
            option=option,
            owner=owner,
            problem="it is not a PostgreSQL URL",
            advice=f"Write {option} = 'postgresql://user@host:5432/database'"
            + (", or leave it out for a file in the home." if option == "catalog" else "."),
        )
    return url, values


def _local(path: str) -> Home:
    directory = os.path.realpath(os.path.expanduser(path))
    return Home(identity=directory, directory=Path(directory))
