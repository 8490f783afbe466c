"""Checks the arguments of the public API, so that a wrong argument raises a LaminaeError at the call itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NoReturn

from laminae.catalog.names import LONGEST_NAME, name_fault
from laminae.errors import InvalidName, InvalidOption

LAST_EPOCH = 2**63 - 1


def refuse_connect_arguments(spark: object, catalog: object, jars: object, config: object, on_change: object) -> None:
    """Raise InvalidOption for the first argument that could not be used later."""
    # Checked on the class: reading the property on the session itself would create a reader.
    if spark is not None and not (hasattr(type(spark), "readStream") and hasattr(type(spark), "sql")):
        _refuse("spark", spark, "Pass a SparkSession, or omit the argument.")
    if catalog is not None and not isinstance(catalog, str):
        _refuse("catalog", catalog, "Pass 'postgresql://user@host:5432/database', or omit the argument.")
    if isinstance(jars, str) or not isinstance(jars, Iterable) or not all(isinstance(jar, str) for jar in jars):
        _refuse("jars", jars, "Pass a list of paths: jars=['/path/connector.jar'].")
    if config is not None and not (isinstance(config, Mapping) and all(isinstance(name, str) for name in config)):
        _refuse("config", config, "Pass a dict of Spark settings: config={'spark.master': 'local[2]'}.")
    if config and (unfit := [name for name, value in config.items() if not isinstance(value, str | int | float)]):
        _refuse(f"config[{unfit[0]!r}]", config[unfit[0]], "Pass the value as a string.")
    if on_change is not None and not callable(on_change):
        _refuse("on_change", on_change, "Pass a function that takes a SchemaNotice.")


def savepoint_name(name: object) -> str:
    problem = name_fault(name) if isinstance(name, str) else f"it is of type {type(name).__name__}, not text"
    if problem or not isinstance(name, str):
        raise InvalidName(name=repr(name)[:LONGEST_NAME], kind="savepoint", problem=problem)
    return name


def epoch_number(epoch: object) -> int:
    if not isinstance(epoch, int) or isinstance(epoch, bool):
        advice = "Pass an epoch number, such as the _epoch of a change."
        raise InvalidOption(option="since_epoch", owner="changes", problem=f"{epoch!r} is not a number", advice=advice)
    return max(0, min(epoch, LAST_EPOCH))


def page(limit: object, offset: object) -> range:
    """The range of rows that are requested; without a limit, all after the first `offset`."""
    for name, value in (("limit", limit if limit is not None else 0), ("offset", offset)):
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= LAST_EPOCH:
            advice = "Pass an integer of 0 or more."
            raise InvalidOption(option=name, owner="dead_letters", problem=f"{value!r} does not fit", advice=advice)
    first = int(str(offset))
    return range(first, LAST_EPOCH if limit is None else first + int(str(limit)))


def _refuse(argument: str, given: object, advice: str) -> NoReturn:
    raise InvalidOption(option=argument, owner="connect", problem=f"it is {type(given).__name__}", advice=advice)
