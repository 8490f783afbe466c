"""Every wrong text gets one error with the place, the problem and what was expected there."""

from __future__ import annotations

import pickle

import pytest

from laminae.errors import DdlSyntaxError
from laminae.sql import parse


def error_of(text: str) -> DdlSyntaxError:
    with pytest.raises(DdlSyntaxError) as caught:
        parse(text)
    return caught.value


ERRORS: list[tuple[str, int, int, str, str]] = [
    ("SELCT 1", 1, 1, "unexpected SELCT, did you mean SELECT?", "ALTER, CREATE, DESC, DESCRIBE, DROP, EXPLAIN"),
    ("INSERT INTO s VALUES (1)", 1, 1, "unexpected INSERT", "SHOW, a query (SELECT, WITH, VALUES, FROM, TABLE"),
    ("ALTER SOURCE s", 1, 15, "ends too early", "ADD, ALTER, CONFIRM, DROP, REFRESH, REJECT, RENAME or SET"),
    ("ALTER SOURCE s ADDCOLUMN c INT", 1, 16, "unexpected ADDCOLUMN", "ADD, ALTER"),
    ("ALTER SOURCE s ADD COLUMN c;", 1, 28, "ends too early", "expected a type"),
    ("ALTER SOURCE s\n  ADD COLUMN c INTT", 2, 16, "no type INTT, did you mean INT?", "BIGINT"),
    ("CREATE SOURCE s (a DATETIME)", 1, 20, "did you mean TIMESTAMP?", "TIMESTAMP_NTZ"),
    ("CREATE SOURCE s (a DECIMAL(39, 2))", 1, 20, "precision of DECIMAL is 1 to 38", "DECIMAL(10, 2)"),
    ("CREATE SOURCE s (a DECIMAL(5, 6))", 1, 20, "scale of DECIMAL is 0 to its precision (5)", "DECIMAL(10, 2)"),
    ("CREATE SOURCE s (a INT(5))", 1, 20, "INT takes no number", "VARCHAR(20)"),
    ("CREATE SOURCE s (a INTERVAL)", 1, 28, "unexpected )", "a unit such as SECOND"),
    ("CREATE SOURCE s (a INT b INT)", 1, 24, "unexpected b", "DEFAULT, NOT, NULL, PRIMARY, '(', ')' or ','"),
    ("CREATE SOURCE s (a INT,)", 1, 24, "unexpected )", "expected a name"),
    ("CREATE SOURCE s (a INT NOT NULL NOT NULL)", 1, 33, "NOT NULL is given twice", "at most once"),
    ("CREATE SOURCE s (a VOID NOT NULL)", 1, 25, "a VOID column holds only NULL", "another type"),
    ("CREATE SOURCE s (a STRUCT<b: VOID NOT NULL>)", 1, 35, "a VOID column holds only NULL", "another type"),
    ("CREATE SOURCE s (a MAP<VOID, INT>)", 1, 20, "the key of a MAP cannot be VOID", "key type"),
    ("CREATE SOURCE s (a INT NULL NOT NULL)", 1, 29, "NOT NULL is given twice", "at most once"),
    ("CREATE SOURCE s (a INT PRIMARY KEY, PRIMARY KEY (a))", 1, 37, "PRIMARY KEY is given twice", "once"),
    ("CREATE SOURCE s WITH (a = '1', a = '2')", 1, 32, "option a is given twice", "once"),
    ("CREATE SOURCE s (a INT DEFAULT now())", 1, 32, "now is not a literal", "a literal such as 5"),
    ("CREATE SOURCE s (a INT DEFAULT DATE '2024-13-01')", 1, 37, "is not a DATE: month must be in 1..12", "DATE '20"),
    ("CREATE SOURCE s (WATERMARK FOR a AS b)", 1, 37, "another column", "expected a again"),
    ("CREATE SOURCE s (WATERMARK FOR a AS a - INTERVAL '-1' DAY)", 1, 41, "cannot be negative", "from 0"),
    ("CREATE SOURCE a.b (c INT)", 1, 16, "a single name is expected", "'('"),
    ("CREATE SOURCE `` (c INT)", 1, 15, "a name cannot be empty", "between the quotes"),
    ("CREATE SOURCE s (a ARRAY<INT)", 1, 29, "unexpected )", "'>'"),
    ("ALTER SOURCE s SET COMPATIBILITY = 'FUL'", 1, 36, "no compatibility mode FUL", "FULL or FULL_TRANSITIVE"),
    ("ALTER SOURCE s CONFIRM CHANGE 99999999999999999999", 1, 31, "too large", "9223372036854775807"),
    ("ALTER SOURCE s CONFIRM CHANGE 1.5", 1, 31, "unexpected 1.5", "a whole number"),
    ("EXPLAIN EXPLAIN SELECT 1", 1, 9, "unexpected EXPLAIN", "SHOW"),
    ("DROP VIEW v", 1, 6, "unexpected VIEW", "MATERIALIZED, SINK or SOURCE"),
    ("CREATE MATERIALIZED VIEW v AS DELETE FROM x", 1, 31, "unexpected DELETE", "a query (SELECT"),
    ("CREATE MATERIALIZED VIEW v AS SELECT 1 EMIT SOMETIMES", 1, 45, "SOMETIMES", "CHANGES, EVERY, FINAL or ON"),
    ("CREATE MATERIALIZED VIEW v AS SELECT 1 EMIT EVERY '0' SECONDS", 1, 51, "time to wait", "greater than 0"),
    ("CREATE OR REPLACE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT 1", 1, 8, "contradicts", "only one"),
    ("SELECT 'abc", 1, 8, "the string that begins here is never closed", "closing quote"),
    ("DROP SINK `abc", 1, 11, "the name that begins here is never closed", "closing backtick"),
    ("SHOW SINKS /* abc", 1, 12, "the comment that begins here is never closed", "closing */"),
    ("ALTER SOURCE s ALTER COLUMN c SET DEFAULT X'1F", 1, 43, "the string that begins here", "closing quote"),
    ('ALTER SOURCE s "x y"', 1, 16, 'unexpected "x y"', "ADD"),
    ("SHOW\0SINKS", 1, 5, "U+0000", "remove it"),
    (r"SET '\0' = 'c'", 1, 5, "an option name cannot hold the character U+0000", "remove it"),
    (r"CREATE SINK s FROM t WITH ('a\0b' = 'x')", 1, 28, "cannot hold the character U+0000", "remove it"),
    ("SELECT '\ud800'", 1, 9, "U+D800", "remove it"),
    ("SHOW \x07", 1, 6, "unexpected <U+0007>", "SINKS"),
    ("SHOW SINKS; SHOW\n;\nSHOW SORCES", 2, 1, "ends too early", "SOURCES or VIEWS"),
    ("SHOW SINKS;\n\nSHOW SORCES", 3, 6, "did you mean SOURCES?", "SOURCES or VIEWS"),
]


@pytest.mark.parametrize(("text", "line", "column", "problem", "expected"), ERRORS, ids=[row[0][:50] for row in ERRORS])
def test_an_error_has_place_problem_and_expectation(
    text: str, line: int, column: int, problem: str, expected: str
) -> None:
    params = error_of(text).params
    assert (params["line"], params["column"]) == (line, column)
    assert problem in str(params["problem"])
    assert expected in str(params["expected"])


def test_the_snippet_marks_the_place_in_its_line() -> None:
    error = error_of("CREATE SOURCE s (\n\ta INT,\n\tb STRNG NOT NULL\n)")
    assert error.params["snippet"] == "  \tb STRNG NOT NULL\n  \t  ^"
    assert str(error).startswith("[DDL_SYNTAX_ERROR] line 3, column 4: there is no type STRNG")


def test_a_very_long_line_is_cut_around_the_mark() -> None:
    columns = ", ".join(f"column_{number} INT" for number in range(1000))
    snippet = str(error_of(f"CREATE SOURCE s ({columns}, x WRONG, {columns})").params["snippet"])
    shown, mark = snippet.split("\n")
    assert len(shown) < 140
    assert shown[mark.index("^") :].startswith("WRONG")


def test_an_error_shows_no_names_of_the_parser() -> None:
    for text, *_ in ERRORS:
        assert not {"LPAR", "RPAR", "TYPE_NAME", "QUOTED", "$END", "LESSTHAN"} & set(str(error_of(text)).split())


def test_an_error_can_be_sent_to_another_process() -> None:
    error = error_of("SHOW")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
