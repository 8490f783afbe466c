"""No option that takes an address stores a secret, wherever in the address it hides; no error shows it."""

from __future__ import annotations

import string
import traceback
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import laminae as lm
from laminae.errors import SecretInOption
from laminae.secrets import MASK, holds_literal, masked, shown_value

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LETTERS = string.ascii_letters + string.digits
# A token as services make them: long, of letters and digits.
TOKENS = st.text(LETTERS, min_size=16, max_size=40).filter(
    lambda text: any(c.isdigit() for c in text) and any(c.isalpha() for c in text)
)
ANYWHERE = {
    "password": "{scheme}://user:{secret}@host/db",
    "password with an at sign": "{scheme}://user:a@{secret}@host/db",
    "parameter": "{scheme}://host/db?x=1&password={secret}",
    "token parameter": "{scheme}://host/db?access_token={secret}",
    "signature": "{scheme}://host/db?sp=1&sig={secret}",
    "encoded parameter": "{scheme}://host/db?pass%77ord={secret}",
    "encoded twice": "{scheme}://host/db?pass%2577ord={secret}",
    "key parameter": "{scheme}://host/db?key={secret}",
    "credential in the fragment": "{scheme}://host/db#token={secret}",
}
OF_HTTP = {"user": "{scheme}://{secret}@host/db"}
OF_WEBHOOKS = {
    "path": "{scheme}://host/services/T024BE7LD/B0125/{secret}",
    "last segment": "{scheme}://host/{secret}",
    "encoded path": "{scheme}://host/hook/%{hex}{secret}",
    "any parameter": "{scheme}://host/hook?x={secret}",
    "fragment": "{scheme}://host/hook#{secret}",
    "telegram": "{scheme}://host/bot1234:{secret}/send",
    "teams": "{scheme}://host/webhookb2/{secret}@{secret}/IncomingWebhook/{secret}",
}
SOURCE, SINK = "CREATE SOURCE s (id BIGINT) WITH ({})", "CREATE SINK k FROM base WITH ({})"
OPTIONS = {
    "on_change": (SOURCE, "https", ANYWHERE | OF_HTTP | OF_WEBHOOKS),
    "registry": (SOURCE, "https", ANYWHERE | OF_HTTP),
    "path": (SOURCE, "s3a", ANYWHERE),
    "catalog.uri": (SOURCE, "https", ANYWHERE | OF_HTTP),
    "catalog.s3.endpoint": (SOURCE, "http", ANYWHERE | OF_HTTP),
    "catalog.oauth2-server-uri": (SOURCE, "https", ANYWHERE | OF_HTTP),
    "kafka.sasl.oauthbearer.token.endpoint.url": (SOURCE, "https", ANYWHERE | OF_HTTP),
    "kafka.anything": (SINK, "https", ANYWHERE | OF_HTTP),
    "url": (SINK, "postgresql", ANYWHERE),
}
CASES = [(name, *how[:2], where, text) for name, how in OPTIONS.items() for where, text in how[2].items()]


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lm.Database]:
    with lm.connect(tmp_path_factory.mktemp("home")) as database:
        database.sql("CREATE SOURCE base (id BIGINT)")
        yield database


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(case=st.sampled_from(CASES), secret=TOKENS, is_broken=st.booleans())
def test_a_secret_in_an_address_is_refused_and_not_shown(db, case, secret, is_broken) -> None:
    name, statement, scheme, _, text = case
    address = text.format(scheme=scheme, secret=secret, hex=quote(" ")[1:])
    sql = statement.format(f"{name} = '{address}'{' oops' if is_broken else ''}")
    expected = lm.LaminaeError if is_broken else SecretInOption
    with pytest.raises(expected) as caught:
        db.sql(sql)
    if not is_broken or name == "on_change":
        assert secret not in str(caught.value)
        assert secret not in repr(caught.value.params)
        assert secret not in "".join(traceback.format_exception(caught.value)).replace(sql, "")


@pytest.mark.parametrize(
    "address",
    [
        "https://hooks.example.com/schemas", "http://127.0.0.1:8080/hook", "https://host", "https://host/",
        "https://host/api/v2/schema-changes", "https://host/hooks/IncomingWebhook?team=shop&version=2",
        "https://host/a/b_c.d", "${env:HOOK}", "${file:/run/secrets/hook}",
    ],
)  # fmt: skip
def test_an_address_of_plain_words_and_a_reference_are_taken(tmp_path: Path, address: str) -> None:
    with lm.connect(tmp_path / "home") as db:
        db.sql(f"CREATE SOURCE s (id BIGINT) WITH (on_change = '{address}')")
        assert f"on_change = {address}" in str(db.sql("DESCRIBE SOURCE s").fetchall())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("registry", "https://registry.example.com:8081/apis/ccompat/v7"),
        ("catalog.uri", "https://dbc-12ab34cd.cloud.example.com/api/2.1/unity-catalog/iceberg"),
        ("catalog.warehouse", "s3://bucket-0123456789abcdef/warehouse"),
        ("url", "postgresql://user@host:5432/database?sslmode=require"),
        ("url", "postgresql://user:${env:PW}@host/database"),
        ("kafka.sasl.oauthbearer.token.endpoint.url", "https://login.example.com/oauth2/v1/token"),
        ("kafka.ssl.key.location", "/etc/ssl/client.key"),
        ("catalog.token-refresh-enabled", "true"),
        ("path", "abfss://container@account.dfs.core.windows.net/in"),
    ],
)
def test_addresses_without_a_secret_are_taken(name: str, value: str) -> None:
    assert not holds_literal(name, value)


@pytest.mark.parametrize("name", ["on_change.header.Cookie", "on_change.header.X-Auth", "on_change.header.X-Api-Key"])
def test_a_header_that_carries_a_secret_is_a_reference(name: str) -> None:
    assert holds_literal(name, "value")


def test_an_address_that_was_stored_before_is_shown_without_its_path() -> None:
    assert shown_value("on_change", "https://u:p@host/services/T1/B2/abc123") == f"https://host/{MASK}"
    assert shown_value("on_change", "https://host/hook") == "https://host/hook"
    assert shown_value("on_change", "http://[x") == MASK


def test_a_password_with_an_at_sign_is_masked_to_its_end() -> None:
    assert masked("cannot reach postgresql://u:p@ss@host/d today") == f"cannot reach postgresql://u:{MASK}@host/d today"
