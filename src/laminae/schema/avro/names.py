"""Avro names: what is a valid one, and how a name and the namespace around it make a full name.

Facts of Apache Avro for Java 1.12. The null namespace is the empty text. Nothing here knows types.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from laminae.errors import InvalidAvroSchema
from laminae.schema.avro.nodes import AvroKind

PRIMITIVE_NAMES = frozenset(map(str, AvroKind))

_ascii_name = re.compile(r"[A-Za-z_][A-Za-z0-9_]*").fullmatch
_LAST_BMP_CHARACTER = "\uffff"


class FullName(NamedTuple):
    namespace: str
    full: str


def is_name(text: str) -> bool:
    """Whether `text` is one name without dots. Java 1.12 takes every letter of the basic plane, not only ASCII."""
    if _ascii_name(text):
        return True
    return bool(text) and not text[0].isdecimal() and all(map(_is_name_character, text))


def _is_name_character(character: str) -> bool:
    return character <= _LAST_BMP_CHARACTER and (character.isalpha() or character.isdecimal() or character == "_")


def full_name_of(name: str, namespace: str, path: str) -> FullName:
    """The full name of a definition: dots in the name itself win over the namespace around it."""
    full = qualified(name, namespace)
    if not all(map(is_name, full.split("."))):
        raise InvalidAvroSchema(path=f"{path}/name", problem=f"{shown(full)} is not a valid name")
    if full in PRIMITIVE_NAMES:
        raise InvalidAvroSchema(path=f"{path}/name", problem=f"{full} is the name of a primitive type")
    return FullName(full.rpartition(".")[0], full)


def alias_of(alias: str, namespace: str, path: str) -> str:
    """The full name an alias stands for.

    An alias into the null namespace from inside another one keeps its leading dot and so matches nothing: that is
    what Java compares, and a registry would refuse what we allowed.
    """
    if not is_name(alias.rpartition(".")[2]):
        raise InvalidAvroSchema(path=path, problem=f"{shown(alias)} is not a valid alias")
    full = qualified(alias, namespace)
    return f".{full}" if namespace and "." not in full else full


def qualified(name: str, namespace: str) -> str:
    if "." in name:
        return name.removeprefix(".") if name.rfind(".") == 0 else name
    return f"{namespace}.{name}" if namespace else name


def simple_name(full: str) -> str:
    return full.rpartition(".")[2]


_WORDS: dict[type, str] = {
    type(None): "null",
    bool: "true or false",
    int: "a number",
    float: "a number",
    dict: "an object",
    list: "an array",
}
_SHOWN_CHARACTERS = 60


def shown(value: object) -> str:
    """A value of unknown size and depth in a few words: printing it whole could itself fail or flood the log."""
    if isinstance(value, str):
        return repr(value if len(value) <= _SHOWN_CHARACTERS else value[:_SHOWN_CHARACTERS] + "...")
    return _WORDS.get(type(value), f"a Python {type(value).__name__}")
