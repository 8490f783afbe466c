"""A source `things` of Debezium's events in files, for tests that say the events one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    import laminae as lm

SOURCE = "CREATE SOURCE things ({columns}) WITH (connector = 'files', path = '{path}', {options})"
Row = tuple[Any, ...]
Read = Callable[..., list[Row]]


def maker_of_things(db: lm.Database, inbox: Path, usual: str, key: str | None = None) -> Callable[..., Read]:
    """Creates the source, with the `usual` columns unless told.

    It gives a function: called with messages it reads them in one epoch more, and gives the rows, in the order of the
    first column where they have a key.
    """
    files = iter(range(1, 100))

    def made(columns: str = usual, **options: str) -> Read:
        given = {"format": "debezium-json", **options}
        text = ", ".join(f"{name.replace('__', '.')} = '{value}'" for name, value in given.items())
        listed = columns if key is None else f"{columns}, PRIMARY KEY ({key})"
        db.sql(SOURCE.format(columns=listed, path=inbox, options=text))

        def read(*messages: str | None) -> list[Row]:
            lines = [line if line is not None else "null" for line in messages]
            (inbox / f"{next(files):03}.json").write_text("".join(line + "\n" for line in lines))
            db.run()
            return rows(db) if key is None else sorted(rows(db), key=lambda row: row[0])

        return read

    return made


def rows(db: lm.Database, text: str = "SELECT * FROM things") -> list[Row]:
    return sorted(db.sql(text).fetchall(), key=repr)


def reasons(db: lm.Database) -> list[str]:
    letters = db.sql("SELECT reason FROM laminar_catalog.dead_letters").arrow().to_pylist()
    return sorted(letter["reason"] for letter in letters)


def told_of(db: lm.Database, what: str) -> list[int]:
    """`dropped` or `anomalies` of each epoch."""
    return [getattr(each, what) for each in db._catalog.advances(db._engine.source("things").id)]
