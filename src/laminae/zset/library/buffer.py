"""A buffer of references to changed rows, allocated once and reused for every epoch.

It never grows and never drops entries: return values say what was taken, and the caller keeps the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, TypeVar, cast, overload

import numpy as np
import numpy.typing as npt

from laminae.zset.operation import OF_CODE, CdcOperation, agreed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from laminae.zset.wide_integers import Codes, Int64s

Numbers = npt.ArrayLike
_Integer = TypeVar("_Integer", bound=np.integer)

_UINT32_MAX = (1 << 32) - 1


_DERIVED = cast(CdcOperation, None)


@dataclass(frozen=True, slots=True)
class ChangelogRef:
    """A reference to changed row `row_index` of batch `batch_offset`, instead of a copy of the row."""

    batch_offset: int
    row_index: int
    weight: int
    operation: CdcOperation = _DERIVED

    def __post_init__(self) -> None:
        object.__setattr__(self, "operation", agreed(self.weight, self.operation))
        if not (0 <= self.batch_offset <= _UINT32_MAX and 0 <= self.row_index <= _UINT32_MAX):
            raise ValueError(f"batch {self.batch_offset}, row {self.row_index}: both are 32-bit numbers from 0")


@dataclass(frozen=True, slots=True, eq=False)
class ChangelogColumns:
    """References as columns; `operation` holds codes (`CdcOperation.code`)."""

    batch_offset: npt.NDArray[np.uint32]
    row_index: npt.NDArray[np.uint32]
    weight: Int64s
    operation: Codes


class ChangelogBuffer:
    """The references of one epoch, in the order in which they were pushed."""

    __slots__ = ("_capacity", "_columns", "_length")

    def __init__(self, capacity: int) -> None:
        if capacity < 0:
            raise ValueError(f"a capacity is at least 0, {capacity} is not")
        # One structured value whose fields are whole columns: a row-wise layout took twice as long to write.
        column = (capacity,)
        layout = np.dtype(
            [
                ("weight", np.int64, column),
                ("batch_offset", np.uint32, column),
                ("row_index", np.uint32, column),
                ("operation", np.int8, column),
            ]
        )
        block = np.zeros((), dtype=layout)
        self._columns = ChangelogColumns(block["batch_offset"], block["row_index"], block["weight"], block["operation"])
        self._capacity = capacity
        self._length = 0

    @classmethod
    def with_capacity(cls, capacity: int) -> ChangelogBuffer:
        return cls(capacity)

    def __len__(self) -> int:
        return self._length

    @property
    def capacity(self) -> int:
        return self._capacity

    def is_empty(self) -> bool:
        return self._length == 0

    def is_full(self) -> bool:
        return self._length == self._capacity

    def push(self, ref: ChangelogRef) -> bool:
        """Append a reference. False if the buffer is full and it was not taken: drain the buffer and push it again."""
        place = self._length
        if place == self._capacity:
            return False
        columns = self._columns
        columns.batch_offset[place] = ref.batch_offset
        columns.row_index[place] = ref.row_index
        columns.weight[place] = ref.weight
        columns.operation[place] = ref.operation.code
        self._length = place + 1
        return True

    def push_retraction(self, batch_offset: int, old_row: int, new_row: int) -> bool:
        """Append the -U of one row and the +U of another. False, with neither taken, if there is no room for both."""
        if self._capacity - self._length < 2:
            return False
        self.push(ChangelogRef(batch_offset, old_row, -1, CdcOperation.UPDATE_BEFORE))
        return self.push(ChangelogRef(batch_offset, new_row, 1, CdcOperation.UPDATE_AFTER))

    @overload
    def push_many(self, batch_offset: Iterable[ChangelogRef], /) -> int: ...

    @overload
    def push_many(
        self, batch_offset: Numbers, row_index: Numbers, weight: Numbers, operation: Numbers | None = None
    ) -> int: ...

    def push_many(
        self,
        batch_offset: Numbers | Iterable[ChangelogRef],
        row_index: Numbers | None = None,
        weight: Numbers | None = None,
        operation: Numbers | None = None,
    ) -> int:
        """Append columns of references, or single references; returns how many were taken, from the front.

        A scalar stands for a whole column. `operation` holds codes (`CdcOperation.code`), derived from the weights if
        absent. If a value is invalid, nothing is taken.
        """
        if row_index is None or weight is None:
            return self._push_refs(cast("Iterable[ChangelogRef]", batch_offset))
        own, weights = self._columns, _integers(weight, np.int64)
        codes = _derived_codes(weights) if operation is None else _checked_codes(operation, weights)
        pairs = (
            (own.batch_offset, _integers(cast("Numbers", batch_offset), np.uint32)),
            (own.row_index, _integers(row_index, np.uint32)),
            (own.weight, weights),
            (own.operation, codes),
        )
        lengths = np.broadcast_shapes(*(column.shape for _, column in pairs))
        taken = min(lengths[0] if lengths else 1, self._capacity - self._length)
        for mine, values in pairs:
            mine[self._length : self._length + taken] = values[:taken] if values.ndim else values
        self._length += taken
        return taken

    def _push_refs(self, refs: Iterable[ChangelogRef]) -> int:
        before = self._length
        # Do not consume more from an iterator than fits: consumed elements are lost to the caller.
        for ref in islice(refs, self._capacity - before):
            self.push(ref)
        return self._length - before

    def drain(self) -> list[ChangelogRef]:
        """All references in order; the buffer is then empty, and its memory is kept."""
        columns = self.drain_columns()
        rows = zip(
            columns.batch_offset.tolist(),
            columns.row_index.tolist(),
            columns.weight.tolist(),
            columns.operation.tolist(),
            strict=True,
        )
        return [ChangelogRef(batch, row, weight, OF_CODE[code]) for batch, row, weight, code in rows]

    def drain_columns(self) -> ChangelogColumns:
        """Like `drain`, but as columns; they are copies, which later pushes do not change."""
        own, here = self._columns, slice(0, self._length)
        self._length = 0
        return ChangelogColumns(
            own.batch_offset[here].copy(),
            own.row_index[here].copy(),
            own.weight[here].copy(),
            own.operation[here].copy(),
        )


def _integers(values: Numbers, kind: type[_Integer]) -> npt.NDArray[_Integer]:
    """Convert to this integer type; values out of range are refused, where numpy would truncate or wrap."""
    array = np.asarray(values)
    if array.dtype == kind:
        return cast("npt.NDArray[_Integer]", array)
    converted = array.astype(kind)
    if not bool((converted == array).all()):
        raise ValueError(f"{np.dtype(kind)} cannot hold every number given")
    return converted


def _derived_codes(weights: Int64s) -> Codes:
    """The codes of +I and -D, by the sign of the weight."""
    return np.asarray(1 - 2 * (weights < 0).view(np.int8), dtype=np.int8)


def _checked_codes(operation: Numbers, weights: Int64s) -> Codes:
    codes = _integers(operation, np.int8)
    if bool(((codes < -2) | (codes > 2) | (codes == 0)).any()):
        raise ValueError(f"the codes of operations are {sorted(OF_CODE)}, others were given")
    differs = (weights < 0) != (codes < 0)
    # Weight 0 is valid with every operation; this is checked only if some signs differ.
    if bool(differs.any()) and bool((differs & (weights != 0)).any()):
        raise ValueError("a weight and its operation have different signs")
    return codes
