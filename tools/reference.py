"""Write the reference pages from the tables in the code: `make docs`. With `--check`, only say which are out of date.

Every fact on these pages comes from a table that the program itself reads; only headings and notes are written here.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from laminae.codec.avro_forms import FORMS, MAX_PRECISION
from laminae.codec.avro_of_columns import WRITTEN
from laminae.codec.connect_schema import DECIMAL, PLAIN, SEMANTIC
from laminae.engine.options import SETTINGS, SINK_OPTIONS, SOURCE_OPTIONS, VIEW_OPTIONS, OptionRow
from laminae.errors import ERRORS, LaminaeError
from laminae.schema.compatibility import RULES, CompatibilityMode, Rule, RuleRow, RuleSet
from laminae.schema.types import FOREIGN_NAMES, TYPES, sql_type
from laminae.schema.widening import LAYOUTS, LIST_LAYOUTS, WIDENINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

PAGES_DIR = Path(__file__).resolve().parent.parent / "docs" / "reference"
MADE = "<!-- Made by `make docs` from the tables in the code. Change the table, not this page. -->"

OPERATIONS = (
    ("`c`, `r`, `u`", "the row of `after` is there under its key; of the row before it nothing need be told"),
    ("`d`", "the row with the key in `before` goes, and is remembered: a late event does not bring it back"),
    ("`t`", "all rows go whose last event came before it, also where it is read behind or ahead of others"),
    ("`m`, a tombstone", "nothing; they are counted"),
)
BAG_OPERATIONS = (
    ("`c`, `r`", "the row of `after` comes once more"),
    ("`u`", "the row of `before` goes once, the row of `after` comes once more"),
    ("`d`", "the row of `before` goes once"),
    ("`t`", "all rows go that came before it"),
    ("`m`, a tombstone", "nothing; they are counted"),
)
WAYS = {
    "days": "days since 1970",
    "millis": "milliseconds since 1970",
    "micros": "microseconds since 1970",
    "nanos": "nanoseconds since 1970; a part of a microsecond is a dead letter",
    "zoned": "text with a zone",
    "iso": "text without a zone, or with Z",
    "time_millis": "milliseconds of the day",
    "time_micros": "microseconds of the day",
    "time_nanos": "nanoseconds of the day; a part of a microsecond is a dead letter",
    "variable_decimal": "a scale and the unscaled number as bytes",
}
MODES = (CompatibilityMode.BACKWARD, CompatibilityMode.FORWARD, CompatibilityMode.FULL, CompatibilityMode.NONE)


def compatibility_page() -> str:
    answers = [(said, *(row.answer(mode).value for mode in MODES)) for said, row in _judged()]
    reasons = [(said, row.why, row.remedy or "-") for said, row in _judged()]
    return _page(
        "Compatibility",
        "What a mode says to each kind of change. `ok`: applied. `confirm`: applied when a person typed it as DDL, "
        "otherwise it waits in `laminar_catalog.pending_changes`. `no`: refused, unless the statement says FORCE and "
        "NONE would not refuse it too.",
        _table(("change", *MODES), answers),
        "A `_TRANSITIVE` mode gives the same answers, against every earlier version instead of the latest alone. "
        "The two rule sets differ in dropped columns and nowhere else; "
        "`compatibility_rules` chooses one, and `seed` is the default.",
        "## Why, and what to do",
        _table(("change", "why", "what to do when a mode refuses it"), reasons),
    )


def _judged() -> Iterable[tuple[str, RuleRow]]:
    """Each rule once, or once per rule set where the two differ."""
    for rule in Rule:
        rows = {rules: RULES[rules][rule] for rules in RuleSet}
        if len(set(rows.values())) == 1:
            yield rule, rows[RuleSet.SEED]
        else:
            yield from ((f"{rule} (rules `{rules}`)", row) for rules, row in rows.items())


def widening_page() -> str:
    parts = [
        "Which type may become which without losing a value, as `is_safe_widening(old, new, system)` answers. "
        "`arrow` is laminae's own table: a change it lists is `TypeWidened`; the other tables are the limits of the "
        "format or table a stream comes from. Type names are Arrow's. Structs, lists and maps widen when what is "
        "inside them does. A type is not a widening of itself."
    ]
    for system, widening in WIDENINGS.items():
        rows = [(_code(old), ", ".join(map(_code, new.split()))) for old, new in widening.pairs.items()]
        rules = [f"- {_text(rule)}" for rule in widening.rules]
        parts += [f"## {system}", _table(("from", "to"), rows), *(["Also:", "\n".join(rules)] if rules else [])]
    layouts = [*(sorted(layout) for layout in LAYOUTS), sorted(LIST_LAYOUTS)]
    return _page(
        "Widening",
        *parts,
        "## Layouts",
        "The same values in another memory layout: both directions are compatible under every mode.",
        "\n".join(f"- {', '.join(map(_code, layout))}" for layout in layouts),
    )


def errors_page() -> str:
    parts = [
        "Every error is a `LaminaeError` with a stable `code`, the `params` behind its text, a `message` and a "
        "`remedy`. The class of each is in `laminae.errors`."
    ]
    for code, row in ERRORS.items():
        facts = {
            "Class": _code(LaminaeError.classes[code].__name__),
            "Message": _text(row.message.replace("\n", " ")),
            "Parameters": ", ".join(map(_code, row.parameters)) or "none",
            "Remedy": _remedy(row.remedy),
        }
        parts += [f"## {code}", "\n".join(f"- {name}: {told}" for name, told in facts.items())]
    return _page("Errors", *parts)


def _remedy(remedy: str) -> str:
    """A remedy that is nothing but a parameter is written where the error is raised."""
    return "said by the error itself" if remedy == "{advice}" else _text(remedy.replace("{{", "{").replace("}}", "}"))


def options_page() -> str:
    return _page(
        "Options and settings",
        "Names are checked, values are checked, and a literal secret is refused: write `'${env:NAME}'` or "
        "`'${file:/path}'`. Options of connectors, views and sinks are kept in the catalog already; what they "
        "describe comes with the Spark pipelines.",
        "## Of a source",
        "`CREATE SOURCE ... WITH (...)`, `ALTER SOURCE ... SET (...)`",
        _options(SOURCE_OPTIONS),
        "## Of a materialized view",
        _options(VIEW_OPTIONS),
        "## Of a sink",
        _options(SINK_OPTIONS),
        "## Settings of a home",
        "`SET name = value`",
        _options(SETTINGS),
        "## Passed through",
        "Any other option with a dot in its name is a setting of a client library and goes to it as it is.",
    )


def _options(table: Mapping[str, OptionRow]) -> str:
    rows = [
        (_code(name), _text(row.expectation), _code(row.default) if row.default else "-", _text(row.meaning))
        for name, row in table.items()
    ]
    return _table(("name", "value", "default", "meaning"), rows)


def types_page() -> str:
    numbers = {0: "-", 1: "(n)", 2: "(p, s)"}
    rows = [
        (_code(row.name), ", ".join(map(_code, row.aliases)) or "-", numbers[row.max_arguments], _code(str(row.arrow)))
        for row in TYPES
    ]
    foreign = [(_code(name), _code(sql)) for name, sql in FOREIGN_NAMES.items()]
    return _page(
        "SQL types",
        "The names are Spark's. A type is printed under its first name, whichever was typed.",
        _table(("type", "also read", "numbers", "Arrow type"), rows),
        "Nested types are `ARRAY<T>`, `MAP<K, V>` and `STRUCT<name: T [NOT NULL] [COMMENT 'text'], ...>`. "
        "The length of VARCHAR and the precision of TIME are read and not enforced.",
        "## Names of other systems",
        "These are not read. The error that refuses one suggests the name on the right.",
        _table(("typed", "suggested"), foreign),
    )


def avro_page() -> str:
    read = [
        (_code(form.type), _code(form.logical) if form.logical else "-", _code(sql_type(form.arrow)), form.from_avro)
        for form in FORMS
    ]
    written = [(_code(sql_type(arrow)), _code(json.dumps(avro))) for arrow, avro in WRITTEN.items()]
    return _page(
        "Avro types",
        "## Avro to columns",
        "A column may be NULL where its Avro type is a union with `null`. Where Spark's `from_avro` gives another "
        "type, laminae converts it.",
        _table(("Avro type", "logical type", "column", "`from_avro` gives"), read),
        f"A `decimal` on `bytes` or `fixed` is `DECIMAL(p, s)`; one of more than {MAX_PRECISION} digits is refused. A "
        "logical type that does not fit its type is ignored, as the specification says. A `record` is a STRUCT, an "
        "`array` an ARRAY, a `map` a MAP with STRING keys. A record that contains itself is refused by name, and so is "
        "a schema whose root is no record.",
        "A union of `int` and `long` is BIGINT, one of `float` and `double` is DOUBLE. Any other union with more than "
        "one type beside `null` is `STRUCT<member0, member1, ...>` in the order of the types, `null` not counted: the "
        "member of the type that was written has the value, the others are NULL.",
        "Aliases of a field are kept as former names. `field-id`, `element-id`, `key-id` and `value-id`, as Iceberg "
        "writes them, are kept as ids. A default becomes that of the column; a null default says nothing new.",
        "## Columns to Avro",
        _table(("column", "Avro type"), written),
        "DECIMAL is `bytes` with the logical type `decimal`. A column that may be NULL is a union with `null` and has "
        "the default null if it has none of its own. Records are named after their place. Intervals, VARIANT and maps "
        "whose keys are not text have no Avro form and are refused by name.",
    )


def debezium_page() -> str:
    named = [(_code(name), _code(sql_type(kind)), WAYS[rule]) for name, (rule, kind) in SEMANTIC.items()]
    plain = [(_code(name), _code(sql_type(kind))) for name, kind in PLAIN.items()]
    return _page(
        "Debezium's events",
        "A source with `changelog = 'debezium'` takes the events of a table, as JSON with or without `schema` "
        "(`format = 'debezium-json'`) or as Avro behind a registry's frame (`format = 'avro'`). The columns are those "
        "of `after`.",
        "## Tables with a PRIMARY KEY",
        _table(("op", "what is done"), OPERATIONS),
        "The old row is always the one that is kept here. Events are ordered by `source.lsn`, or by what `sequence_by` "
        "names; one that is not newer than the last of its key is dropped and counted. A value that PostgreSQL stores "
        "apart and did not send (`__debezium_unavailable_value`, also in an array, as its bytes, or as the key of a "
        "map) is that of the row before; of a row whose key changed, that of the row under the old key. In files and "
        "pushed rows, which have no header that tells of it, both events of such a change must be of one epoch.",
        "## Tables without a key",
        "Without PRIMARY KEY a source keeps a bag of rows, in which equal ones count. The table upstream needs "
        "`REPLICA IDENTITY FULL`: the row that goes is known by its values alone.",
        _table(("op", "what is done"), BAG_OPERATIONS),
        "Both rows of an event are taken, or the message is a dead letter: where either cannot be decoded, where "
        "`before` is missing in a `u` or `d`, or has no value at all in any column (so a row of nothing but NULLs can "
        "come, and not go). A value that was not sent is that of `before`; where that does not have it either, the "
        "message is a dead letter. Columns may be NOT NULL. A row that goes and is not there takes nothing; it is "
        "counted in `laminar_catalog.anomalies` until it comes. So it is with the events of a table that has a key "
        "upstream and the default identity, whose `d` has nothing but the key.",
        "Delivery is at least once: an event that the connector sends again after a crash counts again, as nothing "
        "tells it from another one alike; only what comes again together with the truncation behind it leaves the "
        "same. A `d` that is sent again takes another row that is equal, or, where there is none, one that is not "
        "there: then the next equal row that comes is not shown, until somebody corrects it. So it is with `before` "
        "of a `u`. A truncation is exact for one partition, for files and for pushed rows: there the place in the log "
        "says what came before it. Over several partitions `source.lsn`, or what `sequence_by` names, does; a `t` "
        "that comes in a later epoch than events of other partitions which follow it is a dead letter, as the rows it "
        "leaves are not known any more. Give the topic of such a table one partition "
        "(`topic.creation.default.partitions`).",
        "A new column has in the rows that are there the default that the source knows (NULL without one), and "
        "upstream the default of the table: where they differ, a row that changes later is not found again. A schema "
        "brings the default along; without one, say it first: `ALTER SOURCE ... ADD COLUMN ... DEFAULT`. With any "
        "change of its columns all rows of a bag are read and written once, in the next epoch.",
        "## Types that a schema tells",
        "In JSON with `schema`, and in Avro by `connect.name`, the name of a semantic type says what a value is:",
        _table(("semantic type", "column", "how a value is written"), named),
        f"`{DECIMAL}` is `DECIMAL(p, s)` by its parameters, of {MAX_PRECISION} digits where it does not tell them; a "
        "value of more than sixteen bytes is a dead letter. Any other type is that of its plain one:",
        _table(("plain type", "column"), plain),
        "`array` is ARRAY, `struct` STRUCT, and `map` with keys of text MAP. A column that was declared with another "
        "type keeps it where each value can become one: TIMESTAMP and TIMESTAMP_NTZ for any number that is a time, "
        "DECIMAL, DOUBLE or STRING for any decimal, DECIMAL and DOUBLE for text, STRING for any plain number. A value "
        "that cannot is a dead letter. JSON is text: a VARIANT column is refused, here as in an upsert source.",
        "## Types without a schema",
        "Only the declared type of a column says what a value is. A number in a TIMESTAMP or TIME column counts "
        "`debezium.time` (`micros`, as for columns of PostgreSQL without a precision; `millis` for those of at most "
        "three digits, and where Debezium has `time.precision.mode=connect`), in a DATE column days. Text is read as "
        "ISO 8601 writes it, and is UTC without a zone. A text in a DECIMAL column is base64 of the unscaled number, "
        "at the column's own scale, or the number itself with `debezium.decimal = 'text'` "
        "(`decimal.handling.mode=string`); a number is what it says. BINARY is base64. NaN and the "
        "infinities are texts in a DOUBLE column.",
        "## When the table changes",
        "The next event has the new shape. With `evolve = 'auto'` new columns are added, and wider types taken on, in "
        "the epoch of that event: by its schema, or by what it holds. What is gone stays, and is NULL in rows to come: "
        "a renamed column is one that is gone and one that is new, until `ALTER SOURCE ... RENAME COLUMN`. A type of "
        "another kind waits in `laminar_catalog.pending_changes`; until then its events are dead letters, and can be "
        "replayed: their place keeps them from undoing what came later.",
    )


PAGES: dict[str, Callable[[], str]] = {
    "compatibility.md": compatibility_page,
    "widening.md": widening_page,
    "errors.md": errors_page,
    "options.md": options_page,
    "types.md": types_page,
    "avro.md": avro_page,
    "debezium.md": debezium_page,
}


def stale_pages(directory: Path) -> list[Path]:
    """The pages whose file is missing or says something else than the code."""
    paths = {directory / name: page for name, page in PAGES.items()}
    return [path for path, page in paths.items() if not path.exists() or path.read_text(encoding="utf-8") != page()]


def _page(title: str, *parts: str) -> str:
    return "\n\n".join([f"# {title}", MADE, *parts]) + "\n"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _code(text: str) -> str:
    return f"`{text}`"


def _text(text: str) -> str:
    """Words in angle brackets would be taken for HTML."""
    return text.replace("<", "&lt;")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 when a page is out of date")
    stale = stale_pages(PAGES_DIR)
    if parser.parse_args(arguments).check:
        for path in stale:
            print(f"docs/reference/{path.name} differs from the tables in the code: run `make docs`")
        return 1 if stale else 0
    PAGES_DIR.mkdir(parents=True, exist_ok=True)
    for path in stale:
        path.write_text(PAGES[path.name](), encoding="utf-8")
        print(f"wrote docs/reference/{path.name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
