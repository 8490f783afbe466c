"""Write the reference pages from the tables in the code: `make docs`. `--check` only reports outdated pages.

Every fact on these pages comes from a table that the program itself reads; only headings and notes are written here.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from laminae.codec.avro.from_columns import WRITTEN
from laminae.codec.avro.type_table import FORMS, MAX_PRECISION
from laminae.codec.debezium.connect_schema import DECIMAL, PLAIN, SEMANTIC
from laminae.engine.options import SETTINGS, SINK_OPTIONS, SOURCE_OPTIONS, VIEW_OPTIONS
from laminae.errors import ERRORS, LaminaeError
from laminae.schema.compatibility import RULES, CompatibilityMode, Rule, RuleRow, RuleSet
from laminae.schema.types import FOREIGN_NAMES, TYPES, sql_type
from laminae.schema.widening import LAYOUTS, LIST_LAYOUTS, WIDENINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from laminae.engine.options.rows import OptionRow

PAGES_DIR = Path(__file__).resolve().parent.parent / "docs" / "reference"
MADE = "<!-- Made by `make docs` from the tables in the code. Change the table, not this page. -->"

OPERATIONS = (
    ("`c`, `r`, `u`", "the row of `after` replaces the row of its key; `before` is not needed"),
    (
        "`d`",
        "deletes the row with the key in `before`; the delete is remembered, so that a late event does not restore it",
    ),
    ("`t`", "deletes all rows whose last event precedes it, even if it is read out of order"),
    ("`m`, a tombstone", "ignored and counted"),
)
BAG_OPERATIONS = (
    ("`c`, `r`", "inserts one row `after`"),
    ("`u`", "deletes one row `before` and inserts one row `after`"),
    ("`d`", "deletes one row `before`"),
    ("`t`", "deletes all rows that precede it"),
    ("`m`, a tombstone", "ignored and counted"),
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
        "Result of each compatibility mode for each kind of change. `ok`: applied. `confirm`: applied if typed as "
        "DDL, otherwise it waits in `laminar_catalog.pending_changes`. `no`: refused, unless the statement has FORCE "
        "and NONE would not refuse it.",
        _table(("change", *MODES), answers),
        "A `_TRANSITIVE` mode checks against every earlier version instead of the latest only. The two rule sets "
        "differ only in dropped columns; `compatibility_rules` selects one, and `seed` is the default.",
        "## Reasons and remedies",
        _table(("change", "reason", "remedy if a mode refuses it"), reasons),
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
        "Which types can be converted without losing a value, as `is_safe_widening(old, new, system)` returns it. "
        "`arrow` is the table that laminae uses for `TypeWidened`; the other tables are the limits of a format or "
        "table system. Type names are Arrow's. Structs, lists and maps widen if their elements do. A type is not a "
        "widening of itself."
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
        "Every error is a `LaminaeError` with a stable `code`, the `params` of its text, a `message` and a `remedy`. "
        "The classes are in `laminae.errors`."
    ]
    for code, row in ERRORS.items():
        facts = {
            "Class": _code(LaminaeError.classes[code].__name__),
            "Message": _text(row.message.replace("\n", " ")),
            "Parameters": ", ".join(map(_code, row.parameters)) or "none",
            "Remedy": _remedy(row.remedy),
        }
        parts += [f"## {code}", "\n".join(f"- {name}: {value}" for name, value in facts.items())]
    return _page("Errors", *parts)


def _remedy(remedy: str) -> str:
    """A remedy that is nothing but a parameter is written where the error is raised."""
    return "part of the error message" if remedy == "{advice}" else _text(remedy.replace("{{", "{").replace("}}", "}"))


def options_page() -> str:
    return _page(
        "Options and settings",
        "Names and values are validated, and a literal secret is refused: use `'${env:NAME}'` or `'${file:/path}'`, "
        "which is resolved at use. A webhook URL whose path or query may contain a token must be a reference as a "
        "whole.",
        "## Source options",
        "`CREATE SOURCE ... WITH (...)`, `ALTER SOURCE ... SET (...)`",
        _options(SOURCE_OPTIONS),
        "## View options",
        _options(VIEW_OPTIONS),
        "## Sink options",
        _options(SINK_OPTIONS),
        "## Settings of a home",
        "`SET name = value`",
        _options(SETTINGS),
        "## Client settings",
        "Any other option with a dot in its name is passed unchanged to the client library.",
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
        "The names are Spark's. A type is printed under its first name.",
        _table(("type", "aliases", "parameters", "Arrow type"), rows),
        "Nested types are `ARRAY<T>`, `MAP<K, V>` and `STRUCT<name: T [NOT NULL] [COMMENT 'text'], ...>`. The length "
        "of VARCHAR and the precision of TIME are accepted but not enforced.",
        "## Names of other systems",
        "These names are not accepted. The error suggests the name on the right.",
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
        "A column is nullable if its Avro type is a union with `null`. If Spark's `from_avro` returns another type, "
        "laminae converts it.",
        _table(("Avro type", "logical type", "column", "result of `from_avro`"), read),
        f"A `decimal` on `bytes` or `fixed` is `DECIMAL(p, s)`; more than {MAX_PRECISION} digits are refused. A "
        "logical type that does not match its type is ignored, as the specification requires. A `record` is a "
        "STRUCT, an `array` an ARRAY, a `map` a MAP with STRING keys. A recursive record and a schema whose root is "
        "not a record are refused by name.",
        "A union of `int` and `long` is BIGINT, one of `float` and `double` is DOUBLE. Any other union with more "
        "than one type besides `null` is `STRUCT<member0, member1, ...>` in the order of the types without `null`: "
        "the member of the written type has the value, the others are NULL.",
        "Aliases of a field become former names. `field-id`, `element-id`, `key-id` and `value-id`, as written by "
        "Iceberg, become ids. A default becomes the default of the column; a null default is ignored.",
        "## Columns to Avro",
        _table(("column", "Avro type"), written),
        "DECIMAL is `bytes` with the logical type `decimal`. A nullable column is a union with `null` and has the "
        "default null unless it has another. Nested records are named after their path. Intervals, VARIANT and maps "
        "whose keys are not text cannot be written as Avro and are refused by name.",
    )


def debezium_page() -> str:
    named = [(_code(name), _code(sql_type(kind)), WAYS[rule]) for name, (rule, kind) in SEMANTIC.items()]
    plain = [(_code(name), _code(sql_type(kind))) for name, kind in PLAIN.items()]
    return _page(
        "Debezium events",
        "A source with `changelog = 'debezium'` reads the events of a table, as JSON with or without `schema` "
        "(`format = 'debezium-json'`) or as Avro in the Confluent wire format (`format = 'avro'`). The columns are "
        "those of `after`.",
        "## Tables with a PRIMARY KEY",
        _table(("op", "effect"), OPERATIONS),
        "The old row is always taken from the state of the source, never from `before`. Events are ordered by "
        "`source.lsn`, or by the field in `sequence_by`; an event that is not newer than the last one of its key is "
        "dropped and counted. A TOASTed value that PostgreSQL did not send (`__debezium_unavailable_value`, also in "
        "an array, as bytes, or as a map key) is taken from the previous row; if the key changed, from the row of "
        "the old key. If the insert of such a row is read from Kafka before its delete, the row keeps its old key "
        "until the delete is read, and is counted in `laminar_catalog.anomalies` until then. In files and pushed "
        "rows, which have no header for it, both events of a key change must be in one epoch.",
        "## Tables without a key",
        "Without a PRIMARY KEY a source maintains a multiset of rows. The upstream table needs `REPLICA IDENTITY "
        "FULL`, because a deleted row is identified by its values.",
        _table(("op", "effect"), BAG_OPERATIONS),
        "A message is a dead letter if one of its rows cannot be decoded, if `before` is missing in a `u` or `d`, or "
        "if `before` has no value in any column (a row of only NULLs can therefore be inserted but not deleted). A "
        "value that was not sent is taken from `before`; if it is missing there too, the message is a dead letter. "
        "Columns may be NOT NULL. A delete of a row that does not exist is counted in `laminar_catalog.anomalies` "
        "until the row arrives. This also happens with events of a table that has a key and the default replica "
        "identity upstream, whose `d` events contain only the key.",
        "Delivery is at least once: an event that the connector sends again after a crash is counted again, because "
        "it cannot be distinguished from an equal event; only repeated events that are followed by their repeated "
        "truncation have no effect. A repeated `d` deletes another equal row, or, if there is none, a row that does "
        "not exist: the next equal row is then not shown until the data is corrected. The same applies to `before` "
        "of a `u`. A truncation is exact for one partition, for files and for pushed rows, where the position in the "
        "log determines the order. Over several partitions `source.lsn`, or the field in `sequence_by`, determines "
        "it; a `t` that arrives in a later epoch than events of other partitions that follow it is a dead letter, "
        "because the remaining rows cannot be determined. Use one partition for the topic of such a table "
        "(`topic.creation.default.partitions`).",
        "In existing rows a new column has the default that the source knows (otherwise NULL), and upstream the "
        "default of the table: if they differ, a row that changes later is not found. A schema contains the default; "
        "without one, first run `ALTER SOURCE ... ADD COLUMN ... DEFAULT`. After a change of its columns all rows of "
        "the multiset are rewritten once, in the next epoch.",
        "## Types with a schema",
        "In JSON with `schema`, and in Avro by `connect.name`, the semantic type determines the column type:",
        _table(("semantic type", "column", "encoding"), named),
        f"`{DECIMAL}` is `DECIMAL(p, s)` by its parameters, with {MAX_PRECISION} digits if they are missing; a value "
        "of more than sixteen bytes is a dead letter. Other fields are mapped by their plain type:",
        _table(("plain type", "column"), plain),
        "`array` is ARRAY, `struct` STRUCT, and `map` with text keys MAP. A column that is declared with another "
        "type keeps it if the values can be converted: TIMESTAMP and TIMESTAMP_NTZ for any numeric time, DECIMAL, "
        "DOUBLE or STRING for any decimal, DECIMAL and DOUBLE for text, STRING for any plain number. A value that "
        "cannot be converted is a dead letter. JSON is text: a VARIANT column is refused, as in an upsert source.",
        "## Types without a schema",
        "The declared type of a column determines how a value is read. A number in a TIMESTAMP or TIME column has "
        "the unit `debezium.time` (`micros`, as for PostgreSQL columns without a precision; `millis` for those of at "
        "most three digits, and with `time.precision.mode=connect`), in a DATE column it counts days. Text is read "
        "as ISO 8601, in UTC without a zone. Text in a DECIMAL column is base64 of the unscaled number at the scale "
        "of the column, or the number itself with `debezium.decimal = 'text'` (`decimal.handling.mode=string`); a "
        "JSON number is the value itself. BINARY is base64. NaN and the infinities are text in a DOUBLE column.",
        "## Schema changes",
        "The next event has the new columns. With `evolve = 'auto'` new columns are added and types are widened in "
        "the epoch of that event, by its schema or by its values. A removed column is kept, and is NULL in new rows: "
        "a renamed column is a removed one and a new one until `ALTER SOURCE ... RENAME COLUMN`. A change to an "
        "unrelated type waits in `laminar_catalog.pending_changes`; until it is confirmed its events are dead "
        "letters and can be replayed: their position in the log keeps them from overwriting later events.",
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
