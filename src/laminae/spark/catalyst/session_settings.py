"""Session settings stored with a home, so that its SQL has the same meaning in every session that runs it.

Epochs, backfills, replays and SELECTs must get their session from `SessionInForce`. It returns a clone of the base
session and never changes the base session.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from laminae.catalog.updates import PutSetting
from laminae.spark.catalyst.jvm import SESSIONS, java_class

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from laminae.catalog.port import Catalog

LOG = logging.getLogger(__name__)

FIXED = {
    # `${env:NAME}` and `${system:name}` in a string, a name or a default are not substituted.
    "spark.sql.variable.substitute": "false",
    # laminae parses view queries without Spark: double quotes delimit a string there, and backticks an identifier.
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    # No SELECT may read json.`/path`, whatever query text reaches Spark.
    "spark.sql.runSQLOnFiles": "false",
    # Off by default in Spark 4.2. A user's session without it could not even analyze a column of type TIME.
    "spark.sql.timeType.enabled": "true",
    # An unreadable file must become a dead letter or a source problem; it must not be skipped silently.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # View plans group with the DataFrame API and expect the keys in the result.
    "spark.sql.retainGroupColumns": "true",
}
"""Settings that laminae's own plans rely on. They override those of the session and of the home."""

DECIDE_MEANING = (
    "spark.sql.session.timeZone",
    "spark.sql.timestampType",
    "spark.sql.caseSensitive",
    "spark.sql.ansi.enabled",
    "spark.sql.ansi.doubleQuotedIdentifiers",
    "spark.sql.ansi.enforceReservedKeywords",
    "spark.sql.ansi.relationPrecedence",
    "spark.sql.storeAssignmentPolicy",
    "spark.sql.decimalOperations.allowPrecisionLoss",
    "spark.sql.mapKeyDedupPolicy",
    "spark.sql.function.concatBinaryAsString",
    "spark.sql.function.eltOutputAsString",
    "spark.sql.functionResolution.sessionOrder",
    "spark.sql.chunkBase64String.enabled",
    "spark.sql.icu.caseMappings.enabled",
    "spark.sql.collation.allowInMapKeys",
    "spark.sql.parser.escapedStringLiterals",
    "spark.sql.parser.quotedRegexColumnNames",
    "spark.sql.groupByAliases",
    "spark.sql.groupByOrdinal",
    "spark.sql.orderByOrdinal",
    "spark.sql.lateralColumnAlias.enableImplicitResolution",
    "spark.sql.stableDerivedColumnAlias.enabled",
    "spark.sql.crossJoin.enabled",
    "spark.sql.charAsVarchar",
    "spark.sql.readSideCharPadding",
    "spark.sql.preserveCharVarcharTypeInfo",
    "spark.sql.json.enableExactStringParsing",
    "spark.sql.json.enablePartialResults",
    "spark.sql.jsonGenerator.ignoreNullFields",
    "spark.sql.variant.allowDuplicateKeys",
    "spark.sql.variant.validateUnicodeInJsonParsing",
    "spark.sql.parquet.binaryAsString",
    "spark.sql.parquet.int96AsTimestamp",
    "spark.sql.parquet.int96TimestampConversion",
    "spark.sql.parquet.inferTimestampNTZ.enabled",
    "spark.sql.parquet.datetimeRebaseModeInRead",
    "spark.sql.parquet.int96RebaseModeInRead",
    "spark.sql.avro.datetimeRebaseModeInRead",
    "spark.sql.legacy.sizeOfNull",
    "spark.sql.legacy.timeParserPolicy",
)
"""Spark SQL settings that change the meaning of an expression, a name or a stored value.

All of them are stored, even where the session has Spark's default: a later Spark may have another default (that of
`spark.sql.ansi.enabled` was reversed in 4.0).
"""

DECIDE_MEANING_IF_SET = ("spark.sql.legacy.", "spark.sql.ansi.")
"""Prefixes of settings that are stored if the session sets them. No others are stored: they may contain secrets."""


def meaning_of(session: SparkSession) -> dict[str, str]:
    """The current values of the settings that decide what expressions mean in this session."""
    explicit = dict(session.conf.getAll)
    values = {name: value for name, value in explicit.items() if name.startswith(DECIDE_MEANING_IF_SET)}
    for name in DECIDE_MEANING:
        try:
            values[name] = explicit.get(name) or str(session.conf.get(name))
        except PySparkException:
            # A setting that this Spark version does not know has no effect in it.
            LOG.info("this Spark has no setting %s", name)
    return values


def stored_meaning(catalog: Catalog) -> dict[str, str]:
    """The settings stored in the home; empty before its first run."""
    return {name: value for name, value in catalog.settings().items() if decides_meaning(name)}


def decides_meaning(name: str) -> bool:
    return name in DECIDE_MEANING or name.startswith(DECIDE_MEANING_IF_SET)


def cloned(session: SparkSession) -> SparkSession:
    """A clone of the session with independent settings."""
    return SparkSession(session.sparkContext, jsparkSession=session._jsparkSession.cloneSession())


@contextmanager
def active(session: SparkSession) -> Iterator[SparkSession]:
    """Make this the active session of the thread inside the context.

    `GroupedData.agg` takes type settings from the active session, not from the session of its frame; so does Spark's
    parser, whichever session calls it.
    """
    sessions: Any = java_class(session.sparkContext._jvm, SESSIONS)
    before = sessions.getActiveSession()
    sessions.setActiveSession(session._jsparkSession)
    try:
        yield session
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def put_in_force(session: SparkSession, meaning: Mapping[str, str]) -> None:
    """Apply the stored settings to a clone, and unset other settings that would change what expressions mean."""
    explicit = dict(session.conf.getAll)
    for name in explicit:
        if name.startswith(DECIDE_MEANING_IF_SET) and name not in meaning:
            session.conf.unset(name)
    for name, value in {**meaning, **FIXED}.items():
        if explicit.get(name) != value:
            session.conf.set(name, value)


@dataclass(slots=True)
class SessionInForce:
    """The session of a home. The home's stored settings override those of the base session."""

    base: SparkSession
    catalog: Catalog
    _session: SparkSession | None = None
    _stored: dict[str, str] = field(default_factory=dict)

    def session(self) -> SparkSession:
        """A session for reading. The base session's settings apply until the first driver has stored its settings."""
        stored = self._stored or stored_meaning(self.catalog)
        if self._session is None or stored != self._stored:
            own = meaning_of(self.base)
            _log_differences(own, stored)
            clone = cloned(self.base)
            put_in_force(clone, stored or own)
            self._session, self._stored = clone, stored
        return self._session

    def adopt(self) -> SparkSession:
        """A session for running epochs. The first driver stores its settings; settings already stored are kept."""
        stored = stored_meaning(self.catalog)
        missing = {name: value for name, value in meaning_of(self.base).items() if name not in stored}
        if not stored or any(name in DECIDE_MEANING for name in missing):
            new = {name: value for name, value in missing.items() if not stored or name in DECIDE_MEANING}
            self.catalog.commit([PutSetting(name, value, if_absent=True) for name, value in sorted(new.items())])
        return self.session()


def _log_differences(own: Mapping[str, str], stored: Mapping[str, str]) -> None:
    for name in sorted(stored.keys() & own.keys()):
        if own[name] != stored[name]:
            LOG.warning("the home runs with %s = %s; the session's %s is not used", name, stored[name], own[name])
