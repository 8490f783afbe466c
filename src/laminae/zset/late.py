"""Late data: correct what was emitted for a window for as long as the lateness allows, and set aside what is later.

What was emitted is kept by operator, window and group key until the watermark passes the window's end + lateness.
Columns of keys at once: `emitted.py`.
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
    """From `start` up to, not including, `end`, both in milliseconds."""

    start: int
    end: int

    @property
    def event_time(self) -> int:
        """The time that its rows carry: the last instant inside, as Spark's window_time."""
        return self.end - 1


class RetractionKey(NamedTuple):
    """Whose result it is: two operators, or two groups of one window, never correct each other."""

    operator: str
    window: WindowId
    group: Hashable = None


@dataclass(slots=True)
class Emitted(Generic[Row]):
    """What was emitted last, when, and how often it was emitted."""

    data: Row
    emit_time: int
    version: int = 1


@dataclass(frozen=True, slots=True)
class LateRow(Generic[Row]):
    """A row, or the result of a window, that came when nothing could be corrected any more."""

    data: Row
    windows: tuple[WindowId, ...]
    watermark: int


class LateDataRetractionGenerator(Generic[Row]):
    """Turns results of windows into corrections of what was emitted before. `enabled=False` never corrects."""

    __slots__ = ("_emitted", "_late", "allowed_lateness", "enabled", "late_count", "watermark")

    def __init__(self, enabled: bool = True, allowed_lateness: int = 0) -> None:
        if allowed_lateness < 0:
            raise ValueError(f"the allowed lateness is at least 0, {allowed_lateness} is not")
        self.enabled = enabled
        self.allowed_lateness = allowed_lateness
        self.watermark: int | None = None
        self.late_count = 0
        """All that ever came too late; it stays when the rows are drained."""
        self._emitted: dict[WindowId, dict[tuple[str, Hashable], Emitted[Row]]] = {}
        self._late: list[LateRow[Row]] = []

    def check_retraction(
        self, window_id: WindowId, new_data: Row, timestamp: int, operator: str = "", group: Hashable = None
    ) -> tuple[Row, Row] | None:
        """(old, new) when what was emitted before has to be corrected; None for the first result and an equal one."""
        match self.check(RetractionKey(operator, window_id, group), new_data, timestamp):
            case Update(old, new):
                return old, new
            case _:
                return None

    def check(self, key: RetractionKey, new_data: Row | None, timestamp: int) -> Outcome[Row]:
        """What the result means for what was emitted before; None is a result that is no longer there.

        `timestamp` is the time of emission, kept for whoever asks. A window past its lateness is not corrected: a
        result for it goes to the late rows.
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
        """The same as changes to emit. They carry the window's event time, not the time of emission."""
        return records_of(self.check(key, new_data, timestamp), WindowId(*key.window).event_time)

    def emitted(self, key: RetractionKey) -> Emitted[Row] | None:
        return self._emitted.get(key.window, {}).get((key.operator, key.group))

    def admit(self, row: Row, windows: Iterable[WindowId]) -> tuple[WindowId, ...]:
        """The windows of this row that still take it. With none left it is late: set aside, and counted."""
        given = tuple(windows)
        still_open = tuple(window for window in given if not self.is_closed(window))
        if given and not still_open:
            self._set_aside(row, given)
        return still_open

    def is_closed(self, window: WindowId) -> bool:
        """Whether end + lateness has been reached by the watermark. A window without an end closes by hand alone."""
        if self.watermark is None or not isinstance(window, tuple):
            return False
        return window[1] + self.allowed_lateness <= self.watermark

    def advance(self, watermark: int) -> tuple[WindowId, ...]:
        """Move the watermark, never back, after an epoch; the windows that closed are forgotten and returned."""
        self.watermark = watermark if self.watermark is None else max(self.watermark, watermark)
        closed = tuple(window for window in self._emitted if self.is_closed(window))
        for window in closed:
            self.cleanup_window(window)
        return closed

    def cleanup_window(self, window_id: WindowId) -> None:
        self._emitted.pop(window_id, None)

    def __len__(self) -> int:
        """How many results are kept."""
        return sum(map(len, self._emitted.values()))

    def drain_late(self) -> list[LateRow[Row]]:
        """The late side output since it was last drained."""
        found, self._late = self._late, []
        return found

    def _set_aside(self, row: Row, windows: tuple[WindowId, ...]) -> None:
        self._late.append(LateRow(row, windows, self.watermark if self.watermark is not None else 0))
        self.late_count += 1
