"""A query elsewhere is seen by the logs of its checkpoint: how long they are watched, and what is seen."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from laminae.errors import CheckpointInUse
from laminae.spark.checkpoint.active_query import LONGEST_WATCH_SECONDS, Watch, logs


@dataclass
class Logs:
    """The files of a checkpoint in memory, and a clock that goes on when somebody waits."""

    now: float
    written: dict[str, dict[str, float]] = field(default_factory=dict)
    next_commit: float | None = None
    waited: float = 0.0

    def names(self, directory: str) -> tuple[str, ...]:
        return tuple(self.times(directory))

    def times(self, directory: str) -> dict[str, float]:
        return self.written.get(directory.removeprefix("place/"), {})

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.waited += seconds
        if self.next_commit is not None and self.now >= self.next_commit:
            self.written["offsets"]["9"] = self.now

    def watch(self) -> None:
        Watch(self, lambda: self.now, self.wait).until_quiet("place", logs(self, "place"))  # type: ignore[arg-type]


def ran(*commits: float, now: float, next_commit: float | None = None) -> Logs:
    written = {str(number): moment for number, moment in enumerate(commits)}
    return Logs(now, {"commits": written, "offsets": dict(written)}, next_commit)


def test_a_query_that_commits_in_its_rhythm_is_seen() -> None:
    running = ran(100.0, 110.0, 120.0, now=121.0, next_commit=130.0)
    with pytest.raises(CheckpointInUse, match="offsets/9"):
        running.watch()


def test_a_query_that_stopped_is_watched_for_twice_its_rhythm() -> None:
    stopped = ran(100.0, 110.0, 120.0, now=121.0)
    stopped.watch()
    assert stopped.waited == pytest.approx(19.0, abs=1.0)


@pytest.mark.parametrize("stopped", [ran(100.0, 110.0, now=500.0), ran(100.0, now=100.0), ran(now=5.0)])
def test_nobody_waits_for_a_checkpoint_that_is_quiet_or_has_one_batch(stopped: Logs) -> None:
    stopped.watch()
    assert stopped.waited == 0.0


def test_a_slow_query_is_not_watched_for_ever() -> None:
    slow = ran(0.0, 10_000.0, now=10_001.0)
    slow.watch()
    assert slow.waited <= LONGEST_WATCH_SECONDS
