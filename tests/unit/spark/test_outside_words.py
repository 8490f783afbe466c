"""What others say of a problem is shown in one line, and never with a secret in it."""

from __future__ import annotations

import pytest

from laminae.spark.sources.iceberg.rest_catalog import rest_catalog
from laminae.spark.sources.lakehouse.error_text import cause, why


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("no such table", "no such table"),
        ("no such table\nat line 1", "no such table"),
        ("", "ValueError"),
        ("Bearer s3cr3t-of-ours is not known", "Bearer *** is not known"),
        ("s3cr3t-of-ours has expired", "*** has expired"),
        ("refused: token=another-secret", "refused: token=***"),
    ],
)
def test_a_problem_is_one_line_without_secrets(said: str, shown: str) -> None:
    problem = ValueError(said)
    assert why(problem, ["s3cr3t-of-ours"]) == shown
    assert cause(problem, ["s3cr3t-of-ours"]) is (None if "***" in shown else problem)


@pytest.mark.parametrize(
    ("said", "secrets", "shown"),
    [
        ("the secret s3cr3t-9 is wrong", ["client-7:s3cr3t-9"], "the secret *** is wrong"),
        ("no such thing as abcdefgh", ["abcd", "abcdefgh"], "no such thing as ***"),
        ("nothing of it", [":", ""], "nothing of it"),
    ],
)
def test_secrets_are_hidden_in_parts_and_the_longest_first(said: str, secrets: list[str], shown: str) -> None:
    assert why(ValueError(said), secrets) == shown


def test_a_problem_behind_the_problem_is_looked_at_too() -> None:
    told, plain = ValueError("refused"), ValueError("refused")
    told.__cause__ = plain.__context__ = OSError("http://host/?name=k-of-ours")
    assert cause(told, ["k-of-ours"]) is None
    assert cause(plain, ["k-of-ours"]) is None
    assert cause(plain, ["another"]) is plain


@pytest.mark.parametrize(
    "properties",
    [
        {"uri": "sqlite:///catalog.db"},
        {"uri": "http://localhost", "type": "hive"},
        {"uri": "http://localhost", "py-catalog-impl": "theirs.Catalog"},
        {"type": "rest"},
        {},
    ],
)
def test_what_is_no_rest_catalog_is_left_to_pyiceberg(properties: dict[str, str]) -> None:
    assert rest_catalog("lake", properties) is None
