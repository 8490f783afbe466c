"""Every row of the handling table, by name, under both rule sets and all seven modes.

The expectations are written here and never imported from the source.
"""

import pyarrow as pa
import pytest

from laminae import evaluate_evolution
from laminae.errors import InvalidOption
from laminae.schema.compatibility import Compatible, Incompatible, RequiresConfirmation
from tests.support.build import col, schema

KEPT = col("k", "int", id=9)

# row of the table: (old, new)
CASES = {
    "add_nullable": (schema(KEPT), schema(KEPT, col("a", id=1))),
    "add_with_default": (schema(KEPT), schema(KEPT, col("a", "int", id=1, null=False, default="1"))),
    "add_required": (schema(KEPT), schema(KEPT, col("a", "int", id=1, null=False))),
    "drop_nullable": (schema(KEPT, col("a", id=1)), schema(KEPT)),
    "drop_with_default": (schema(KEPT, col("a", "int", id=1, null=False, default="1")), schema(KEPT)),
    "drop_required": (schema(KEPT, col("a", id=1, null=False)), schema(KEPT)),
    "rename_with_identity": (schema(KEPT, col("a", id=1)), schema(KEPT, col("b", id=1))),
    "rename_without_identity": (schema(KEPT, col("a")), schema(KEPT, col("b"))),
    "widen": (schema(KEPT, col("a", "int")), schema(KEPT, col("a", "bigint"))),
    "widen_physical_utf8": (schema(KEPT, col("a", "string")), schema(KEPT, col("a", "large_string"))),
    "widen_physical_binary": (schema(KEPT, col("a", "binary")), schema(KEPT, col("a", "large_binary"))),
    "narrow": (schema(KEPT, col("a", "bigint")), schema(KEPT, col("a", "int"))),
    "unrelated_type": (schema(KEPT, col("a", "string")), schema(KEPT, col("a", "int"))),
    "null_to_not_null": (schema(KEPT, col("a")), schema(KEPT, col("a", null=False))),
    "not_null_to_null": (schema(KEPT, col("a", null=False)), schema(KEPT, col("a"))),
    "default_changed": (schema(KEPT, col("a", "int", default="1")), schema(KEPT, col("a", "int", default="2"))),
    "reorder": (schema(KEPT, col("a")), schema(col("a"), KEPT)),
}

#                            BACKWARD   FORWARD    FULL       NONE
EXPECTED = {
    ("seed", "add_nullable"): ("ok", "ok", "ok", "ok"),
    ("seed", "add_with_default"): ("ok", "ok", "ok", "ok"),
    ("seed", "add_required"): ("no", "ok", "no", "confirm"),
    ("seed", "drop_nullable"): ("no", "ok", "no", "confirm"),
    ("seed", "drop_with_default"): ("no", "ok", "no", "confirm"),
    ("seed", "drop_required"): ("no", "ok", "no", "confirm"),
    ("seed", "rename_with_identity"): ("ok", "ok", "ok", "ok"),
    ("seed", "rename_without_identity"): ("no", "no", "no", "confirm"),
    ("seed", "widen"): ("ok", "no", "no", "ok"),
    ("seed", "widen_physical_utf8"): ("ok", "ok", "ok", "ok"),
    ("seed", "widen_physical_binary"): ("ok", "ok", "ok", "ok"),
    ("seed", "narrow"): ("no", "no", "no", "no"),
    ("seed", "unrelated_type"): ("no", "no", "no", "confirm"),
    ("seed", "null_to_not_null"): ("no", "ok", "no", "confirm"),
    ("seed", "not_null_to_null"): ("ok", "no", "no", "ok"),
    ("seed", "default_changed"): ("ok", "ok", "ok", "ok"),
    ("seed", "reorder"): ("ok", "ok", "ok", "ok"),
    ("confluent", "add_nullable"): ("ok", "ok", "ok", "ok"),
    ("confluent", "add_with_default"): ("ok", "ok", "ok", "ok"),
    ("confluent", "add_required"): ("no", "ok", "no", "confirm"),
    ("confluent", "drop_nullable"): ("ok", "ok", "ok", "confirm"),
    ("confluent", "drop_with_default"): ("ok", "ok", "ok", "confirm"),
    ("confluent", "drop_required"): ("ok", "no", "no", "confirm"),
    ("confluent", "rename_with_identity"): ("ok", "ok", "ok", "ok"),
    ("confluent", "rename_without_identity"): ("no", "no", "no", "confirm"),
    ("confluent", "widen"): ("ok", "no", "no", "ok"),
    ("confluent", "widen_physical_utf8"): ("ok", "ok", "ok", "ok"),
    ("confluent", "widen_physical_binary"): ("ok", "ok", "ok", "ok"),
    ("confluent", "narrow"): ("no", "no", "no", "no"),
    ("confluent", "unrelated_type"): ("no", "no", "no", "confirm"),
    ("confluent", "null_to_not_null"): ("no", "ok", "no", "confirm"),
    ("confluent", "not_null_to_null"): ("ok", "no", "no", "ok"),
    ("confluent", "default_changed"): ("ok", "ok", "ok", "ok"),
    ("confluent", "reorder"): ("ok", "ok", "ok", "ok"),
}
VERDICTS = {"ok": Compatible, "confirm": RequiresConfirmation, "no": Incompatible}
COLUMNS = {
    "BACKWARD": 0, "FORWARD": 1, "FULL": 2, "NONE": 3,
    "BACKWARD_TRANSITIVE": 0, "FORWARD_TRANSITIVE": 1, "FULL_TRANSITIVE": 2,
}  # fmt: skip


@pytest.mark.parametrize("mode", COLUMNS)
@pytest.mark.parametrize(("rules", "case"), EXPECTED, ids=lambda part: part)
def test_handling_table(rules, case, mode):
    old, new = CASES[case]
    verdict = evaluate_evolution(new, [old], mode, rules)
    expected = EXPECTED[rules, case][COLUMNS[mode]]
    assert type(verdict) is VERDICTS[expected]
    assert verdict.is_compatible == (expected == "ok")
    assert bool(verdict.reasons) == (expected != "ok")


def test_every_reason_names_path_rule_and_remedy():
    old = schema(col("a", "bigint", id=1), col("b", id=2), col("c", id=3))
    new = schema(col("a", "int", id=1), col("c", id=3, null=False))
    verdict = evaluate_evolution(new, [old], "FULL")
    assert [(reason.path, reason.rule) for reason in verdict.reasons] == [
        ("b", "drop, nullable or with default"),
        ("a", "narrow type"),
        ("c", "NULL -> NOT NULL"),
    ]
    assert all(reason.remedy for reason in verdict.reasons)
    assert len(verdict.changes) == 3


def test_a_rejection_says_what_the_other_rules_would_allow():
    old, new = CASES["drop_nullable"]
    (reason,) = evaluate_evolution(new, [old], "BACKWARD", "seed").reasons
    assert reason.other_rules == "compatibility_rules = 'confluent' would allow it."
    (reason,) = evaluate_evolution(*CASES["narrow"][::-1][:1], [CASES["narrow"][0]], "BACKWARD").reasons
    assert reason.other_rules is None


def test_a_rename_without_identity_is_one_reason_with_a_note():
    old, new = CASES["rename_without_identity"]
    (reason,) = evaluate_evolution(new, [old], "FORWARD").reasons
    assert reason.text.startswith("possible rename to b")


def test_a_nested_change_is_judged_by_the_same_rules():
    old = schema(col("m", pa.struct([col("x", "bigint")])))
    new = schema(col("m", pa.struct([col("x", "int")])))
    (reason,) = evaluate_evolution(new, [old], "NONE").reasons
    assert reason.path == "m.x"


def test_transitive_judges_against_every_version_and_names_it():
    v1 = schema(KEPT, col("a", "int", id=1, null=False))
    v2 = schema(KEPT)
    v3 = schema(KEPT, col("b", id=2))
    new = schema(KEPT, col("b", id=2), col("a", "int", id=1))
    assert evaluate_evolution(new, [v1, v2, v3], "FORWARD").is_compatible
    verdict = evaluate_evolution(new, [v1, v2, v3], "FORWARD_TRANSITIVE")
    assert isinstance(verdict, Incompatible)
    assert [(reason.path, reason.version) for reason in verdict.reasons] == [("a", 1)]


def test_reverting_a_widening_is_compatible_with_the_first_version_but_not_with_the_last():
    v1, v2 = schema(col("a", "int", id=1)), schema(col("a", "bigint", id=1))
    assert not evaluate_evolution(v1, [v1, v2], "BACKWARD").is_compatible
    assert not evaluate_evolution(v1, [v1, v2], "BACKWARD_TRANSITIVE").is_compatible


def test_an_empty_history_accepts_anything():
    assert evaluate_evolution(schema(col("a")), [], "FULL_TRANSITIVE") == Compatible()


def test_mode_and_rules_are_read_in_any_case():
    assert evaluate_evolution(schema(), [schema()], "full_transitive", "SEED").is_compatible


@pytest.mark.parametrize(("mode", "rules"), [("SIDEWAYS", "seed"), ("FULL", "strict")])
def test_unknown_mode_or_rules_are_refused_with_the_list(mode, rules):
    with pytest.raises(InvalidOption, match="Use one of"):
        evaluate_evolution(schema(), [schema()], mode, rules)


SWAPPED = (
    schema(col("a", "int", id=1), col("b", "string", id=2)),
    schema(col("b", "int", id=1), col("a", "string", id=2)),
)


@pytest.mark.parametrize("mode", COLUMNS)
def test_a_swap_by_identity_is_compatible_under_every_mode(mode):
    assert evaluate_evolution(SWAPPED[1], [SWAPPED[0]], mode).is_compatible


def test_a_rename_and_widen_is_judged_by_its_widening():
    old, new = schema(col("a", "int", id=1)), schema(col("b", "bigint", id=1))
    assert evaluate_evolution(new, [old], "BACKWARD").is_compatible
    (reason,) = evaluate_evolution(new, [old], "FORWARD").reasons
    assert (reason.path, reason.rule) == ("b", "widen type")


def test_a_column_dropped_and_added_again_is_judged_as_both():
    old, new = schema(KEPT, col("a", "int", id=1)), schema(KEPT, col("a", "int", id=2))
    (reason,) = evaluate_evolution(new, [old], "BACKWARD").reasons
    assert reason.rule == "drop, nullable or with default"
    assert evaluate_evolution(new, [old], "FORWARD").is_compatible


def test_a_nested_rename_inside_list_and_map_is_compatible():
    def inside(name):
        element = pa.field("element", pa.struct([col(name, "int", id=4)]))
        return schema(col("m", pa.map_(pa.string(), pa.field("value", pa.list_(element))), id=1))

    assert evaluate_evolution(inside("new"), [inside("old")], "FULL").is_compatible
