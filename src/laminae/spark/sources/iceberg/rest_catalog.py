"""pyiceberg's REST catalog with timeouts: without them it waits for a response forever.

An epoch or a delivery that calls an unresponsive server would never end, and no error would be reported.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyiceberg.catalog import CatalogType
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.utils.config import Config, merge_config

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from requests import PreparedRequest, Response, Session

# The timeouts for connecting, and between two parts of a response. A commit to a busy catalog takes seconds.
CONNECT_SECONDS, ANSWER_SECONDS = 10.0, 60.0


def rest_catalog(name: str, properties: Mapping[str, str]) -> PatientCatalog | None:
    """The catalog, if it is a REST catalog according to these properties and pyiceberg's own configuration."""
    known = merge_config(Config().get_catalog_config(name) or {}, dict(properties))
    uri, kind = known.get("uri"), known.get("type")
    is_rest = str(kind).lower() == CatalogType.REST.value if kind else str(uri).startswith("http")
    if not is_rest or uri is None or "py-catalog-impl" in properties:
        return None
    return PatientCatalog(name, **known)  # type: ignore[arg-type]  # nested properties, as pyiceberg itself gives them


class PatientCatalog(RestCatalog):
    def _config_headers(self, session: Session) -> None:
        # The only hook before the first request of a session, which may be the request for a token.
        super()._config_headers(session)
        # Not with a transport adapter: signed requests have their own.
        session.send = partial(_sent, session.send)  # type: ignore[method-assign]  # of this session alone


def _sent(send: Callable[..., Response], request: PreparedRequest, **settings: Any) -> Response:
    settings["timeout"] = settings.get("timeout") or (CONNECT_SECONDS, ANSWER_SECONDS)
    return send(request, **settings)
