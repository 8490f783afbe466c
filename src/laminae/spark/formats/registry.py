"""Opens the format of a source from its row in the table of formats (`engine/options/connectors.py`)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from laminae.engine.source_spec import spec_of
from laminae.errors import InvalidOption, NotAvailable

if TYPE_CHECKING:
    from laminae.catalog.model import SourceRecord
    from laminae.spark.formats.protocol import RecordFormat


def open_format(source: SourceRecord) -> RecordFormat:
    """The format of a source's records; NotAvailable if its connector does not carry it."""
    spec = spec_of(source)
    row, connector = spec.format, spec.connector
    opener = row.event_opener if spec.is_debezium else row.opener
    if row.name not in connector.formats or opener is None:
        raise NotAvailable(
            feature=connector.reading.format(format=row.name),
            problem=f"source {source.name} does not support it",
            advice=f"Use one of {', '.join(connector.formats)}.",
        )
    if not row.has_version_field:
        refuse_version_field(source, row.name)
    return cast("RecordFormat", imported(opener)(source))


def refuse_version_field(source: SourceRecord, kind: str) -> None:
    if spec_of(source).version_field is not None:
        raise InvalidOption(
            option="version_field",
            owner=source.name,
            problem=f"records of {kind} files have the schema version in force at the position of their file",
            advice="Omit it, or use format = 'json'.",
        )


def imported(opener: str) -> Any:
    """The function that a row names as `module:function`."""
    module, _, function = opener.partition(":")
    return getattr(import_module(module), function)
