"""No error shows the value of an option that is a secret, however broken the text around it is."""

from __future__ import annotations

import traceback

import pytest

from laminae.errors import DdlSyntaxError
from laminae.secrets import is_secret_name
from laminae.sql import parse
from laminae.sql.redaction import Masked

SECRET = "hunter2"


@pytest.mark.parametrize(
    "options",
    [
        "password = 'hunter2', x = ",
        "ssl.key.password = 'hunter2' oops = 'y'",
        'sasl.jaas.config = \'user="u" password="hunter2";\' oops',
        "api.key = hunter2",
        "private_key = 'hunter2",
        "'client-secret' = 'hunter2', ,",
        '"auth.token" = "hunter2"',
        "`aws.credentials` = 'hunter2' 'more'",
        "password = 'it's hunter2', x = 'y'",
        "a = 'x, password = 'hunter2'",
        "password\n = -- the old one\n 'hunter2', ,",
        "password /* new */ = /* here */ 'hunter2', ,",
        "password = 'first line\nhunter2', ,",
        "password 'hunter2'",
        "password: 'hunter2'",
        "password => 'hunter2'",
        "PASSWORD='hunter2',,",
        "note = 'password =', password = 'hunter2', ,",
        "password = 'a''hunter2' , ,",
        r"password = 'a\'hunter2', ,",
    ],
)
def test_a_secret_value_is_masked(options: str) -> None:
    with pytest.raises(DdlSyntaxError) as caught:
        parse(f"CREATE SOURCE s WITH ({options})")
    assert SECRET not in str(caught.value)
    assert SECRET not in repr(caught.value.params)
    assert SECRET not in "".join(traceback.format_exception(caught.value, chain=True)).replace(options, "")


def test_the_mark_stands_under_the_fault_after_a_masked_value() -> None:
    with pytest.raises(DdlSyntaxError) as caught:
        parse("CREATE SOURCE s WITH (password = 'a long secret value', x = oops)")
    line, mark = str(caught.value.params["snippet"]).split("\n")
    assert line == "  CREATE SOURCE s WITH (password = '***', x = oops)"
    assert line[mark.index("^") :] == "oops)"
    assert caught.value.params["column"] == 61


@pytest.mark.parametrize("name", ["password", "DB_PASSWORD", "sasl.jaas.config", "api.key", "private_key", "apikey"])
def test_secret_names_are_known(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["connector", "key", "key.format", "topic", "value.format"])
def test_ordinary_names_are_not_secret(name: str) -> None:
    assert not is_secret_name(name)


def test_columns_called_like_secrets_are_shown() -> None:
    text = "CREATE SOURCE s (token STRNG, api_key: INT)"
    assert Masked(text).text == text
