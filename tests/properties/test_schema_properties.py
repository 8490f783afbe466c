"""The laws of the schema engine, on schemas nested three deep."""

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from laminae import apply_evolution, diff_schemas, evaluate_evolution
from laminae.errors import SchemaMismatch
from laminae.schema.column import columns_of
from laminae.schema.projection import projection_between
from tests.support.examples import examples
from tests.support.oracle import DoesNotFitError, project_rows
from tests.support.schemas import batches, evolved, pairs, schemas

LAWFUL = settings(max_examples=examples(1000), deadline=None, suppress_health_check=list(HealthCheck))
MODES = ("BACKWARD", "FORWARD", "FULL", "NONE")
RULES = ("seed", "confluent")


def defaults_of(columns):
    return [(node.default, defaults_of(node.children)) for node in columns]


@LAWFUL
@given(pairs())
def test_prop_diff_then_apply_roundtrip(pair):
    old, new = pair
    result, _ = apply_evolution(old, diff_schemas(old, new))
    assert result.equals(new)
    assert defaults_of(columns_of(result)) == defaults_of(columns_of(new))
    assert diff_schemas(result, new) == ()


@LAWFUL
@given(schemas())
def test_prop_nothing_changes_between_a_schema_and_itself(schema):
    copy = pa.ipc.read_schema(schema.serialize())
    assert diff_schemas(schema, copy) == ()
    assert projection_between(schema, copy).mappings == tuple(range(len(schema)))


@LAWFUL
@given(pairs().flatmap(lambda pair: st.tuples(st.just(pair), batches(pair[0]))))
def test_prop_projection_preserves_rows(case):
    (old, new), batch = case
    projection = projection_between(old, new)
    try:
        expected = project_rows(old, new, batch.to_pylist())
    except DoesNotFitError:
        expected = None
    try:
        projected = projection.project_batch(batch)
    except SchemaMismatch:
        assert expected is None
        return
    assert expected is not None
    projected.validate(full=True)
    assert projected.num_rows == batch.num_rows
    assert projected.schema.equals(new)
    assert projected.to_pylist() == expected


@LAWFUL
@given(pairs())
def test_prop_full_is_backward_and_forward(pair):
    old, new = pair
    for rules in RULES:
        ok = {mode: evaluate_evolution(new, [old], mode, rules).is_compatible for mode in MODES}
        assert ok["FULL"] == (ok["BACKWARD"] and ok["FORWARD"])


@LAWFUL
@given(pairs())
def test_prop_compatible_changes_reversible(pair):
    old, new = pair
    if evaluate_evolution(new, [old], "FULL", "confluent").is_compatible:
        assert evaluate_evolution(old, [new], "FULL", "confluent").is_compatible


@st.composite
def histories(draw):
    versions = [draw(schemas(depth=1))]
    for _ in range(draw(st.integers(0, 3))):
        versions.append(draw(evolved(versions[-1])))
    return versions, draw(evolved(draw(st.sampled_from(versions))))


@LAWFUL
@given(histories(), st.sampled_from(MODES[:3]), st.sampled_from(RULES))
def test_prop_transitive_verdict_is_the_conjunction_over_history(case, mode, rules):
    history, new = case
    each = [evaluate_evolution(new, [version], mode, rules).is_compatible for version in history]
    assert evaluate_evolution(new, history, f"{mode}_TRANSITIVE", rules).is_compatible == all(each)
    assert evaluate_evolution(new, history, mode, rules).is_compatible == each[-1]


@LAWFUL
@given(pairs())
def test_prop_every_offending_change_has_exactly_one_reason(pair):
    old, new = pair
    verdict = evaluate_evolution(new, [old], "FULL")
    assert verdict.changes == diff_schemas(old, new)
    blamed = [reason.change for reason in verdict.reasons]
    assert len(blamed) == len({id(change) for change in blamed})
    assert all(reason.remedy and reason.path for reason in verdict.reasons)
