"""State that survives a changed schema (FLIP-527): for rows of your own, and for checkpoints of any Spark query.

Names that need Spark load it when they are used; importing this loads neither Spark nor Arrow.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from laminae.spark.checkpoint import check_checkpoint, inspect_checkpoint, migrate_checkpoint, start
    from laminae.spark.checkpoint.home import check_home
    from laminae.state.compatibility import Compatibility
    from laminae.state.serializer import RowSerializer, RowSerializerSnapshot

__all__ = [
    "Compatibility",
    "RowSerializer",
    "RowSerializerSnapshot",
    "check_checkpoint",
    "check_home",
    "inspect_checkpoint",
    "migrate_checkpoint",
    "start",
]

_MODULES = {
    "Compatibility": "laminae.state.compatibility",
    "RowSerializer": "laminae.state.serializer",
    "RowSerializerSnapshot": "laminae.state.serializer",
    "check_checkpoint": "laminae.spark.checkpoint",
    "check_home": "laminae.spark.checkpoint.home",
    "inspect_checkpoint": "laminae.spark.checkpoint",
    "migrate_checkpoint": "laminae.spark.checkpoint",
    "start": "laminae.spark.checkpoint",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'laminae.state' has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
