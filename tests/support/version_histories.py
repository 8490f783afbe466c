"""Random histories of a push source: ALTERs of every kind, and records of each version that fit it more or less.

Few names, so that they are dropped, renamed to and added again; a record may have any of them, with any value.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from laminae.errors import LaminaeError
from laminae.spark.sources.log_head import Head, log_directory
from laminae.spark.sources.push import _write_item

if TYPE_CHECKING:
    import random

    import laminae as lm

NAMES = ("a", "b", "c", "d", "E", "e", "g h")
TYPES = (
    "SMALLINT", "INT", "INT DEFAULT 7", "BIGINT NOT NULL DEFAULT 9", "FLOAT", "STRING", "STRING DEFAULT 'it''s'",
    "DECIMAL(6, 2)", "DATE", "STRUCT<a: INT, x: STRING>", "ARRAY<INT>", "MAP<STRING, INT>", "BOOLEAN",
)  # fmt: skip
WIDER = ("INT", "BIGINT", "DOUBLE", "DECIMAL(12, 4)")
VALUES: tuple[object, ...] = (
    1, 7, 9, -3, 40_000, 3_000_000_000, 2.5, 0.1, 1.0, "x", "it's", "2024-02-29", "7", None, None, True, {}, [],
    {"a": 1}, {"a": "no"}, {"x": "y", "id": 5}, [1, 2], ["no", {"id": 3}], 123456.789,
)  # fmt: skip
BROKEN = (
    '{"id": %d',
    "[%d]",
    '{"id": %d, "a": 1, "a": 2}',
    '{"id": %d} x',
    '{"id": "%d"}',
    "",
    '{"id": %d, "\\u0061": 7}',
)


def alter(db: lm.Database, chance: random.Random) -> str:
    """One change that the source takes; the statement."""
    while True:
        name, other = chance.choice(NAMES), chance.choice(NAMES)
        change = chance.choice(
            [
                f"ADD COLUMN `{name}` {chance.choice(TYPES)}",
                f"ADD COLUMN `{name}` {chance.choice(TYPES)}",
                f"RENAME COLUMN `{name}` TO `{other}`",
                f"ALTER COLUMN `{name}` TYPE {chance.choice(WIDER)}",
                f"DROP COLUMN `{name}`",
                f"ALTER COLUMN `{name}` SET DEFAULT {chance.choice(('1', '7', chr(39) + 'z' + chr(39)))}",
                f"ALTER COLUMN `{name}` DROP DEFAULT",
                f"ALTER COLUMN `{name}` {chance.choice(('SET', 'DROP'))} NOT NULL",
            ]
        )
        before = db.version("s")
        try:
            db.sql(f"ALTER SOURCE s {change}")
        except LaminaeError:
            continue
        if db.version("s") > before:
            return change


def record(chance: random.Random, number: int) -> str:
    if chance.random() < 0.1:
        text = chance.choice(BROKEN)
        return text % number if "%d" in text else text
    found: dict[str, object] = {"id": number}
    for name in chance.sample(NAMES, chance.randrange(0, 4)):
        found[name] = chance.choice(VALUES)
    return json.dumps(found, ensure_ascii=False)


def write(db: lm.Database, texts: list[str], version: int) -> None:
    """One item of the log, whose records are stamped with this version: `insert` would refuse some of them."""
    source = db._catalog.source("s")
    assert source is not None
    directory = log_directory("s", source.id, db.home)
    with directory.writing() as head:
        _write_item(directory, head, [text.encode() for text in texts], version)
        directory.publish(Head(head.items + 1, head.extent + len(texts)))
