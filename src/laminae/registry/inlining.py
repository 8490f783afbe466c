"""Makes an Avro schema self-contained: each referenced definition is inlined where its name is used first.

Names are resolved as in Java: in the enclosing namespace, then as they are.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeAlias

from laminae.errors import InvalidAvroSchema
from laminae.schema.avro.names import PRIMITIVE_NAMES, full_name_of, qualified

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

NAMED = ("record", "error", "enum", "fixed")
INNER = ("items", "values")


def inlined(text: str, referenced: Iterable[str]) -> str:
    """The schema of `text` with the definitions that it uses from the others; unused definitions are left out."""
    definitions: dict[str, tuple[dict[str, Json], str]] = {}
    root = _loaded(text)
    for document in (root, *map(_loaded, referenced)):
        for name, definition, namespace in _definitions(document, ""):
            definitions.setdefault(name, (definition, namespace))
    return json.dumps(_Writer(definitions).type(root, ""), ensure_ascii=False, separators=(",", ":"))


def _loaded(text: str) -> Json:
    try:
        parsed: Json = json.loads(text)
    except ValueError as error:
        # Registries store a primitive type as its bare name.
        if text.strip() in PRIMITIVE_NAMES:
            return text.strip()
        raise InvalidAvroSchema(path="/", problem=f"the text is not JSON: {error}") from None
    return parsed


def _definitions(node: Json, namespace: str) -> Iterator[tuple[str, dict[str, Json], str]]:
    """Each named type with its full name and the namespace in effect inside it."""
    if isinstance(node, list):
        for branch in node:
            yield from _definitions(branch, namespace)
    elif isinstance(node, dict):
        kind = node.get("type")
        if kind in NAMED:
            namespace, full = _name(node, namespace)
            yield full, node, namespace
        for key in INNER:
            yield from _definitions(node.get(key), namespace)
        fields = node.get("fields")
        for field in fields if isinstance(fields, list) else ():
            if isinstance(field, dict):
                yield from _definitions(field.get("type"), namespace)


def _name(node: dict[str, Json], around: str) -> tuple[str, str]:
    name, own = node.get("name"), node.get("namespace")
    if not isinstance(name, str):
        raise InvalidAvroSchema(path="/name", problem="name is missing")
    return full_name_of(name, own if isinstance(own, str) else around, "")


class _Writer:
    """Writes types; a named type in full at its first use and by its full name afterwards."""

    def __init__(self, definitions: dict[str, tuple[dict[str, Json], str]]) -> None:
        self._definitions = definitions
        self._written: set[str] = set()

    def type(self, node: Json, namespace: str) -> Json:
        if isinstance(node, str):
            return self._use(node, namespace)
        if isinstance(node, list):
            return [self.type(branch, namespace) for branch in node]
        if not isinstance(node, dict):
            return node
        kind = node.get("type")
        if kind in NAMED:
            return self._named(_name(node, namespace)[1])
        written = {key: self.type(value, namespace) if key in INNER else value for key, value in node.items()}
        if isinstance(kind, str) and kind not in PRIMITIVE_NAMES and kind not in ("array", "map"):
            return self._use(kind, namespace)
        return written

    def _use(self, name: str, namespace: str) -> Json:
        full = next(
            (candidate for candidate in (qualified(name, namespace), name) if candidate in self._definitions), None
        )
        # A primitive, or an undefined name: the parser reports its location.
        return name if full is None or name in PRIMITIVE_NAMES else self._named(full)

    def _named(self, full: str) -> Json:
        if full in self._written:
            return full
        self._written.add(full)
        definition, namespace = self._definitions[full]
        outer, _, name = full.rpartition(".")
        written: dict[str, Json] = {**definition, "name": name, "namespace": outer}
        fields = definition.get("fields")
        if isinstance(fields, list):
            written["fields"] = [
                {**field, "type": self.type(field.get("type"), namespace)} if isinstance(field, dict) else field
                for field in fields
            ]
        return written
