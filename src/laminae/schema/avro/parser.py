"""From JSON (text, dict or list) to `AvroSchema`, or `InvalidAvroSchema` with the path of the first mistake.

It accepts what Apache Avro for Java 1.12 accepts, which is also what a registry has stored; exceptions are marked.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, NoReturn, TypeAlias, cast

from laminae.errors import InvalidAvroSchema
from laminae.schema.avro.attributes import aliases_of, array_of, check_order, field_props, schema_props, text_of
from laminae.schema.avro.defaults import fits, number_in_text
from laminae.schema.avro.names import alias_of, full_name_of, is_name, shown
from laminae.schema.avro.nodes import (
    AvroArray,
    AvroEnum,
    AvroField,
    AvroFixed,
    AvroKind,
    AvroMap,
    AvroNamed,
    AvroPrimitive,
    AvroRecord,
    AvroReference,
    AvroSchema,
    AvroType,
    AvroUnion,
    JsonValue,
)

if TYPE_CHECKING:
    from collections.abc import Callable

AvroSource: TypeAlias = dict[str, object] | list[object] | str

# A level costs up to three Python frames here and four when printed; the interpreter allows 1,000 in all.
MAX_DEPTH = 128
# The longest array a JVM can hold, and Java's bound on a fixed.
MAX_FIXED_SIZE = 2**31 - 9

_PRIMITIVES = {str(kind): AvroPrimitive(kind) for kind in AvroKind}


def parse_avro(source: AvroSource) -> AvroSchema:
    """The schema `source` describes: a dict, a list (a union), JSON text, or the bare name of a primitive type."""
    if isinstance(source, str):
        return _parse_text(source)
    return _parse(source)


@lru_cache(maxsize=512)
def _parse_text(text: str) -> AvroSchema:
    bare = _PRIMITIVES.get(text.strip())
    if bare is not None:
        return AvroSchema(bare, {})
    try:
        source = json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        problem = f"the text is neither JSON nor the name of a primitive type: {error}"
        raise InvalidAvroSchema(path="/", problem=problem) from None
    return _parse(source)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _parse(source: object) -> AvroSchema:
    parser = _Parser()
    try:
        return parser.finish(parser.type(source, "", "", 0))
    except RecursionError:
        # Types stop at MAX_DEPTH; a default may be nested deeper, or the caller may have used up the stack.
        raise _too_deep() from None


def _too_deep(path: str = "/") -> InvalidAvroSchema:
    return InvalidAvroSchema(path=path, problem=f"the schema is nested more than {MAX_DEPTH} levels deep")


class _Parser:
    """One pass over the JSON. What may need a later definition, names and composite defaults, is checked at the end."""

    __slots__ = ("_defaults", "_forward", "_names", "_open")

    def __init__(self) -> None:
        self._names: dict[str, AvroNamed] = {}
        self._open: set[str] = set()
        self._forward: list[tuple[str, str]] = []
        self._defaults: list[tuple[str, AvroType, object, frozenset[str]]] = []

    def type(self, node: object, namespace: str, path: str, depth: int) -> AvroType:
        if isinstance(node, str):
            return _PRIMITIVES.get(node) or self._reference(node, namespace, path)
        if depth > MAX_DEPTH:
            raise _too_deep(path)
        if isinstance(node, dict):
            name = text_of(node, "type", path)
            if name in _PRIMITIVES:
                props = schema_props(node)
                return AvroPrimitive(AvroKind(name), props) if props else _PRIMITIVES[name]
            build = _BUILDERS.get(name)
            return build(self, node, namespace, path, depth + 1) if build else self._reference(name, namespace, path)
        if isinstance(node, list):
            return self._union(node, namespace, path, depth + 1)
        problem = f"a schema is an object, an array or a name, not {shown(node)}"
        raise InvalidAvroSchema(path=path or "/", problem=problem)

    def finish(self, root: AvroType) -> AvroSchema:
        for path, name in self._forward:
            if name not in self._names:
                raise InvalidAvroSchema(path=path or "/", problem=f"no type is named {shown(name)}")
        for path, node, default, unfinished in self._defaults:
            if not fits(default, node, self._names, unfinished):
                problem = f"the default {shown(default)} does not fit the type {node.branch_name}"
                raise InvalidAvroSchema(path=f"{path}/default", problem=problem)
        return AvroSchema(self._names[root.name] if isinstance(root, AvroReference) else root, self._names)

    def _reference(self, name: str, namespace: str, path: str) -> AvroReference:
        """A name in the namespace around it; failing that, a name already defined in the null namespace, as in Java.

        Types may be used before they are defined (new in Java 1.12), so an unknown name waits for the end.
        """
        full = f"{namespace}.{name}" if namespace and "." not in name else name
        if full in self._names or full in self._open:
            return AvroReference(full)
        if name in self._names:
            return AvroReference(name)
        self._forward.append((path, full))
        return AvroReference(full)

    def _define(self, node: AvroNamed, path: str) -> AvroReference:
        """Java 1.12 lets a definition be repeated word for word (aliases aside); the first one stands for all."""
        known = self._names.setdefault(node.name, node)
        if (known is not node and _without_aliases(known) != _without_aliases(node)) or node.name in self._open:
            raise InvalidAvroSchema(path=f"{path}/name", problem=f"{node.name} is defined twice, differently")
        return AvroReference(node.name)

    def _record(self, node: dict[str, object], namespace: str, path: str, depth: int) -> AvroReference:
        inner, full = self._full_name(node, namespace, path)
        if full in self._open:
            raise InvalidAvroSchema(path=f"{path}/name", problem=f"{full} is defined inside itself")
        self._open.add(full)
        fields: dict[str, AvroField] = {}
        for position, item in enumerate(array_of(node, "fields", path)):
            field = self._field(item, inner, f"{path}/fields/{position}", depth)
            if field.name in fields:
                problem = f"the record has two fields named {field.name}"
                raise InvalidAvroSchema(path=f"{path}/fields/{position}/name", problem=problem)
            fields[field.name] = field
        self._open.remove(full)
        aliases = self._aliases(node, inner, path)
        is_error = node["type"] == "error"
        return self._define(AvroRecord(full, tuple(fields.values()), aliases, is_error, schema_props(node)), path)

    def _field(self, node: object, namespace: str, path: str, depth: int) -> AvroField:
        if not isinstance(node, dict):
            raise InvalidAvroSchema(path=path, problem=f"a field is an object, not {shown(node)}")
        name = text_of(node, "name", path)
        if not is_name(name):
            raise InvalidAvroSchema(path=f"{path}/name", problem=f"{shown(name)} is not a valid name")
        if "type" not in node:
            raise InvalidAvroSchema(path=path, problem="the field has no type")
        node_type = self.type(node["type"], namespace, f"{path}/type", depth)
        # Most fields have nothing else; without this, checking a record of such fields takes a fifth longer.
        if len(node) == 2:
            return AvroField(name, node_type)
        aliases = tuple(aliases_of(node, path))
        check_order(node, path)
        props = field_props(node)
        if "default" not in node:
            return AvroField(name, node_type, aliases=aliases, props=props)
        default = node["default"]
        number = number_in_text(default, node_type)
        if number is not None:
            default = number
        self._defaults.append((path, node_type, default, frozenset(self._open)))
        return AvroField(name, node_type, True, cast("JsonValue", default), aliases, props)

    def _enum(self, node: dict[str, object], namespace: str, path: str, depth: int) -> AvroReference:
        inner, full = self._full_name(node, namespace, path)
        symbols: dict[str, None] = {}
        for position, symbol in enumerate(array_of(node, "symbols", path)):
            if not isinstance(symbol, str) or not is_name(symbol):
                problem = f"{shown(symbol)} is not a valid symbol"
                raise InvalidAvroSchema(path=f"{path}/symbols/{position}", problem=problem)
            if symbol in symbols:
                problem = f"the enum has the symbol {symbol} twice"
                raise InvalidAvroSchema(path=f"{path}/symbols/{position}", problem=problem)
            symbols[symbol] = None
        default = node.get("default")
        # Stricter than Java, which drops a default that is no text and then refuses unknown symbols when reading.
        if default is not None and (not isinstance(default, str) or default not in symbols):
            problem = f"the default {shown(default)} is not one of the symbols"
            raise InvalidAvroSchema(path=f"{path}/default", problem=problem)
        aliases = self._aliases(node, inner, path)
        props = schema_props(node)
        props.pop("default", None)
        return self._define(AvroEnum(full, tuple(symbols), default, aliases, props), path)

    def _fixed(self, node: dict[str, object], namespace: str, path: str, depth: int) -> AvroReference:
        inner, full = self._full_name(node, namespace, path)
        size = node.get("size")
        if type(size) is not int or not 0 <= size <= MAX_FIXED_SIZE:
            problem = f"a fixed needs a size from 0 to {MAX_FIXED_SIZE}"
            raise InvalidAvroSchema(path=f"{path}/size", problem=problem)
        return self._define(AvroFixed(full, size, self._aliases(node, inner, path), schema_props(node)), path)

    def _array(self, node: dict[str, object], namespace: str, path: str, depth: int) -> AvroArray:
        return AvroArray(self._inner(node, "items", namespace, path, depth), schema_props(node))

    def _map(self, node: dict[str, object], namespace: str, path: str, depth: int) -> AvroMap:
        return AvroMap(self._inner(node, "values", namespace, path, depth), schema_props(node))

    def _inner(self, node: dict[str, object], key: str, namespace: str, path: str, depth: int) -> AvroType:
        if key not in node:
            raise InvalidAvroSchema(path=path or "/", problem=f"the {node['type']} has no {key}")
        return self.type(node[key], namespace, f"{path}/{key}", depth)

    def _union(self, nodes: list[object], namespace: str, path: str, depth: int) -> AvroUnion:
        branches: dict[str, AvroType] = {}
        for position, node in enumerate(nodes):
            branch = self.type(node, namespace, f"{path}/{position}", depth)
            if isinstance(branch, AvroUnion):
                raise InvalidAvroSchema(path=f"{path}/{position}", problem="a union is directly inside a union")
            if branch.branch_name in branches:
                problem = f"the union has two branches of type {branch.branch_name}"
                raise InvalidAvroSchema(path=f"{path}/{position}", problem=problem)
            branches[branch.branch_name] = branch
        return AvroUnion(tuple(branches.values()))

    def _full_name(self, node: dict[str, object], namespace: str, path: str) -> tuple[str, str]:
        own = node.get("namespace")
        # Stricter than Java, which takes a namespace that is no text for none at all; null is common and harmless.
        if own is not None and not isinstance(own, str):
            raise InvalidAvroSchema(path=f"{path}/namespace", problem=f"a namespace is text, not {shown(own)}")
        return full_name_of(text_of(node, "name", path), namespace if own is None else own, path)

    def _aliases(self, node: dict[str, object], namespace: str, path: str) -> tuple[str, ...]:
        return tuple([alias_of(alias, namespace, f"{path}/aliases") for alias in aliases_of(node, path)])


def _without_aliases(node: AvroNamed) -> AvroNamed:
    if isinstance(node, AvroRecord):
        fields = tuple([replace(field, aliases=()) for field in node.fields])
        return replace(node, aliases=(), fields=fields)
    return replace(node, aliases=())


_BUILDERS: dict[str, Callable[[_Parser, dict[str, object], str, str, int], AvroType]] = {
    "record": _Parser._record,
    "error": _Parser._record,
    "enum": _Parser._enum,
    "fixed": _Parser._fixed,
    "array": _Parser._array,
    "map": _Parser._map,
}
