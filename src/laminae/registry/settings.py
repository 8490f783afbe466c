"""Connection settings of a registry: address, credentials as references, TLS files, timeout.

Credentials are resolved at each use, so rotating one needs no restart. No resolved secret is ever stored here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from laminae.errors import InvalidOption, SecretInOption
from laminae.references import resolved
from laminae.secrets import holds_literal, is_reference, masked

if TYPE_CHECKING:
    from collections.abc import Mapping

# Confluent's client option names behind `registry.`: option, attribute. The certificate file also contains its key.
OPTIONS = {
    "registry.basic.auth.user.info": "user_info",
    "registry.bearer.auth.token": "token",
    "registry.ssl.ca.location": "ca",
    "registry.ssl.certificate.location": "certificate",
    "registry.ssl.certificate.password": "certificate_password",
}
SECRETS = ("user_info", "token", "certificate_password")
_NAMES = {attribute: option for option, attribute in OPTIONS.items()}


@dataclass(frozen=True, slots=True)
class RegistrySettings:
    """`source` is the owner that error messages name. `user_info` is a reference to `user:password`."""

    address: str
    source: str
    user_info: str | None = None
    token: str | None = None
    ca: str | None = None
    certificate: str | None = None
    certificate_password: str | None = None
    timeout: float = 10.0

    def __post_init__(self) -> None:
        for attribute in SECRETS:
            value = getattr(self, attribute)
            if value is not None and not is_reference(value):
                # Apart from the locals of the traceback, nothing may keep the literal.
                object.__setattr__(self, attribute, None)
                raise SecretInOption(option=_NAMES[attribute], owner=self.source)
        if holds_literal("registry", self.address):
            object.__setattr__(self, "address", masked(self.address))
            raise SecretInOption(option="registry", owner=self.source)
        parts = urlsplit(self.address)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
            raise InvalidOption(
                option="registry",
                owner=self.source,
                problem=f"{masked(self.address)} is not the address of a registry",
                advice="Write registry = 'https://host:8081'; credentials go into registry.basic.auth.user.info.",
            )
        if self.user_info is not None and self.token is not None:
            raise InvalidOption(
                option="registry.bearer.auth.token",
                owner=self.source,
                problem="a user is set as well",
                advice="Set either registry.basic.auth.user.info or registry.bearer.auth.token.",
            )

    @classmethod
    def of_options(cls, options: Mapping[str, str], source: str) -> RegistrySettings:
        """From the options of a source or sink with `registry`; unknown `registry.*` options are refused."""
        settings = {name: value for name, value in options.items() if name.startswith("registry.")}
        if unknown := sorted(settings.keys() - OPTIONS.keys()):
            raise InvalidOption(
                option=unknown[0],
                owner=source,
                problem="there is no such option",
                advice=f"The options of a registry are {', '.join(OPTIONS)}.",
            )
        return cls(options["registry"], source, **{OPTIONS[name]: value for name, value in settings.items()})  # type: ignore[arg-type]  # text only

    def secret(self, attribute: str) -> str | None:
        """The current value of a secret reference."""
        reference = getattr(self, attribute)
        return None if reference is None else resolved(reference, _NAMES[attribute], self.source)
