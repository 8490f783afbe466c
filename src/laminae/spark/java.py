"""Classes of the JVM by their whole names.

py4j asks for `jvm.org.apache.spark.X` part by part, and the JVM looks in every jar for classes `org`, `org.apache` and
so on, which are not there: 2 ms for a name, in every epoch that is planned anew.
"""

from __future__ import annotations

from typing import Any

TO_SEQUENCES = "org.apache.spark.api.python.PythonUtils"
EXPRESSIONS = "org.apache.spark.sql.classic.ExpressionUtils"


def java_class(jvm: Any, name: str) -> Any:
    return getattr(jvm, name)


def scala_object(jvm: Any, name: str) -> Any:
    return getattr(getattr(jvm, f"{name}$"), "MODULE$")
