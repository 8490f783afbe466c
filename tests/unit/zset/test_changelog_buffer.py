"""The buffer of references: allocated once, full when full, nothing lost."""

import numpy as np
import pytest

from laminae.zset.library.buffer import ChangelogBuffer, ChangelogRef
from laminae.zset.operation import CdcOperation

INSERT, BEFORE, AFTER = CdcOperation.INSERT, CdcOperation.UPDATE_BEFORE, CdcOperation.UPDATE_AFTER


def inserted(row, batch=0):
    return ChangelogRef(batch, row, 1, INSERT)


def test_changelog_buffer_zero_alloc():
    buffer = ChangelogBuffer.with_capacity(1024)
    memory = buffer._columns.weight.ctypes.data
    for i in range(100):
        assert buffer.push(ChangelogRef(batch_offset=i, row_index=0, weight=1, operation=INSERT))
    assert len(buffer) == 100
    drained = list(buffer.drain())
    assert len(drained) == 100
    assert drained[99] == inserted(0, batch=99)
    assert buffer.is_empty()
    assert buffer.push_many(0, np.arange(1024), 1) == 1024
    assert buffer._columns.weight.ctypes.data == memory


def test_push_is_false_when_full_and_the_reference_can_be_pushed_after_a_drain():
    buffer = ChangelogBuffer.with_capacity(1)
    assert buffer.push(inserted(1))
    assert not buffer.push(inserted(2))
    assert buffer.drain() == [inserted(1)]
    assert buffer.push(inserted(2))
    assert buffer.drain() == [inserted(2)]


def test_push_many_takes_from_the_front_and_says_how_many():
    buffer = ChangelogBuffer.with_capacity(3)
    assert buffer.push_many(7, [10, 11, 12, 13], [1, -1, 2, 1]) == 3
    assert buffer.push_many(7, [13], [1]) == 0
    assert [(ref.row_index, ref.weight, ref.operation.value) for ref in buffer.drain()] == [
        (10, 1, "+I"),
        (11, -1, "-D"),
        (12, 2, "+I"),
    ]


def test_push_many_takes_references_too_and_leaves_the_rest_in_the_iterator():
    buffer, refs = ChangelogBuffer.with_capacity(2), iter([inserted(1), inserted(2), inserted(3)])
    assert buffer.push_many(refs) == 2
    assert next(refs) == inserted(3)


def test_operations_of_many_are_kept_by_their_codes():
    buffer = ChangelogBuffer.with_capacity(2)
    buffer.push_many(0, [4, 5], [-1, 1], [BEFORE.code, AFTER.code])
    assert [ref.operation for ref in buffer.drain()] == [BEFORE, AFTER]


def test_a_retraction_is_pushed_whole_or_not_at_all():
    buffer = ChangelogBuffer.with_capacity(3)
    assert buffer.push_retraction(0, old_row=1, new_row=2)
    assert not buffer.push_retraction(0, old_row=3, new_row=4)
    assert buffer.drain() == [ChangelogRef(0, 1, -1, BEFORE), ChangelogRef(0, 2, 1, AFTER)]


def test_drained_columns_are_not_touched_by_later_pushes():
    buffer = ChangelogBuffer.with_capacity(2)
    buffer.push_many(0, [1, 2], 1)
    columns = buffer.drain_columns()
    buffer.push_many(0, [8, 9], -1)
    assert columns.row_index.tolist() == [1, 2]
    assert columns.weight.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("rows", "weights", "codes"),
    [
        ([1, 2], [1, -1], [1, 1]),
        ([1, 2], [1, 1], [1, 3]),
        ([1, 2], [1, 1], [1, 0]),
        ([1, 2**32], [1, 1], None),
        ([1, -1], [1, 1], None),
        ([1, 2], [1, 1.5], None),
    ],
)
def test_nothing_is_taken_when_one_of_many_is_refused(rows, weights, codes):
    buffer = ChangelogBuffer.with_capacity(4)
    with pytest.raises(ValueError):
        buffer.push_many(0, rows, weights, codes)
    assert buffer.is_empty()


def test_weight_zero_goes_with_every_operation():
    buffer = ChangelogBuffer.with_capacity(4)
    assert buffer.push_many(0, [0, 1, 2, 3], 0, [operation.code for operation in CdcOperation]) == 4


def test_a_reference_knows_the_bounds_of_its_numbers():
    with pytest.raises(ValueError, match="32-bit"):
        ChangelogRef(-1, 0, 1, INSERT)
    with pytest.raises(ValueError, match="different signs"):
        ChangelogRef(0, 0, 1, BEFORE)
    with pytest.raises(ValueError, match="at least 0"):
        ChangelogBuffer.with_capacity(-1)
