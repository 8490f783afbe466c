"""A registry in a dict, behind the client's own transport: what the engine makes of answers needs no process."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote

from laminae.net.http import NoResponse, Response
from tests.support.registry_answers import AWAY, refused, said

if TYPE_CHECKING:
    from laminae.registry.transport import Request


@dataclass(slots=True)
class Registry:
    """Subjects with their schemas, oldest first; ids count up over all of them."""

    level: str = "BACKWARD"
    subjects: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    is_away: bool = False
    asked: int = 0

    def put(self, subject: str, *fields: dict[str, object], name: str = "Order") -> int:
        """The id of a new version."""
        schema_id = 1 + sum(map(len, self.subjects.values()))
        text = json.dumps({"type": "record", "name": name, "fields": fields})
        self.subjects.setdefault(subject, []).append((schema_id, text))
        return schema_id

    def __call__(self, request: Request) -> Response:
        self.asked += 1
        if self.is_away:
            raise NoResponse(str(AWAY))
        parts = [unquote(part) for part in request.path.strip("/").split("/")]
        match parts:
            case ["schemas", "ids", schema_id]:
                return self._schema(int(schema_id))
            case ["schemas", "ids", schema_id, "versions"]:
                places = [
                    {"subject": subject, "version": place + 1}
                    for subject, versions in self.subjects.items()
                    for place, (known, _) in enumerate(versions)
                    if known == int(schema_id)
                ]
                return said(places) if places else refused(404, 40403)
            case ["subjects", subject, "versions", "latest"]:
                versions = self.subjects.get(subject)
                if not versions:
                    return refused(404, 40401)
                latest_id, text = versions[-1]
                return said({"subject": subject, "version": len(versions), "id": latest_id, "schema": text})
            case ["config", *_]:
                return said({"compatibilityLevel": self.level})
        raise AssertionError(f"nobody asks for {request.path}")

    def _schema(self, schema_id: int) -> Response:
        known = dict(pair for versions in self.subjects.values() for pair in versions)
        return said({"schema": known[schema_id]}) if schema_id in known else refused(404, 40403)


def avro_field(name: str, kind: object = "long", **more: object) -> dict[str, object]:
    return {"name": name, "type": kind, **more}
