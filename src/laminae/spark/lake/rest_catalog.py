"""pyiceberg's REST catalog with an end to its patience: of itself it waits for an answer as long as there is none.

An epoch or a delivery that asks a mute server would never end, and nobody would be told why.
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

# To connect, and between two parts of an answer. A commit to a busy catalog takes seconds.
CONNECT_SECONDS, ANSWER_SECONDS = 10.0, 60.0


def rest_catalog(name: str, properties: Mapping[str, str]) -> PatientCatalog | None:
    """The catalog, if these properties and pyiceberg's own configuration say that it is a REST catalog."""
    known = merge_config(Config().get_catalog_config(name) or {}, dict(properties))
    uri, kind = known.get("uri"), known.get("type")
    is_rest = str(kind).lower() == CatalogType.REST.value if kind else str(uri).startswith("http")
    if not is_rest or uri is None or "py-catalog-impl" in properties:
        return None
    return PatientCatalog(name, **known)  # type: ignore[arg-type]  # nested properties, as pyiceberg itself gives them


class PatientCatalog(RestCatalog):
    def _config_headers(self, session: Session) -> None:
        # The one step before the first request of a session, which may be that for a token.
        super()._config_headers(session)
        # Not by an adapter: requests that are signed have one of their own.
        session.send = partial(_sent, session.send)  # type: ignore[method-assign]  # of this session alone


def _sent(send: Callable[..., Response], request: PreparedRequest, **settings: Any) -> Response:
    settings["timeout"] = settings.get("timeout") or (CONNECT_SECONDS, ANSWER_SECONDS)
    return send(request, **settings)
