"""The error table: every row has a class, a text and a remedy, and survives a trip to another process."""

from __future__ import annotations

import ast
import pickle
import re

import pytest
from tools import check_errors
from tools.check_errors import NOT_RAISED_YET, constructions, parameter_problems, table_problems, use_problems

from laminae import errors
from laminae.errors import ERRORS, LaminaeError


def kinds_of(error: type[LaminaeError]) -> list[type[LaminaeError]]:
    return [kind for child in error.__subclasses__() for kind in (child, *kinds_of(child))]


def example(code: str) -> LaminaeError:
    return LaminaeError.classes[code](**{name: f"<{name}>" for name in ERRORS[code].parameters})


def complaints(source: str) -> list[str]:
    return list(parameter_problems(constructions(ast.parse(source), "file.py")))


@pytest.mark.parametrize("code", ERRORS)
def test_code_is_upper_snake_case(code: str) -> None:
    assert re.fullmatch(r"[A-Z]+(_[A-Z]+)*", code)


def test_every_code_has_exactly_one_class() -> None:
    assert sorted(error.code for error in kinds_of(LaminaeError)) == sorted(ERRORS)


def test_every_class_has_a_row_of_its_own_and_stands_in_the_package() -> None:
    """An error that inherits its row would say what another one means; one left out could not be imported."""
    kinds = kinds_of(LaminaeError)
    assert [error.__name__ for error in kinds if "row" not in vars(error)] == []
    assert [error.__name__ for error in kinds if error.__name__ not in errors.__all__] == []


@pytest.mark.parametrize("code", ERRORS)
def test_error_shows_code_message_and_remedy(code: str) -> None:
    error = example(code)
    assert str(error) == f"[{code}] {error.message}\n  remedy: {error.remedy}"
    assert error.message.strip()
    assert error.remedy.strip()


@pytest.mark.parametrize("code", ERRORS)
def test_every_parameter_is_shown(code: str) -> None:
    error = example(code)
    assert [name for name in ERRORS[code].parameters if f"<{name}>" not in str(error)] == []


@pytest.mark.parametrize("code", ERRORS)
def test_error_survives_pickling(code: str) -> None:
    error = example(code)
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), copy.params, str(copy)) == (type(error), error.params, str(error))


@pytest.mark.parametrize("code", ERRORS)
def test_wrong_parameters_are_refused(code: str) -> None:
    error, params = LaminaeError.classes[code], example(code).params
    with pytest.raises(TypeError, match="surplus"):
        error(**params, surplus=1)
    missing = next(iter(params))
    with pytest.raises(TypeError, match=missing):
        error(**{name: value for name, value in params.items() if name != missing})


def test_check_finds_a_construction_with_wrong_parameters() -> None:
    assert complaints("raise UnknownColumn(source=s, path=p, suggestion='')") == []
    assert complaints("refusal = errors.UnknownColumn(source=s, path=p)") == [
        "file.py:1: UNKNOWN_COLUMN needs exactly ['path', 'source', 'suggestion'], differs in ['suggestion']"
    ]


@pytest.mark.parametrize("text", ["raise UnknownColumn", "raise UnknownColumn(**facts)", "UnknownColumn(s, p, '')"])
def test_check_finds_a_construction_that_does_not_name_its_parameters(text: str) -> None:
    (complaint,) = complaints(text)
    assert "without naming its parameters" in complaint


def test_check_follows_a_class_imported_under_another_name() -> None:
    assert len(complaints("from laminae.errors import UnknownColumn as Missing\nraise Missing(path=p)")) == 1


def test_check_finds_an_error_without_an_entry_in_the_docs() -> None:
    page = [f"## {code}" for code in ERRORS if code != "LEASE_HELD"]
    assert list(table_problems(page)) == ["LEASE_HELD: has no entry in docs/reference/errors.md, run `make docs`"]


def test_check_finds_errors_that_no_test_names() -> None:
    used = set(ERRORS) - NOT_RAISED_YET
    assert list(use_problems(used, used)) == []
    assert list(use_problems(used, used - {"LEASE_HELD"})) == ["LEASE_HELD: no test names LeaseHeld"]


def test_check_wants_the_list_of_unused_errors_kept_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_errors, "NOT_RAISED_YET", frozenset({"REGISTRY_UNAVAILABLE"}))
    used = set(ERRORS) - {"REGISTRY_UNAVAILABLE"}
    (complaint,) = use_problems(used | {"REGISTRY_UNAVAILABLE"}, set(ERRORS))
    assert "take it off NOT_RAISED_YET" in complaint
    assert list(use_problems(used - {"LEASE_HELD"}, used)) == ["LEASE_HELD: nothing in src makes it"]
