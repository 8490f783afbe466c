"""What others say of a problem is shown in one line, and never with a secret in it."""

from __future__ import annotations

import pytest

from laminae.spark.lake.outside_words import cause, why
from laminae.spark.lake.rest_catalog import rest_catalog


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
