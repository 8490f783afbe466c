"""What is a secret, in one place: names that hold one, values that contain one, and references that may stand instead.

Refusing a statement and masking a text use the same tables, so that neither knows of a secret the other does not.
"""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

MASK = "***"

# Path-like settings such as ssl.keystore.location hold no secret; a key is one where it ends a word.
SECRET_NAME = re.compile(
    r"passw|passphrase|(?<![a-z])pass(?![a-z])|pwd|secret|token|jaas|credential|user\.info|authorization"
    r"|cookie|(?<![a-z])auth$|(api|private|access|account|keystore|ssl|shared|master)[._-]?key(?![a-z])",
    re.IGNORECASE,
)
# Settings about a secret hold none themselves: where it is, how long it lasts.
ABOUT_A_SECRET = re.compile(r"[._-](url|uri|location|path|file|enabled|type|ms|seconds)$", re.IGNORECASE)
# The address of a webhook is a credential as a whole: Slack, Teams and Discord put the token into its path.
ADDRESS_NAMES = frozenset({"on_change"})
# What may stand in the path, query or fragment of such an address: words that a person reads, versions, small numbers.
# Anything else may be a token, and an allow-list has no list of services to keep.
_WORD = r"(?:[a-z]{1,20}|[A-Z]{1,6}|(?:[A-Z][a-z]{2,15}){1,3}|[a-z]{2,15}(?:[A-Z][a-z]{2,15}){1,2}|v?\d{1,4})"
PLAIN_PART = re.compile(rf"(?:{_WORD}(?:[._-]{_WORD}){{0,5}})?")
_ROUNDS_OF_DECODING = 3
REFERENCE = re.compile(r"\$\{(env|file):[^}]+\}")

# Inside a value: credentials of an address, parameters and properties, an authorization header, a PEM block.
# The one group that matched is what must not be shown. A word is read once: `+` behind a repetition gives nothing back.
SECRET_VALUE = re.compile(
    r"""://[^\s@/:'"]*:(?!\$\{)(?P<url>[^\s'"]+)@
      | \bhttps?://(?!\$\{)(?P<user>[^\s@/:'"]+)@
      | [?&\#](?:key|code|auth|jwt|sas|hash)=(?!\$\{)(?P<query>[^\s&'"\#]+)
      | \b(?=\w*?(?:passw|passphrase|pwd|secret|token|credential|api_?key|accesskey|accountkey|\bsig))\w++\s*+=\s*+
        (?!["']?\$\{)(?P<parameter>"[^"]+"|'[^']+'|[^\s"'&;,)]+)
      | \b(?:bearer|basic)\s+(?P<header>[\w+/=.~-]{6,})
      | (?P<pem>-----BEGIN[^'"]*)""",
    re.IGNORECASE | re.VERBOSE,
)


def is_secret_name(name: str) -> bool:
    return SECRET_NAME.search(name) is not None and ABOUT_A_SECRET.search(name) is None


def hides_value(name: str) -> bool:
    """Whether a text that quotes an option of this name must not show its value."""
    return is_secret_name(name) or name.lower() in ADDRESS_NAMES


def is_reference(value: str) -> bool:
    return REFERENCE.fullmatch(value) is not None


def holds_literal(name: str, value: str) -> bool:
    """Whether storing this value under this name would store a secret."""
    # A JAAS configuration is a sentence around the secret; any other secret must be the reference and nothing more.
    is_sentence = "jaas" in name.lower() and REFERENCE.search(value) is not None
    if is_secret_name(name) and not is_sentence and not is_reference(value):
        return True
    if name.lower() in ADDRESS_NAMES and not is_reference(value) and not _is_plain_address(value):
        return True
    return any(SECRET_VALUE.search(text) is not None for text in _decoded(value))


def shown_value(name: str, value: str) -> str:
    """An option as it is shown: of an address that an earlier release stored with its path, only the host."""
    if not holds_literal(name, value):
        return value
    if name.lower() not in ADDRESS_NAMES:
        return MASK
    try:
        parts = urlsplit(value)
    except ValueError:
        return MASK
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/{MASK}"


def _is_plain_address(value: str) -> bool:
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    words = [*parts.path.split("/"), *re.split("[&=;]", parts.query), parts.fragment]
    return "@" not in parts.netloc and all(PLAIN_PART.fullmatch(word) for word in words)


def _decoded(value: str) -> list[str]:
    """The value, and what it is once its percent-encoding is taken away, as a driver would."""
    texts = [value]
    for _ in range(_ROUNDS_OF_DECODING):
        texts.append(unquote(texts[-1]))
    return list(dict.fromkeys(texts))


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
