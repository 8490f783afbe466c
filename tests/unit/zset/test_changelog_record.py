"""Operations and records: the weight decides, the operation is its name."""

import dataclasses

import pytest

from laminae.zset.operation import CdcOperation
from laminae.zset.record import ChangelogRecord


def test_changelog_record_insert():
    record = ChangelogRecord.insert("hello", 1000)
    assert record.weight == 1
    assert record.is_insert()
    assert record.operation == CdcOperation.INSERT


def test_changelog_record_delete():
    record = ChangelogRecord.delete("goodbye", 2000)
    assert record.weight == -1
    assert record.is_delete()
    assert record.operation == CdcOperation.DELETE


def test_retraction_pair():
    before, after = ChangelogRecord.retraction("old", "new", 3000)
    assert (before.data, before.weight, before.operation) == ("old", -1, CdcOperation.UPDATE_BEFORE)
    assert (after.data, after.weight, after.operation) == ("new", 1, CdcOperation.UPDATE_AFTER)
    assert before.timestamp == after.timestamp == 3000


@pytest.mark.parametrize(
    ("operation", "short", "weight", "change_type"),
    [
        (CdcOperation.INSERT, "+I", 1, "insert"),
        (CdcOperation.DELETE, "-D", -1, "delete"),
        (CdcOperation.UPDATE_BEFORE, "-U", -1, "update_preimage"),
        (CdcOperation.UPDATE_AFTER, "+U", 1, "update_postimage"),
    ],
)
def test_an_operation_has_a_short_form_a_weight_and_sparks_name(operation, short, weight, change_type):
    assert CdcOperation(short) is operation
    assert (operation.weight, operation.change_type) == (weight, change_type)
    assert (operation.is_insert(), operation.is_delete()) == (weight > 0, weight < 0)


@pytest.mark.parametrize(("weight", "operation"), [(3, CdcOperation.INSERT), (-2, CdcOperation.DELETE)])
def test_an_operation_not_given_is_derived_from_the_weight(weight, operation):
    assert ChangelogRecord("row", weight, 0).operation is operation


@pytest.mark.parametrize("weight", [5, -5])
@pytest.mark.parametrize("operation", CdcOperation)
def test_a_weight_and_an_operation_of_different_signs_are_refused(weight, operation):
    if weight * operation.weight > 0:
        assert ChangelogRecord("row", weight, 0, operation).operation is operation
    else:
        with pytest.raises(ValueError, match="different signs"):
            ChangelogRecord("row", weight, 0, operation)


def test_an_operation_cannot_be_changed_afterwards_to_disagree():
    with pytest.raises(dataclasses.FrozenInstanceError):
        ChangelogRecord.insert("row", 0).operation = CdcOperation.DELETE
    with pytest.raises(ValueError, match="different signs"):
        dataclasses.replace(ChangelogRecord.insert("row", 0), weight=-1)


def test_a_record_of_weight_zero_is_neither_insert_nor_delete():
    record = ChangelogRecord("row", 0, 0)
    assert not record.is_insert()
    assert not record.is_delete()


@pytest.mark.parametrize("weight", [2**63, -(2**63) - 1])
def test_a_weight_beyond_64_bits_is_refused(weight):
    with pytest.raises(ValueError, match="64-bit"):
        ChangelogRecord("row", weight, 0)
