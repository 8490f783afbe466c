"""How a registry is reached: options, references to secrets, and that no secret is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from laminae.engine.options import SOURCE_OPTIONS, checked
from laminae.errors import InvalidOption, SecretInOption
from laminae.registry import RegistrySettings
from laminae.registry.settings import OPTIONS

if TYPE_CHECKING:
    from pathlib import Path

ADDRESS = "https://registry:8081/base"


def settings(**options: str) -> RegistrySettings:
    named = {f"registry.{name.replace('_', '.')}": value for name, value in options.items()}
    return RegistrySettings.of_options({"registry": ADDRESS, "topic": "t", **named}, "orders")


def test_options_of_a_source_are_taken_by_their_names(tmp_path: Path) -> None:
    given = settings(bearer_auth_token="${env:TOKEN}", ssl_ca_location=str(tmp_path))
    assert given == RegistrySettings(ADDRESS, "orders", token="${env:TOKEN}", ca=str(tmp_path))


def test_every_option_can_be_stored_with_a_source() -> None:
    """A name that looks like a secret's takes a reference; any other takes a path as it is."""
    secrets = {"user_info", "token", "certificate_password"}
    given = [(name, "${env:X}" if attribute in secrets else "/etc/ca.pem") for name, attribute in OPTIONS.items()]
    assert dict(checked(given, SOURCE_OPTIONS, "orders")) == dict(given)


def test_a_reference_is_resolved_at_each_use(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    held = tmp_path / "token"
    given = settings(bearer_auth_token=f"${{file:{held}}}")
    for token in ("first", "second"):
        held.write_text(f"{token}\n")
        assert given.secret("token") == token
    monkeypatch.setenv("INFO", "user:word")
    assert settings(basic_auth_user_info="${env:INFO}").secret("user_info") == "user:word"
    assert settings().secret("token") is None


@pytest.mark.parametrize("reference", ["${env:LAMINAE_NOT_THERE}", "${file:/nowhere/token}"])
def test_a_reference_to_nothing_is_refused_when_it_is_used(reference: str) -> None:
    with pytest.raises(InvalidOption, match=r"registry\.bearer\.auth\.token"):
        settings(bearer_auth_token=reference).secret("token")


@pytest.mark.parametrize("name", ["basic_auth_user_info", "bearer_auth_token", "ssl_certificate_password"])
def test_a_literal_secret_is_refused_and_not_shown(name: str) -> None:
    with pytest.raises(SecretInOption) as caught:
        settings(**{name: "hunter2"})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("address", ["https://user:hunter2@registry", "https://hunter2@registry"])
def test_credentials_in_the_address_are_refused_and_not_shown(address: str) -> None:
    with pytest.raises(SecretInOption) as caught:
        RegistrySettings(address, "orders")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("address", ["registry:8081", "ftp://registry", "https://"])
def test_an_address_that_is_none_of_a_registry_is_refused(address: str) -> None:
    with pytest.raises(InvalidOption, match="not the address of a registry"):
        RegistrySettings(address, "orders")


def test_an_unknown_option_of_a_registry_is_refused() -> None:
    with pytest.raises(InvalidOption, match=r"registry\.colour"):
        settings(colour="blue")


def test_a_user_and_a_token_are_one_too_many() -> None:
    with pytest.raises(InvalidOption, match="a user is set as well"):
        settings(basic_auth_user_info="${env:A}", bearer_auth_token="${env:B}")
