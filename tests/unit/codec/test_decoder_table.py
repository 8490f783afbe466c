"""What a decoder table says of itself, without a record."""

from __future__ import annotations

import pyarrow as pa

from laminae.codec.decoders import Decoder, DecoderTable, Judged

SCHEMA = pa.schema([("id", pa.int64())])


def test_boundaries_are_where_versions_begin_for_records_and_for_joined_epochs() -> None:
    decoders = (Decoder(1, SCHEMA, 0), Decoder(2, SCHEMA, None), Decoder(3, SCHEMA, 7))
    table = DecoderTable(decoders, SCHEMA, judged=(Judged(4, 1, SCHEMA),))
    assert table.boundaries == {0, 4, 7}
