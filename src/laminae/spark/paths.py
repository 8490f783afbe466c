"""Paths that options give, as directories of this machine."""

from __future__ import annotations

import os
from urllib.parse import unquote, urlsplit

from laminae.errors import NotAvailable


def local_path(path: str, owner: str) -> str:
    """Absolute, with its symbolic links left as they are: a link may be moved to another directory."""
    if path.startswith("file:"):
        path = unquote(urlsplit(path).path)
    elif "://" in path:
        raise NotAvailable(
            feature=f"Using {path}",
            problem=f"{owner} needs a directory of this machine's file system",
            advice="Use a local or mounted directory.",
        )
    return os.path.abspath(os.path.expanduser(path))
