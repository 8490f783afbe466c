"""Columns of many versions side by side: what grows with the changes, and which versions read a column how."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from laminae.codec.decoders import Decoder, DecoderTable, Judged
from laminae.engine.epochs.version_runs import (
    are_judged_together,
    can_share,
    checked_columns,
    joined_runs,
    shared_columns,
)
from laminae.schema.column import DEFAULT, ID

LONG = pa.int64()


def column(number: int, name: str, kind: pa.DataType = LONG, nullable: bool = True, default: str | None = None):
    metadata = {ID: str(number).encode()} | ({} if default is None else {DEFAULT: default.encode()})
    return pa.field(name, kind, nullable, metadata)


A, B, C = (column(number, name) for number, name in enumerate("abc", 1))


def table(*versions: list[pa.Field], aliases: dict[int, tuple[tuple[str, str], ...]] | None = None) -> DecoderTable:
    decoders = [
        Decoder(number, pa.schema(fields), since=number * 10, aliases=(aliases or {}).get(number, ()))
        for number, fields in enumerate(versions, 1)
    ]
    return DecoderTable(tuple(decoders), current=decoders[-1].schema)


def told(found: DecoderTable):
    return {
        shared.id: ([(held.node.name, held.versions) for held in shared.held], shared.absent)
        for shared in shared_columns(found)
    }


def test_a_column_that_did_not_change_is_there_once():
    assert told(table([A], [A, B], [C, A, B])) == {
        1: ([("a", ((1, 3),))], ()),
        2: ([("b", ((2, 3),))], ((1, 1),)),
        3: ([("c", ((3, 3),))], ((1, 2),)),
    }


def test_a_renamed_a_wider_and_a_dropped_column_have_the_versions_that_had_them():
    wider, renamed = column(1, "a", pa.float64()), column(2, "z")
    assert told(table([A, B], [wider, B], [wider, renamed], [wider])) == {
        1: ([("a", ((1, 1),)), ("a", ((2, 4),))], ()),
        2: ([("b", ((1, 2),)), ("z", ((3, 3),))], ((4, 4),)),
    }


def test_a_name_that_is_added_again_is_another_column():
    again = column(9, "a")
    assert told(table([A, B], [B], [B, again]))[9] == ([("a", ((3, 3),))], ((1, 2),))


def test_columns_that_come_and_go_grow_with_the_changes_and_not_with_the_versions():
    many = [[A, *(column(10 + place, f"c{place}") for place in range(number))] for number in range(100)]
    found = shared_columns(table(*many))
    assert sum(len(shared.held) for shared in found) == 100


def test_former_names_are_tried_in_the_order_of_every_version():
    renamed = [column(1, name) for name in ("p", "q", "r", "s")]
    aliases = {2: (("p", "q"),), 3: (("p", "r"), ("q", "r")), 4: (("p", "s"), ("q", "s"), ("r", "s"))}
    (shared,) = shared_columns(table(*([field] for field in renamed), aliases=aliases))
    assert [(former.name, former.versions) for former in shared.formers] == [
        ("p", ((2, 4),)),
        ("q", ((3, 4),)),
        ("r", ((4, 4),)),
    ]


def test_a_former_name_that_is_a_column_is_none():
    (shared, _) = shared_columns(table([A], [column(1, "z"), column(2, "a")], aliases={2: (("a", "z"),)}))
    assert shared.formers == ()


def test_runs_are_joined_over_versions_that_have_no_records():
    decoders = tuple(Decoder(number, pa.schema([A]), since=None) for number in (1, 4, 9, 12))
    found = DecoderTable(decoders, current=decoders[0].schema)
    assert joined_runs([(1, 1), (4, 9)], found) == ((1, 9),)
    assert joined_runs([(1, 1), (12, 12)], found) == ((1, 1), (12, 12))


def test_each_epoch_asks_for_its_own_columns():
    strict = column(2, "b", nullable=False)
    schemas = [pa.schema(fields) for fields in ([A], [A, strict], [A, B], [A, C])]
    judged = tuple(Judged(10 * number, number, schema) for number, schema in enumerate(schemas, 1))
    found = DecoderTable((Decoder(1, schemas[0], since=0),), current=schemas[-1], judged=judged)
    assert [(checked.node.name, checked.present, checked.strict) for checked in checked_columns(found)] == [
        ("a", ((1, 4),), ()),
        ("c", ((4, 4),), ()),
        ("b", ((2, 3),), ((2, 2),)),
    ]


@pytest.mark.parametrize(
    ("kind", "is_one"),
    [
        (pa.int64(), True),
        (pa.float64(), True),
        (pa.string(), False),
        (pa.int8(), False),
        (pa.struct([pa.field("x", pa.int8())]), False),
    ],
)
def test_epochs_are_judged_together_while_values_keep_their_types(kind, is_one):
    one = pa.schema([column(1, "a", pa.int16())])
    assert are_judged_together(one, pa.schema([column(1, "z", kind, nullable=False), B])) == is_one
    assert are_judged_together(one, pa.schema([column(2, "a", kind)]))


def test_instants_of_a_finer_unit_are_judged_apart():
    """One that lies beyond its range is refused by the later epochs alone."""
    one, other = (pa.schema([column(1, "a", pa.timestamp(unit, "UTC"))]) for unit in ("us", "ns"))
    assert not are_judged_together(one, other)


def test_a_decoder_is_shared_unless_a_column_has_no_id_or_the_name_of_the_stamp():
    both = table([A], [A, B])
    assert can_share(both)
    assert not can_share(table([A]))
    assert not can_share(table([A], [A, pa.field("b", LONG)]))
    assert can_share(replace(both, version_field="v"))
    assert not can_share(replace(both, version_field="B"))
