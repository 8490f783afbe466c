"""What is a secret, in one place: names that hold one, values that contain one, and references that may stand instead.

Refusing a statement and masking a text use the same tables, so that neither knows of a secret the other does not.
"""

from __future__ import annotations

import re

MASK = "***"

# Path-like settings such as ssl.keystore.location hold no secret; a key is one where it ends a word.
SECRET_NAME = re.compile(
    r"passw|passphrase|(?<![a-z])pass(?![a-z])|pwd|secret|token|jaas|credential|user\.info|authorization"
    r"|(api|private|access|account|keystore|ssl|shared|master)[._-]?key(?![a-z])",
    re.IGNORECASE,
)
REFERENCE = re.compile(r"\$\{(env|file):[^}]+\}")

# Inside a value: credentials of an address, parameters and properties, an authorization header, a PEM block.
# The one group that matched is what must not be shown. A word is read once: `+` behind a repetition gives nothing back.
SECRET_VALUE = re.compile(
    r"""://[^\s@/:'"]*:(?!\$\{)(?P<url>[^\s@'"]+)@
      | \b(?=\w*?(?:passw|passphrase|pwd|secret|token|api_?key|accesskey|accountkey|\bsig))\w++\s*+=\s*+
        (?!["']?\$\{)(?P<parameter>"[^"]+"|'[^']+'|[^\s"'&;,)]+)
      | \b(?:bearer|basic)\s+(?P<header>[\w+/=.~-]{6,})
      | (?P<pem>-----BEGIN[^'"]*)""",
    re.IGNORECASE | re.VERBOSE,
)


def is_secret_name(name: str) -> bool:
    return SECRET_NAME.search(name) is not None


def is_reference(value: str) -> bool:
    return REFERENCE.fullmatch(value) is not None


def holds_literal(name: str, value: str) -> bool:
    """Whether storing this value under this name would store a secret."""
    # A JAAS configuration is a sentence around the secret; any other secret must be the reference and nothing more.
    is_sentence = "jaas" in name.lower() and REFERENCE.search(value) is not None
    if is_secret_name(name) and not is_sentence and not is_reference(value):
        return True
    return SECRET_VALUE.search(value) is not None


def secret_spans(text: str) -> list[tuple[int, int]]:
    """Where in a text a secret stands by its own looks, whatever name stands before it."""
    return [
        next(match.span(name) for name, found in match.groupdict().items() if found is not None)
        for match in SECRET_VALUE.finditer(text)
    ]


def masked(text: str) -> str:
    """The text with what is secret in its values replaced; for words that another program wrote about a text."""
    parts, last = [], 0
    for start, end in secret_spans(text):
        parts += [text[last:start], MASK]
        last = end
    return "".join([*parts, text[last:]])
