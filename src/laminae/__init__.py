"""laminae: live schema evolution and incremental, retracting views for Spark streams.

Importing it loads nothing but this file: a name loads its module when it is first used. Spark starts processes of its
own for every stream, and each of them imports this package.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from laminae.api.database import Database, connect
    from laminae.api.result import Result
    from laminae.errors import LaminaeError
    from laminae.notifications.model import SchemaNotice
    from laminae.schema.apply import apply_evolution
    from laminae.schema.avro import check_avro
    from laminae.schema.change import SchemaChange
    from laminae.schema.compatibility import CompatibilityMode, EvolutionVerdict, evaluate_evolution
    from laminae.schema.diff import diff_schemas
    from laminae.schema.evolvable import EvolutionResult, EvolutionTrigger, SchemaEvolvable
    from laminae.schema.projection import ColumnProjection
    from laminae.schema.widening import is_safe_widening
    from laminae.version import __version__

__all__ = [
    "__version__",
    "ColumnProjection",
    "CompatibilityMode",
    "Database",
    "EvolutionResult",
    "EvolutionTrigger",
    "EvolutionVerdict",
    "LaminaeError",
    "Result",
    "SchemaChange",
    "SchemaEvolvable",
    "SchemaNotice",
    "apply_evolution",
    "check_avro",
    "connect",
    "diff_schemas",
    "evaluate_evolution",
    "is_safe_widening",
]

_MODULES = {
    "__version__": "version",
    "ColumnProjection": "schema.projection",
    "CompatibilityMode": "schema.compatibility",
    "Database": "api.database",
    "EvolutionResult": "schema.evolvable",
    "EvolutionTrigger": "schema.evolvable",
    "EvolutionVerdict": "schema.compatibility",
    "LaminaeError": "errors",
    "Result": "api.result",
    "SchemaChange": "schema.change",
    "SchemaEvolvable": "schema.evolvable",
    "SchemaNotice": "notifications.model",
    "apply_evolution": "schema.apply",
    "check_avro": "schema.avro",
    "connect": "api.database",
    "diff_schemas": "schema.diff",
    "evaluate_evolution": "schema.compatibility",
    "is_safe_widening": "schema.widening",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'laminae' has no attribute {name!r}")
    value = getattr(import_module(f"laminae.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
