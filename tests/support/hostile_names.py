"""Names that a text without quotes, a path, a format string, a case fold or a plan would take for something else."""

from __future__ import annotations

HOSTILE_NAMES = (
    "a.b", "a.b.c", "..", "back`tick", "`", "``two``", 'dou"ble', "sin'gle", "sp ace", " lead", "trail ", "1digit", "7",
    "select", "*", "$", "${env:HOME}", "%", "%s", "{}", "{name}", "a/b", "a\\b", "a,b", "a;b", "a=b", "(x)", "--c",
    "/*", "?", ":x", "@", "#1", "null", "true", "count", "window", "lambda", "emoji😀", "cafe\u0301", "caf\u00e9",
    "\u0130stanbul", "stra\u00dfe", "\u05e9\u05dc\u05d5\u05dd", "\u200bzw", "x" * 255, "_metadata", "__index_level_0__",
    "k0", "o0", "c0", "_note", "_shard", "_slot", "_window_end", "_row", "_error", "_version", "_placed", "value",
    "key", "element", "item", "offset", "partition", "timestamp",
)  # fmt: skip
"""Each can be the name of a column."""

REFUSED_NAMES = ("", " ", "new\nline", "tab\t", "\x00", "x" * 256, "__laminae_report")
"""No column can be called so."""

FOLDED_PAIRS = (
    ("a", "A"),
    ("stra\u00dfe", "STRASSE"),
    ("\u0131d", "id"),
    ("\u0130", "i"),
    ("\u212a", "k"),
    ("\u017f", "s"),
)
"""Two names that Python, Java or Spark takes for one."""
