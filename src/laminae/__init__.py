"""laminae: live schema evolution and incremental, retracting views for Spark streams.

Importing it loads neither pyspark nor any connector; they load when used.
"""

from laminae.errors import LaminaeError
from laminae.result import Result
from laminae.schema.apply import apply_evolution
from laminae.schema.avro import check_avro
from laminae.schema.change import SchemaChange
from laminae.schema.compatibility import CompatibilityMode, EvolutionVerdict, evaluate_evolution
from laminae.schema.diff import diff_schemas
from laminae.schema.evolvable import EvolutionResult, EvolutionTrigger, SchemaEvolvable
from laminae.schema.projection import ColumnProjection
from laminae.schema.widening import is_safe_widening
from laminae.session import Database, connect
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
    "apply_evolution",
    "check_avro",
    "connect",
    "diff_schemas",
    "evaluate_evolution",
    "is_safe_widening",
]
