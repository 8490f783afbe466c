"""Late data: correct the emitted results of a window within the allowed lateness, and collect what arrives later.

Emitted results are kept by operator, window and group key until the watermark passes the window's end + lateness. For
columns of keys at once, see `emitted.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from laminae.zset.outcome import Delete, NoChange, Outcome, Update, outcome_of, records_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from laminae.zset.record import ChangelogRecord

Row = TypeVar("Row")


class WindowId(NamedTuple):
    """The interval from `start` (inclusive) to `end` (exclusive), in milliseconds."""

    start: int
    end: int

    @property
    def event_time(self) -> int:
        """The timestamp of its rows: the last instant inside, as in Spark's window_time."""
        return self.end - 1


class RetractionKey(NamedTuple):
    """Identifies a result: different operators, or different groups of one window, never correct each other."""

    operator: str
    window: WindowId
    group: Hashable = None


@dataclass(slots=True)
class Emitted(Generic[Row]):
    """The last emitted result, its emission time, and how many times the result was emitted."""

    data: Row
    emit_time: int
    version: int = 1


@dataclass(frozen=True, slots=True)
class LateRow(Generic[Row]):
    """A row, or the result of a window, that arrived after all its windows had closed."""

    data: Row
    windows: tuple[WindowId, ...]
    watermark: int


class LateDataRetractionGenerator(Generic[Row]):
    """Turns window results into corrections of what was emitted before. With `enabled=False` it never corrects."""

    __slots__ = ("_emitted", "_late", "allowed_lateness", "enabled", "late_count", "watermark")

    def __init__(self, enabled: bool = True, allowed_lateness: int = 0) -> None:
        if allowed_lateness < 0:
            raise ValueError(f"the allowed lateness is at least 0, {allowed_lateness} is not")
        self.enabled = enabled
        self.allowed_lateness = allowed_lateness
        self.watermark: int | None = None
        self.late_count = 0
        """The total number of late rows; draining does not reset it."""
        self._emitted: dict[WindowId, dict[tuple[str, Hashable], Emitted[Row]]] = {}
        self._late: list[LateRow[Row]] = []

    def check_retraction(
        self, window_id: WindowId, new_data: Row, timestamp: int, operator: str = "", group: Hashable = None
    ) -> tuple[Row, Row] | None:
        """(old, new) if the emitted result has to be corrected; None for the first result and for an equal one."""
        match self.check(RetractionKey(operator, window_id, group), new_data, timestamp):
            case Update(old, new):
                return old, new
            case _:
                return None

    def check(self, key: RetractionKey, new_data: Row | None, timestamp: int) -> Outcome[Row]:
        """Compare a result with the last emitted one; None means that the result no longer exists.

        `timestamp` is the time of emission; it is stored and returned by `emitted`. A window past its lateness is not
        corrected: a result for it goes to the late rows.
        """
        if not self.enabled:
            return NoChange()
        if self.is_closed(key.window):
            if new_data is not None:
                self._set_aside(new_data, (key.window,))
            return NoChange()
        of_window = self._emitted.get(key.window, {})
        known = of_window.get((key.operator, key.group))
        outcome = outcome_of(None if known is None else known.data, new_data)
        if isinstance(outcome, Delete):
            del of_window[key.operator, key.group]
        elif new_data is not None and known is None:
            self._emitted.setdefault(key.window, {})[key.operator, key.group] = Emitted(new_data, timestamp)
        elif new_data is not None and known is not None and isinstance(outcome, Update):
            known.data, known.emit_time, known.version = new_data, timestamp, known.version + 1
        return outcome

    def corrections(self, key: RetractionKey, new_data: Row | None, timestamp: int) -> tuple[ChangelogRecord[Row], ...]:
        """Like `check`, as changes to emit. They have the window's event time, not the time of emission."""
        return records_of(self.check(key, new_data, timestamp), WindowId(*key.window).event_time)

    def emitted(self, key: RetractionKey) -> Emitted[Row] | None:
        return self._emitted.get(key.window, {}).get((key.operator, key.group))

    def admit(self, row: Row, windows: Iterable[WindowId]) -> tuple[WindowId, ...]:
        """The windows of this row that are still open. If none is, the row is late: it is collected and counted."""
        all_windows = tuple(windows)
        still_open = tuple(window for window in all_windows if not self.is_closed(window))
        if all_windows and not still_open:
            self._set_aside(row, all_windows)
        return still_open

    def is_closed(self, window: WindowId) -> bool:
        """Whether the watermark has reached end + lateness. Windows without an end close only by `cleanup_window`."""
        if self.watermark is None or not isinstance(window, tuple):
            return False
        return window[1] + self.allowed_lateness <= self.watermark

    def advance(self, watermark: int) -> tuple[WindowId, ...]:
        """Advance the watermark after an epoch, never backwards; drops and returns the windows that closed."""
        self.watermark = watermark if self.watermark is None else max(self.watermark, watermark)
        closed = tuple(window for window in self._emitted if self.is_closed(window))
        for window in closed:
            self.cleanup_window(window)
        return closed

    def cleanup_window(self, window_id: WindowId) -> None:
        self._emitted.pop(window_id, None)

    def __len__(self) -> int:
        """The number of stored results."""
        return sum(map(len, self._emitted.values()))

    def drain_late(self) -> list[LateRow[Row]]:
        """The late rows (side output) since the last call."""
        late_rows, self._late = self._late, []
        return late_rows

    def _set_aside(self, row: Row, windows: tuple[WindowId, ...]) -> None:
        self._late.append(LateRow(row, windows, self.watermark if self.watermark is not None else 0))
        self.late_count += 1
