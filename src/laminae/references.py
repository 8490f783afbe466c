"""What a reference to a secret stands for: looked up when it is used, kept nowhere, and in no message."""

from __future__ import annotations

import os
from pathlib import Path

from laminae.errors import InvalidOption


def resolved(reference: str, option: str, owner: str) -> str:
    """What `${env:NAME}` or `${file:/path}` stands for now; InvalidOption, without any value, where it is nothing."""
    kind, _, name = reference[2:-1].partition(":")
    problem = f"{kind} is not a kind of reference"
    if kind == "env":
        problem = f"the environment variable {name} is not set"
        if name in os.environ:
            return os.environ[name]
    if kind == "file":
        try:
            return Path(name).read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            problem = f"{name} cannot be read: {type(error).__name__}"
    raise InvalidOption(
        option=option,
        owner=owner,
        problem=problem,
        advice="Use ${env:NAME} for an environment variable that is set, or ${file:/path} for a readable file.",
    )
