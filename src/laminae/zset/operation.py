"""The four kinds of change, and the invariant that the operation and the weight have the same sign.

Spark's `_change_type` names and the codes stored in buffers are in the same table.
"""

from __future__ import annotations

from enum import Enum
from operator import index

INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1


class CdcOperation(Enum):
    """The value is the short name, as in `_op` columns."""

    INSERT = "+I"
    DELETE = "-D"
    UPDATE_BEFORE = "-U"
    UPDATE_AFTER = "+U"

    @property
    def weight(self) -> int:
        """The change in the number of copies of the row: 1 or -1."""
        return 1 if self.code > 0 else -1

    def is_insert(self) -> bool:
        return self.code > 0

    def is_delete(self) -> bool:
        return self.code < 0

    @property
    def code(self) -> int:
        """A small integer with the sign of the weight, for columns of operations."""
        return CODES[self]

    @property
    def change_type(self) -> str:
        """Spark's name, as written to `_change_type` by change feeds of Delta and Iceberg."""
        return CHANGE_TYPES[self]

    @classmethod
    def of_weight(cls, weight: int) -> CdcOperation:
        """+I or -D by the sign. Weight 0 changes nothing and counts as an insert of zero copies."""
        return cls.DELETE if weight < 0 else cls.INSERT


CODES: dict[CdcOperation, int] = {
    CdcOperation.INSERT: 1,
    CdcOperation.DELETE: -1,
    CdcOperation.UPDATE_BEFORE: -2,
    CdcOperation.UPDATE_AFTER: 2,
}
OF_CODE: dict[int, CdcOperation] = {code: operation for operation, code in CODES.items()}

CHANGE_TYPES: dict[CdcOperation, str] = {
    CdcOperation.INSERT: "insert",
    CdcOperation.DELETE: "delete",
    CdcOperation.UPDATE_BEFORE: "update_preimage",
    CdcOperation.UPDATE_AFTER: "update_postimage",
}
OF_CHANGE_TYPE: dict[str, CdcOperation] = {name: operation for operation, name in CHANGE_TYPES.items()}


def agreed(weight: int, operation: CdcOperation | None) -> CdcOperation:
    """The operation of a change with this weight: derived if None, otherwise checked."""
    if not INT64_MIN <= index(weight) <= INT64_MAX:
        raise ValueError(f"a weight is a 64-bit integer, {weight} is not")
    if operation is None:
        return CdcOperation.of_weight(weight)
    if weight * operation.weight < 0:
        raise ValueError(f"weight {weight} and operation {operation.value} have different signs")
    return operation
