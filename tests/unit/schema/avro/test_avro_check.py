"""`check_avro`: modes, history and the reasons of a refusal."""

import pytest

from laminae.errors import InvalidAvroSchema, InvalidOption
from laminae.schema.avro import KINDS, IncompatibilityKind, check_avro
from laminae.schema.compatibility import CompatibilityMode, Compatible, Incompatible


def order(**fields):
    listed = [{"name": name, **spec} for name, spec in fields.items()]
    return {"type": "record", "name": "Order", "namespace": "shop", "fields": listed}


ID = {"type": "long"}
NOTE = {"type": ["null", "string"], "default": None}
REQUIRED = {"type": "string"}

# What was done to the record, and in which directions the two versions read each other.
CHANGES = {
    "nothing": (order(id=ID), order(id=ID), True, True),
    "added with default": (order(id=ID, note=NOTE), order(id=ID), True, True),
    "added without default": (order(id=ID, note=REQUIRED), order(id=ID), False, True),
    "dropped with default": (order(id=ID), order(id=ID, note=NOTE), True, True),
    "dropped without default": (order(id=ID), order(id=ID, note=REQUIRED), True, False),
    "widened": (order(id=ID), order(id={"type": "int"}), True, False),
    "narrowed": (order(id={"type": "int"}), order(id=ID), False, True),
    "made nullable": (order(id={"type": ["null", "long"]}), order(id=ID), True, False),
    "made required": (order(id=ID), order(id={"type": ["null", "long"]}), False, True),
    "string to bytes": (order(id={"type": "bytes"}), order(id={"type": "string"}), True, True),
    "another type": (order(id={"type": "boolean"}), order(id=ID), False, False),
    "renamed with alias": (order(key={**ID, "aliases": ["id"]}), order(id=ID), True, False),
}
BY_NAME = pytest.mark.parametrize(("new", "old", "backward", "forward"), CHANGES.values(), ids=CHANGES)


@BY_NAME
def test_backward_asks_whether_the_new_schema_reads_the_old(new, old, backward, forward):
    assert check_avro(new, [old], "BACKWARD").is_compatible is backward


@BY_NAME
def test_forward_asks_whether_the_old_schema_reads_the_new(new, old, backward, forward):
    assert check_avro(new, [old], "FORWARD").is_compatible is forward


@BY_NAME
def test_full_asks_both(new, old, backward, forward):
    assert check_avro(new, [old], "FULL").is_compatible is (backward and forward)


@BY_NAME
def test_none_allows_everything(new, old, backward, forward):
    assert check_avro(new, [old], "NONE") == Compatible()


@pytest.mark.parametrize("mode", list(CompatibilityMode))
def test_first_schema_is_compatible_under_every_mode(mode):
    assert check_avro(order(id=ID), [], mode) == Compatible()


def test_backward_is_the_default_mode():
    assert not check_avro(order(id=ID, note=REQUIRED), [order(id=ID)]).is_compatible
    assert check_avro(order(id=ID), [order(id=ID, note=REQUIRED)]).is_compatible


def test_only_the_latest_version_counts_unless_transitive():
    history = [order(), order(id=ID)]
    assert check_avro(order(id=ID), history, "BACKWARD") == Compatible()
    verdict = check_avro(order(id=ID), history, "BACKWARD_TRANSITIVE")
    assert [(reason.version, reason.path) for reason in verdict.reasons] == [(1, "/fields/0")]


def test_transitive_modes_report_every_version_that_breaks():
    history = [order(id={"type": "boolean"}), order(id=ID), order(id={"type": "string"})]
    verdict = check_avro(order(id=ID), history, "FULL_TRANSITIVE")
    assert [reason.version for reason in verdict.reasons] == [1, 1, 3, 3]


def test_forward_transitive_asks_every_old_version():
    history = [order(id=ID, note=REQUIRED), order(id=ID)]
    assert check_avro(order(id=ID), history, "FORWARD").is_compatible
    assert not check_avro(order(id=ID), history, "FORWARD_TRANSITIVE").is_compatible


def test_reason_carries_path_kind_direction_version_and_remedy():
    verdict = check_avro(order(id=ID, note=REQUIRED), [order(), order(id=ID)])
    assert isinstance(verdict, Incompatible)
    assert verdict.changes == ()
    (reason,) = verdict.reasons
    assert (reason.path, reason.rule, reason.version) == ("/fields/1", "READER_FIELD_MISSING_DEFAULT_VALUE", 2)
    assert reason.text.startswith("note: the new schema cannot read data of version 2: the reader's field note")
    assert reason.remedy == KINDS[IncompatibilityKind.READER_FIELD_MISSING_DEFAULT_VALUE].remedy


def test_full_gives_a_reason_for_each_direction():
    verdict = check_avro(order(id=ID), [order(id={"type": "boolean"})], "FULL")
    assert [reason.text.split(": ")[1] for reason in verdict.reasons] == [
        "the new schema cannot read data of version 1",
        "version 1 cannot read data of the new schema",
    ]


def test_reason_at_the_root_has_no_field():
    (reason,) = check_avro("int", ["string"]).reasons
    assert reason.path == "/"
    assert reason.text.startswith("the new schema cannot read")


def test_dict_list_and_text_mean_the_same():
    assert check_avro('["null", "long"]', ["int"]).is_compatible
    assert check_avro(["null", "long"], ['{"type": "int"}']).is_compatible
    assert not check_avro("int", [["null", "int"]]).is_compatible


def test_mode_is_read_whatever_its_case():
    assert check_avro("int", ["int"], "full_transitive").is_compatible


def test_unknown_mode_is_refused():
    with pytest.raises(InvalidOption, match="SIDEWAYS"):
        check_avro("int", [], "SIDEWAYS")


def test_new_schema_is_validated_under_every_mode_and_without_history():
    for mode in CompatibilityMode:
        with pytest.raises(InvalidAvroSchema):
            check_avro({"type": "array"}, [], mode)


def test_invalid_version_of_the_history_is_named():
    with pytest.raises(InvalidAvroSchema, match=r"at /items: .* \(version 2\)"):
        check_avro("int", ["int", {"type": "array", "items": "Nope"}])


NO_LISTS = {"name": "int", "bytes": b"int", "object": {"type": "int"}, "nothing": None, "iterator": iter(["int"])}


@pytest.mark.parametrize("history", NO_LISTS.values(), ids=NO_LISTS)
def test_a_history_that_is_no_list_is_refused_with_what_was_expected(history):
    with pytest.raises(InvalidOption, match="Give a list of schemas, oldest first") as refused:
        check_avro("int", history)
    assert refused.value.params["option"] == "history"
