"""The law of joins: after every epoch the sum of the changes is the join of the two sides, for any order of changes."""

from __future__ import annotations

import itertools
import tempfile
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from laminae.trace.store import RunStore
from laminae.views.kernels.join.kernel import EquiJoin, JoinKernel
from laminae.views.kernels.join.sides import JoinSide
from laminae.views.kernels.step import ShardState
from laminae.views.operators import Comparison, JoinKind
from tests.support.examples import examples
from tests.support.traces import few_hashes, spread_hash

KEY = pa.field("__laminae_k0", pa.int64())
TEXT, NUMBER = pa.string(), pa.int64()
LEFT = JoinSide("left", (KEY,), (pa.field("a", NUMBER), pa.field("x", TEXT)))
RIGHT = JoinSide("right", (KEY,), (pa.field("b", NUMBER), pa.field("y", TEXT)))
RESIDUALS = [(), (Comparison("a", ">", "b"),), (Comparison("a", "<=>", "b"), Comparison("x", "<>", "y"))]
HOLDS = {
    ">": lambda one, other: one is not None and other is not None and one > other,
    "<>": lambda one, other: one is not None and other is not None and one != other,
    "<=>": lambda one, other: one == other,
}

values = st.one_of(st.none(), st.integers(1, 3))
texts = st.one_of(st.none(), st.sampled_from(["u", "v"]))
rows = st.tuples(values, values, texts)
"""Key, number and text."""
changes = st.lists(st.tuples(rows, st.sampled_from([1, 1, 1, 2, -1, -1])), max_size=6)
epochs = st.lists(st.tuples(changes, changes), min_size=1, max_size=6)


def table(side: JoinSide, delta: list, hashed) -> pa.Table:
    columns = {"_hash": [hashed((key,)) for (key, _, _), _ in delta], "__laminae_k0": [row[0] for row, _ in delta]}
    columns["_row"] = [hashed(row[1:]) for row, _ in delta]
    for place, name in enumerate(side.names, 1):
        columns[name] = [row[place] for row, _ in delta]
    columns["_weight"] = [weight for _, weight in delta]
    kinds = {"_row": NUMBER, "_hash": NUMBER, "_weight": NUMBER, "__laminae_k0": NUMBER}
    kinds |= {field.name: field.type for field in side.columns}
    return pa.table({name: pa.array(column, kinds[name]) for name, column in columns.items()})


def joined(kind: JoinKind, residual, null_safe: bool, left: Counter, right: Counter) -> Counter:
    """By hand: every pair of rows."""
    result: Counter = Counter()

    def matches(one, other) -> bool:
        if one[0] != other[0] or (one[0] is None and not null_safe):
            return False
        mine, theirs = {"a": one[1], "x": one[2]}, {"b": other[1], "y": other[2]}
        return all(HOLDS[each.sign](mine[each.left], theirs[each.right]) for each in residual)

    for (one, n), (other, m) in itertools.product(left.items(), right.items()):
        if not kind.selects_left and matches(one, other):
            result[(*one[1:], *other[1:])] += n * m
    for one, n in left.items():
        has_partner = any(matches(one, other) for other in right)
        if kind is JoinKind.SEMI and has_partner:
            result[one[1:]] += n
        if kind is JoinKind.ANTI and not has_partner:
            result[one[1:]] += n
        if kind in (JoinKind.LEFT, JoinKind.FULL) and not has_partner:
            result[(*one[1:], None, None)] += n
    for other, m in right.items():
        if kind in (JoinKind.RIGHT, JoinKind.FULL) and not any(matches(one, other) for one in left):
            result[(None, None, *other[1:])] += m
    return result


@pytest.mark.parametrize("hashed", [spread_hash, few_hashes], ids=["spread", "colliding"])
@pytest.mark.parametrize("kind", JoinKind, ids=lambda kind: kind.value)
@settings(max_examples=examples(160), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    history=epochs, residual=st.sampled_from(RESIDUALS), null_safe=st.booleans(), limit=st.sampled_from([2, 1 << 20])
)
def test_sum_of_changes_is_the_join_of_both_sides(hashed, kind, history, residual, null_safe, limit):
    outputs = LEFT.names if kind.selects_left else (*LEFT.names, *RIGHT.names)
    kernel = JoinKernel(EquiJoin("v", kind, LEFT, RIGHT, (null_safe,), residual, outputs), limit)
    totals, shown, manifests = (Counter(), Counter()), Counter(), {}
    with tempfile.TemporaryDirectory() as home:
        store = RunStore.at(home)
        for deltas in history:
            tables = tuple(table(side, delta, hashed) for side, delta in zip((LEFT, RIGHT), deltas, strict=True))
            step = kernel.step(tables, ShardState(0, manifests, store))
            for change in [row for batch in step.slices for row in batch.to_pylist()]:
                assert (change["_op"], change["_weight"] > 0) in (("+I", True), ("-D", False))
                shown[tuple(change[name] for name in outputs)] += change["_weight"]
            manifests = {0: step.manifest.to_json()}
            for total, delta in zip(totals, deltas, strict=True):
                for row, weight in delta:
                    total[row] += weight
            expected = joined(kind, residual, null_safe, +totals[0], +totals[1])
            assert Counter({row: weight for row, weight in shown.items() if weight}) == expected
            stored = [tuple(row.values()) for batch in kernel.rows(step.manifest, store) for row in batch.to_pylist()]
            assert Counter(stored) == expected
