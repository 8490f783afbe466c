"""Plans are decided from values alone: no catalog, no clock."""

from datetime import UTC, datetime

import pytest

from laminae.catalog.model import SourceRecord, ViewRecord, WatermarkRecord
from laminae.catalog.updates import AddPending, AddVersion, RecordVerdict
from laminae.engine.evolution.evolution_plan import Proposal, plan_evolution
from laminae.engine.plan import Outcome, explain
from laminae.errors import DependentsExist, EvolutionRejected, IncompatibleChange, InvalidSchema
from laminae.schema.evolvable import EvolutionTrigger
from laminae.schema.types import VARIANT
from tests.support.build import col, schema

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def source(current, *, mode="NONE", key=(), watermark=None, **options):
    given = {"compatibility": mode, **options}
    return SourceRecord(
        id=1, name="s", version=3, schema=current, next_column_id=50, options=tuple(sorted(given.items())),
        primary_key=key, watermark=watermark, last_verdict=None, created_at=NOW, definition_seq=7,
    )  # fmt: skip


def view(name, *ids):
    return ViewRecord(1, name, "SELECT 1", None, (), "live", None, (("s", ids),), NOW, 1)


def plan(current, proposed, *, trigger=EvolutionTrigger.DDL, force=False, views=(), **more):
    record = source(current, **more)
    return plan_evolution(record, [current], Proposal(proposed, trigger, force=force), views, NOW, "test")


BASE = schema(col("a", "int", id=1), col("b", id=2))
DROPPED = schema(col("a", "int", id=1))
ADDED = schema(*BASE, col("c"))


def test_a_compatible_change_becomes_the_next_version_with_a_fresh_id():
    made = plan(BASE, ADDED, mode="FULL")
    version, verdict = made.updates
    assert isinstance(version, AddVersion)
    assert (version.expected_version, version.next_column_id, version.forced) == (3, 51, False)
    assert version.schema.field("c").metadata == {b"laminae:id": b"50"}
    assert isinstance(verdict, RecordVerdict)
    assert (made.outcome, made.version) == (Outcome.APPLY, 4)


def test_the_same_schema_changes_nothing():
    assert plan(BASE, BASE).outcome is Outcome.NOTHING


def test_ddl_counts_as_the_confirmation_of_a_lossy_change():
    assert plan(BASE, DROPPED).outcome is Outcome.APPLY


@pytest.mark.parametrize("trigger", [t for t in EvolutionTrigger if t is not EvolutionTrigger.DDL])
def test_a_lossy_change_that_was_found_waits_for_a_person(trigger):
    made = plan(BASE, DROPPED, trigger=trigger)
    assert made.outcome is Outcome.WAIT
    pending = made.updates[0]
    assert isinstance(pending, AddPending)
    assert (pending.base_version, pending.summary) == (3, "b: drop STRING")


def test_a_found_compatible_change_applies_at_once_or_waits_under_evolve_confirm():
    assert plan(BASE, ADDED, trigger=EvolutionTrigger.DATA, evolve="auto").outcome is Outcome.APPLY
    assert plan(BASE, ADDED, trigger=EvolutionTrigger.DATA, evolve="confirm").outcome is Outcome.WAIT


OF_A_TABLE = {"changelog": "debezium", "key": (1,), "evolve": "auto"}
FOUND = [trigger for trigger in EvolutionTrigger if not trigger.is_by_person]


@pytest.mark.parametrize("trigger", EvolutionTrigger)
def test_a_type_that_the_table_of_a_source_cannot_have_is_refused_whoever_finds_it(trigger):
    made = plan(BASE, schema(*BASE, col("data", VARIANT)), trigger=trigger, **OF_A_TABLE)
    assert made.outcome is Outcome.REFUSE
    assert isinstance(made.refusal, InvalidSchema)
    assert "declare it as STRING" in made.refusal.message


@pytest.mark.parametrize("trigger", FOUND)
def test_a_field_by_a_name_that_no_column_can_have_keeps_no_other_from_being_added(trigger):
    made = plan(BASE, schema(*BASE, col("_Timestamp"), col("city")), trigger=trigger, **OF_A_TABLE)
    assert (made.outcome, [change.column_name for change in made.changes]) == (Outcome.APPLY, ["city"])
    assert plan(BASE, schema(*BASE, col("_op")), trigger=trigger, **OF_A_TABLE).outcome is Outcome.NOTHING
    assert plan(BASE, schema(*BASE, col("_op")), trigger=trigger, evolve="auto").outcome is Outcome.APPLY


def test_columns_that_a_table_cannot_have_and_has_are_mended_one_by_one():
    current = schema(col("a", "int", id=1), col("b", id=2, null=False), col("_op", id=3), col("v", VARIANT, id=4))
    left = schema(*(field for field in current if field.name != "_op"))
    assert plan(current, schema(*current, col("c")), **OF_A_TABLE).outcome is Outcome.APPLY
    assert plan(current, left, **OF_A_TABLE).outcome is Outcome.APPLY
    assert plan(current, schema(*current, col("_weight")), **OF_A_TABLE).outcome is Outcome.REFUSE


def test_the_same_diff_against_the_same_version_has_the_same_fingerprint():
    first, second = (plan(BASE, DROPPED, trigger=EvolutionTrigger.DATA).updates[0] for _ in range(2))
    other = plan(BASE, schema(col("b", id=2)), trigger=EvolutionTrigger.DATA).updates[0]
    assert first.fingerprint == second.fingerprint != other.fingerprint


def test_a_change_that_breaks_the_mode_is_refused_and_only_its_verdict_is_kept():
    made = plan(BASE, DROPPED, mode="BACKWARD")
    assert isinstance(made.refusal, EvolutionRejected)
    assert [type(update) for update in made.updates] == [RecordVerdict]


@pytest.mark.parametrize(
    ("trigger", "confirmed", "way_out"),
    [
        (EvolutionTrigger.DDL, False, "SET COMPATIBILITY, or add FORCE to the statement."),
        (
            EvolutionTrigger.DATA,
            True,
            " and confirm the change again, or discard it with REJECT CHANGE.",
        ),
        (EvolutionTrigger.MANUAL_REFRESH, False, "SET COMPATIBILITY."),
    ],
)
def test_only_a_statement_that_takes_force_is_told_to_use_it(trigger, confirmed, way_out):
    proposal = Proposal(DROPPED, trigger, confirmed=confirmed)
    made = plan_evolution(source(BASE, mode="BACKWARD"), [BASE], proposal, (), NOW, "test")
    assert isinstance(made.refusal, EvolutionRejected)
    assert made.refusal.remedy.endswith(way_out)


def test_force_overrides_the_mode_and_is_recorded():
    made = plan(BASE, DROPPED, mode="BACKWARD", force=True)
    assert made.outcome is Outcome.APPLY
    assert made.updates[0].forced


def test_force_on_what_the_mode_allows_is_not_recorded_as_forced():
    assert not plan(BASE, ADDED, mode="FULL", force=True).updates[0].forced


@pytest.mark.parametrize("mode", ["NONE", "BACKWARD", "FULL_TRANSITIVE"])
def test_force_still_refuses_what_cannot_be_decoded(mode):
    made = plan(BASE, schema(col("a", "tinyint", id=1), col("b", id=2)), mode=mode, force=True)
    assert isinstance(made.refusal, IncompatibleChange)
    assert isinstance(made.refusal, EvolutionRejected)


def test_an_unrelated_type_is_a_new_column_with_a_new_id():
    made = plan(BASE, schema(col("a", "string", id=1), col("b", id=2)))
    assert made.updates[0].schema.field("a").metadata == {b"laminae:id": b"50"}
    assert [type(change).__name__ for change in made.changes] == ["ColumnDropped", "ColumnAdded"]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"key": (2,)}, "the PRIMARY KEY of s"),
        ({"watermark": WatermarkRecord(2, 0)}, "the WATERMARK of s"),
        ({"views": (view("totals", 2), view("other", 1))}, "materialized view totals"),
    ],
    ids=["key", "watermark", "view"],
)
def test_a_column_in_use_is_kept_even_under_force_and_its_users_are_named(more, told):
    made = plan(BASE, DROPPED, force=True, **more)
    assert isinstance(made.refusal, DependentsExist)
    assert made.refusal.params["dependents"] == told
    assert "Column b of s" in made.refusal.message


def test_replacing_the_type_of_a_column_in_use_is_refused_too():
    made = plan(BASE, schema(col("a", "int", id=1), col("b", "int", id=2)), views=(view("totals", 2),))
    assert isinstance(made.refusal, DependentsExist)


def test_renaming_and_widening_a_column_in_use_is_allowed():
    made = plan(BASE, schema(col("aa", "bigint", id=1), col("b", id=2)), key=(1,), views=(view("totals", 1),))
    assert made.outcome is Outcome.APPLY


def test_explain_shows_changes_verdict_reasons_and_refusal():
    lines = explain(plan(BASE, DROPPED, mode="BACKWARD"))
    assert [line.step for line in lines] == [
        "statement", "change", "verdict", "reason", "outcome", "refusal", "remedy",
    ]  # fmt: skip
    assert lines[2].detail == "incompatible under BACKWARD (seed rules)"
    assert lines[4].detail == "is refused"
