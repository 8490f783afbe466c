"""What every catalog does with views, sinks, epochs and settings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from laminae.catalog.updates import (
    PutSetting,
    SetPosition,
    SetSinkProgress,
    SetSourceOptions,
    SetSourceProblem,
    SetViewState,
)
from laminae.errors import CheckpointDiverged, ConcurrentChange, DuplicateObject
from tests.support.catalogs import NOON, create, drop, epoch, evolve, live, made, sink, view

if TYPE_CHECKING:
    from laminae.catalog import Catalog


def test_a_view_is_read_back_as_declared(catalog: Catalog) -> None:
    (view_id,) = catalog.commit([view("Totals", query="SELECT '?' AS \"%s\"")]).ids
    found = catalog.view("totals")
    assert found is not None
    assert (found.id, found.name, found.query) == (view_id, "Totals", "SELECT '?' AS \"%s\"")
    assert (found.emit, found.options, found.state, found.problem) == ("CHANGES", (), "creating", None)
    assert found.reads == (("orders", (1, 2)), ("other", ()))
    assert (found.created_at, found.definition_seq) == (NOON, 1)
    assert catalog.views() == (found,)


def test_the_view_that_another_replaced_is_known_by_it(catalog: Catalog) -> None:
    (old,) = catalog.commit([view("v", query="SELECT 1")]).ids
    (new,) = catalog.commit([view("V", replaces=old, query="SELECT 2")]).ids
    found = catalog.replaced(new)
    assert found is not None
    assert (found.id, found.query) == (old, "SELECT 1")
    assert catalog.replaced(old) is None


def test_replacing_a_view_gives_a_new_one_under_its_name(catalog: Catalog) -> None:
    (old,) = catalog.commit([view("v")]).ids
    (new,) = catalog.commit([view("V", replaces=old, query="SELECT 2")]).ids
    (found,) = catalog.views()
    assert (found.id, found.name, found.query, found.definition_seq) == (new, "V", "SELECT 2", 2)
    assert new != old


def test_of_two_replacements_of_one_view_the_second_is_refused(catalog: Catalog) -> None:
    (old,) = catalog.commit([view("v")]).ids
    catalog.commit([view("v", replaces=old, query="SELECT 2")])
    with pytest.raises(ConcurrentChange):
        catalog.commit([view("v", replaces=old, query="SELECT 3")])
    assert [found.query for found in catalog.views()] == ["SELECT 2"]


def test_a_replacement_cannot_take_the_name_of_another_object(catalog: Catalog) -> None:
    old, _ = catalog.commit([view("v"), create("s")]).ids
    with pytest.raises(DuplicateObject):
        catalog.commit([view("s", replaces=old)])
    assert catalog.view("v") is not None


def test_the_state_of_a_view_and_its_problem_are_kept(catalog: Catalog) -> None:
    (view_id,) = catalog.commit([view("v")]).ids
    catalog.commit([SetViewState(view_id, "failed", "overflow of key \x00")])
    found = catalog.view("v")
    assert found is not None
    assert (found.state, found.problem) == ("failed", "overflow of key \N{REPLACEMENT CHARACTER}")
    assert found.definition_seq == catalog.definition_seq() == 2


def test_a_dropped_view_has_no_state(catalog: Catalog) -> None:
    (view_id,) = catalog.commit([view("v")]).ids
    catalog.commit([drop("view", view_id)])
    assert catalog.view("v") is None
    with pytest.raises(ConcurrentChange):
        catalog.commit([SetViewState(view_id, "live")])


def test_a_sink_is_read_back_as_declared(catalog: Catalog) -> None:
    (sink_id,) = catalog.commit([sink("Out")]).ids
    found = catalog.sink("OUT")
    assert found is not None
    assert (found.id, found.name, found.relation, found.state) == (sink_id, "Out", "orders", "live")
    assert (found.options, found.progress, found.problem) == ((("connector", "console"),), 0, None)
    assert catalog.sinks() == (found,)


def test_the_progress_of_a_sink_never_moves_backwards(catalog: Catalog) -> None:
    (sink_id,) = catalog.commit([sink("out")]).ids
    catalog.commit([SetSinkProgress(sink_id, 5, "live")])
    catalog.commit([SetSinkProgress(sink_id, 3, "failing", "broker is away")])
    found = catalog.sink("out")
    assert found is not None
    assert (found.progress, found.state, found.problem) == (5, "failing", "broker is away")
    assert catalog.definition_seq() == 1


def test_a_dropped_sink_makes_no_progress(catalog: Catalog) -> None:
    (sink_id,) = catalog.commit([sink("out")]).ids
    catalog.commit([drop("sink", sink_id)])
    assert catalog.sink("out") is None
    with pytest.raises(ConcurrentChange):
        catalog.commit([SetSinkProgress(sink_id, 1, "live")])


def test_a_dropped_name_is_free_for_any_kind(catalog: Catalog) -> None:
    (view_id,) = catalog.commit([view("x")]).ids
    catalog.commit([drop("view", view_id), sink("x")])
    assert catalog.view("x") is None
    assert catalog.sink("x") is not None


def test_epochs_of_all_sources_share_one_sequence_of_numbers(catalog: Catalog) -> None:
    orders, other = made(catalog), made(catalog, "other")
    assert [catalog.commit([epoch(source, 0)]).ids for source in (orders, other)] == [(1,), (2,)]
    assert catalog.commit([epoch(orders, 1, start="10", end="20"), epoch(other, 1)]).ids == (3, 4)
    assert catalog.last_epoch() == 4
    assert [found.epoch for found in catalog.epochs(orders.id)] == [1, 3]
    assert [found.epoch for found in catalog.epochs(orders.id, since=1)] == [3]
    assert catalog.definition_seq() == 2


def test_an_epoch_is_read_back_with_its_offsets_and_version(catalog: Catalog) -> None:
    source = made(catalog)
    catalog.commit([epoch(source, 0, start="a", end="b"), SetPosition(source.id, 1, "a")])
    (found,) = catalog.epochs(source.id)
    assert (found.batch_id, found.start_offsets, found.end_offsets, found.version, found.rows) == (0, "a", "b", 1, 10)
    assert found.committed_at == NOON


def test_a_replayed_epoch_is_the_committed_one(catalog: Catalog) -> None:
    source = made(catalog)
    first = catalog.commit([epoch(source, 0)]).ids
    catalog.commit([evolve(source, "x")])
    assert catalog.commit([epoch(live(catalog), 0)]).ids == first
    assert catalog.last_epoch() == 1
    assert [found.version for found in catalog.epochs(source.id)] == [1]


@pytest.mark.parametrize(("start", "end"), [("0", "11"), ("1", "10")])
def test_a_batch_with_other_offsets_has_diverged(catalog: Catalog, start: str, end: str) -> None:
    source = made(catalog)
    catalog.commit([epoch(source, 0)])
    with pytest.raises(CheckpointDiverged, match="0 to 10 is committed"):
        catalog.commit([PutSetting("a", "1"), epoch(source, 0, start=start, end=end)])
    assert catalog.last_epoch() == 1
    assert catalog.settings() == {}


def test_a_dropped_source_commits_no_epoch_but_a_replayed_one_is_found(catalog: Catalog) -> None:
    source = made(catalog)
    first = catalog.commit([epoch(source, 0)]).ids
    catalog.commit([drop("source", source.id)])
    assert catalog.commit([epoch(source, 0)]).ids == first
    with pytest.raises(ConcurrentChange, match="dropped"):
        catalog.commit([epoch(source, 1)])
    assert catalog.last_epoch() == 1


def test_a_new_incarnation_starts_its_batches_afresh(catalog: Catalog) -> None:
    first = made(catalog)
    catalog.commit([epoch(first, 0)])
    catalog.commit([drop("source", first.id)])
    assert catalog.commit([epoch(made(catalog), 0, end="99")]).ids == (2,)


def test_a_setting_is_replaced_by_a_later_value(catalog: Catalog) -> None:
    catalog.commit([PutSetting("b", "1"), PutSetting("a", "1")])
    assert catalog.commit([PutSetting("b", "2")]).definition_seq == 2
    assert catalog.settings() == {"a": "1", "b": "2"}


def test_the_problem_of_a_source_is_kept_until_it_has_none_and_moves_no_definition(catalog: Catalog) -> None:
    source = made(catalog)
    seq = catalog.definition_seq()
    catalog.commit([SetSourceProblem(source.id, "gone \x00")])
    assert live(catalog).problem == "gone \N{REPLACEMENT CHARACTER}"
    catalog.commit([SetSourceProblem(source.id, None)])
    assert live(catalog).problem is None
    assert catalog.definition_seq() == seq


def test_options_that_decide_how_records_are_read_do_not_change_behind_the_first_epoch(catalog: Catalog) -> None:
    source = made(catalog)
    first = replace(epoch(source, 0), options=source.options)
    catalog.commit([SetSourceOptions(source.id, "orders", source.definition_seq, (("a", "1"),), unread=True)])
    with pytest.raises(ConcurrentChange, match="options"):
        catalog.commit([first])
    now = live(catalog)
    catalog.commit([replace(first, options=now.options)])
    with pytest.raises(ConcurrentChange, match="no epoch"):
        catalog.commit([SetSourceOptions(source.id, "orders", now.definition_seq, (("a", "2"),), unread=True)])
    catalog.commit([SetSourceOptions(source.id, "orders", now.definition_seq, (("a", "2"),))])
    catalog.commit([replace(epoch(source, 1, start="10", end="20"), options=now.options)])
