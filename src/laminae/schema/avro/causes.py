"""Why a pair does not hold: every cause under it once, in the order of the reader's schema, with its two paths.

Only what `Resolution` refuted is walked. As in Java a union is one cause; its nearest branch is named in the text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.schema.avro.incompatibility import KINDS, Incompatibility
from laminae.schema.avro.incompatibility import IncompatibilityKind as Kind
from laminae.schema.avro.nodes import AvroPrimitive
from laminae.schema.avro.resolution import Key, Resolution, key_of
from laminae.schema.avro.rules import Fault, Need, Schemas, demands, described

if TYPE_CHECKING:
    from collections.abc import Iterator

    from laminae.schema.avro.nodes import AvroSchema
    from laminae.schema.avro.rules import Demand, Pair

# A branch that fails like this is another type altogether, so its details would not help.
_UNRELATED = (Kind.NAME_MISMATCH, Kind.TYPE_MISMATCH)


def find_incompatibilities(reader: AvroSchema, writer: AvroSchema) -> tuple[Incompatibility, ...]:
    """Everything that keeps `reader` from reading data of `writer`; empty if it reads all of it."""
    resolution = Resolution(Schemas(reader, writer))
    root = (reader.root, writer.root)
    if resolution.holds(root):
        return ()
    causes = [
        _with_nearest(fault, need, path, field_path, resolution)
        for fault, need, path, field_path in _walk(root, resolution)
    ]
    return tuple(causes)


def _walk(root: Pair, resolution: Resolution) -> Iterator[tuple[Fault, Need | None, str, str]]:
    seen: set[Key] = set()
    open_pairs: dict[Key, tuple[Iterator[Demand], str, str]] = {}

    def enter(pair: Pair, path: str, field_path: str) -> None:
        key = key_of(pair)
        if key not in seen:
            # Primitive nodes are shared by all their uses, so such a pair says nothing about where it was seen.
            if not isinstance(pair[0], AvroPrimitive) and not isinstance(pair[1], AvroPrimitive):
                seen.add(key)
            open_pairs[key] = demands(*pair, resolution.schemas), path, field_path

    enter(root, "", "")
    while open_pairs:
        rest, path, field_path = next(reversed(open_pairs.values()))
        demand = next(rest, None)
        if demand is None:
            open_pairs.popitem()
            continue
        here = path + demand.path
        field_here = ".".join(filter(None, (field_path, demand.field_path)))
        if isinstance(demand, Fault):
            yield demand, None, here, field_here
        elif resolution.holds_any(demand.options):
            continue
        elif demand.missing is None:
            enter(demand.options[0], here, field_here)
        elif not Resolution(resolution.schemas, open_pairs).holds_any(demand.options):
            # Were this not so without them, it would be a consequence of the pairs being explained, not one more cause.
            yield demand.missing, demand, here, field_here


def _with_nearest(
    fault: Fault, need: Need | None, path: str, field_path: str, resolution: Resolution
) -> Incompatibility:
    text = _text_of(fault)
    for option in need.options if need else ():
        first = next(demands(*option, resolution.schemas), None)
        if not isinstance(first, Fault) or first.kind not in _UNRELATED:
            inner, _, _, inner_field = next(_walk(option, resolution))
            text = f"{text}; nearest, {inner_field or option[0].branch_name}: {_text_of(inner)}"
            break
    return Incompatibility(fault.kind, path or "/", field_path, text)


def _text_of(fault: Fault) -> str:
    return KINDS[fault.kind].text.format(reader=described(fault.reader), writer=described(fault.writer)) + fault.note
