"""The tables of the catalog as numbered migration steps, and the function that brings a catalog up to date.

A released step is never edited: a change of the tables is a new step at the end. Types are those that both databases
accept: SQLite stores bytes in a BYTEA column unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.catalog.initial_defaults import write_initial_defaults
from laminae.errors import CatalogCorrupt, NewerHome
from laminae.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable

    from laminae.catalog.drivers.protocol import Driver, Transaction

# Schemas are the last column of their rows: SQLite reads through a long value to reach the columns after it.
MIGRATIONS: tuple[tuple[str | Callable[[Transaction], None], ...], ...] = (
    (
        "CREATE TABLE meta (format BIGINT PRIMARY KEY, written_by TEXT NOT NULL)",
        """CREATE TABLE counters (
            id BIGINT PRIMARY KEY CHECK (id = 1),
            definition_seq BIGINT NOT NULL,
            epoch BIGINT NOT NULL,
            object_id BIGINT NOT NULL,
            change_id BIGINT NOT NULL)""",
        "INSERT INTO counters (id, definition_seq, epoch, object_id, change_id) VALUES (1, 0, 0, 0, 0)",
        """CREATE TABLE sources (
            id BIGINT PRIMARY KEY,
            name TEXT NOT NULL,
            name_key TEXT NOT NULL,
            version BIGINT NOT NULL,
            next_column_id BIGINT NOT NULL,
            options TEXT NOT NULL,
            primary_key TEXT NOT NULL,
            watermark_column BIGINT,
            watermark_delay_us BIGINT,
            last_verdict TEXT,
            created_at TEXT NOT NULL,
            dropped_at TEXT,
            definition_seq BIGINT NOT NULL)""",
        "CREATE UNIQUE INDEX sources_live ON sources (name_key) WHERE dropped_at IS NULL",
        """CREATE TABLE schema_versions (
            source_id BIGINT NOT NULL REFERENCES sources (id),
            version BIGINT NOT NULL,
            set_off_by TEXT NOT NULL,
            compatibility TEXT NOT NULL,
            forced BIGINT NOT NULL,
            schema_id BIGINT,
            registry_version BIGINT,
            position TEXT,
            applied_at TEXT NOT NULL,
            arrow_schema BYTEA NOT NULL,
            PRIMARY KEY (source_id, version))""",
        "CREATE INDEX versions_placed ON schema_versions (source_id, version) WHERE position IS NOT NULL",
        """CREATE TABLE schema_history (
            source_id BIGINT NOT NULL,
            version BIGINT NOT NULL,
            ordinal BIGINT NOT NULL,
            change_type TEXT NOT NULL,
            column_name TEXT NOT NULL,
            old_type TEXT,
            new_type TEXT,
            old_name TEXT,
            default_value TEXT,
            PRIMARY KEY (source_id, version, ordinal),
            FOREIGN KEY (source_id, version) REFERENCES schema_versions (source_id, version))""",
        """CREATE TABLE pending_changes (
            id BIGINT PRIMARY KEY,
            source_id BIGINT NOT NULL REFERENCES sources (id),
            base_version BIGINT NOT NULL,
            fingerprint TEXT NOT NULL,
            summary TEXT NOT NULL,
            reasons TEXT NOT NULL,
            set_off_by TEXT NOT NULL,
            schema_id BIGINT,
            registry_version BIGINT,
            state TEXT NOT NULL,
            created_at TEXT NOT NULL,
            resolved_at TEXT,
            arrow_schema BYTEA NOT NULL,
            UNIQUE (source_id, base_version, fingerprint))""",
        """CREATE TABLE views (
            id BIGINT PRIMARY KEY,
            name TEXT NOT NULL,
            name_key TEXT NOT NULL,
            query TEXT NOT NULL,
            emit TEXT,
            options TEXT NOT NULL,
            state TEXT NOT NULL,
            problem TEXT,
            reads TEXT NOT NULL,
            created_at TEXT NOT NULL,
            dropped_at TEXT,
            definition_seq BIGINT NOT NULL)""",
        "CREATE UNIQUE INDEX views_live ON views (name_key) WHERE dropped_at IS NULL",
        """CREATE TABLE sinks (
            id BIGINT PRIMARY KEY,
            name TEXT NOT NULL,
            name_key TEXT NOT NULL,
            relation TEXT NOT NULL,
            options TEXT NOT NULL,
            state TEXT NOT NULL,
            problem TEXT,
            progress BIGINT NOT NULL,
            created_at TEXT NOT NULL,
            dropped_at TEXT,
            definition_seq BIGINT NOT NULL)""",
        "CREATE UNIQUE INDEX sinks_live ON sinks (name_key) WHERE dropped_at IS NULL",
        """CREATE TABLE epochs (
            epoch BIGINT PRIMARY KEY,
            source_id BIGINT NOT NULL REFERENCES sources (id),
            batch_id BIGINT NOT NULL,
            start_offsets TEXT NOT NULL,
            end_offsets TEXT NOT NULL,
            version BIGINT NOT NULL,
            row_count BIGINT NOT NULL,
            committed_at TEXT NOT NULL,
            UNIQUE (source_id, batch_id))""",
        "CREATE INDEX epochs_of_source ON epochs (source_id, epoch)",
        """CREATE TABLE leases (
            id BIGINT PRIMARY KEY CHECK (id = 1),
            token BIGINT NOT NULL,
            holder TEXT,
            host TEXT,
            pid BIGINT,
            expires_at TEXT)""",
        "INSERT INTO leases (id, token) VALUES (1, 0)",
        "CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    ),
    (
        "ALTER TABLE epochs ADD COLUMN segment TEXT",
        "ALTER TABLE epochs ADD COLUMN dead_letters BIGINT NOT NULL DEFAULT 0",
        "ALTER TABLE epochs ADD COLUMN dead_letter_segment TEXT",
        "ALTER TABLE epochs ADD COLUMN replayed_by BIGINT",
    ),
    ("CREATE TABLE savepoints (name TEXT PRIMARY KEY, epoch BIGINT NOT NULL, created_at TEXT NOT NULL)",),
    (
        "ALTER TABLE sources ADD COLUMN problem TEXT",
        # The epoch whose table the sink started with. Sinks older than this step are assumed to have started at once.
        "ALTER TABLE sinks ADD COLUMN began BIGINT",
        "UPDATE sinks SET began = 0 WHERE state <> 'creating'",
    ),
    (
        # The latest event time of an epoch's rows, in microseconds, if the source has a watermark.
        "ALTER TABLE epochs ADD COLUMN event_time BIGINT",
        # The epoch up to which a view that is not live has applied everything.
        "ALTER TABLE views ADD COLUMN applied BIGINT NOT NULL DEFAULT 0",
        # The names that the columns a view reads had when it was defined, by id.
        "ALTER TABLE views ADD COLUMN written TEXT NOT NULL DEFAULT '[]'",
        # The replaced view whose state it continues with.
        "ALTER TABLE views ADD COLUMN former BIGINT",
        # What an epoch did to a view or to the table of a source: its changelog. `owner_id` is the object's id.
        """CREATE TABLE advances (
            owner_id BIGINT NOT NULL,
            epoch BIGINT NOT NULL,
            files TEXT NOT NULL,
            row_count BIGINT NOT NULL,
            anomalies BIGINT NOT NULL,
            dropped BIGINT NOT NULL,
            bound BIGINT,
            late BIGINT NOT NULL,
            late_files TEXT NOT NULL,
            arrow_schema BYTEA NOT NULL,
            PRIMARY KEY (owner_id, epoch))""",
        """CREATE TABLE manifests (
            owner_id BIGINT NOT NULL,
            operator TEXT NOT NULL,
            shard BIGINT NOT NULL,
            epoch BIGINT NOT NULL,
            manifest TEXT NOT NULL,
            PRIMARY KEY (owner_id, operator, shard, epoch))""",
    ),
    (
        # Rows on which an expression of a view failed, and the directories that hold them.
        "ALTER TABLE advances ADD COLUMN refused BIGINT NOT NULL DEFAULT 0",
        "ALTER TABLE advances ADD COLUMN refused_files TEXT NOT NULL DEFAULT '[]'",
    ),
    (
        # Every epoch checks whether there are any, and most views have none.
        "CREATE INDEX advances_refused ON advances (owner_id) WHERE refused > 0",
    ),
    (
        # The bindings of registry schema ids for the records of a source, for epochs after `after_epoch`.
        """CREATE TABLE writer_schemas (
            source_id BIGINT NOT NULL REFERENCES sources (id),
            schema_id BIGINT NOT NULL,
            after_epoch BIGINT NOT NULL,
            registry_version BIGINT,
            applied BIGINT NOT NULL,
            refusal TEXT,
            avro TEXT NOT NULL,
            arrow_schema BYTEA NOT NULL,
            PRIMARY KEY (source_id, schema_id, after_epoch))""",
    ),
    (
        # Changes that a view has computed and holds back until its next timer. Views older than this step compare their
        # tables at the timer instead.
        "ALTER TABLE advances ADD COLUMN held_files TEXT NOT NULL DEFAULT '[]'",
        "ALTER TABLE views ADD COLUMN keeps_held BIGINT NOT NULL DEFAULT 0",
        # The watermark under which an epoch or a timer of a view was computed, in microseconds.
        "ALTER TABLE advances ADD COLUMN watermark BIGINT",
        "CREATE INDEX advances_watermark ON advances (owner_id, watermark) WHERE watermark IS NOT NULL",
    ),
    # Records older than a column used to show its current default; from here on they show the one it was added with.
    (write_initial_defaults,),
    (
        # JSON numbers in TIMESTAMP columns used to be read as seconds. Sources created before this step keep that.
        """UPDATE sources SET options = CASE WHEN options = '{}' THEN '{"timestamp_unit": "seconds"}'
            ELSE substr(options, 1, length(options) - 1) || ', "timestamp_unit": "seconds"}' END
            WHERE replace(options, '"format": ', '') = options
            OR replace(options, '"format": "json"', '') <> options""",
    ),
    (
        # How a view's query is parsed: 1 by sqlglot's dialect, as every view before this step, 2 as Spark does.
        "ALTER TABLE views ADD COLUMN reading BIGINT NOT NULL DEFAULT 1",
    ),
    (
        # The sum of a view's changelog over a range of epochs, for views without other state. `is_plain`: all weights
        # are 1.
        """CREATE TABLE compacted_changes (
            owner_id BIGINT NOT NULL,
            first_epoch BIGINT NOT NULL,
            last_epoch BIGINT NOT NULL,
            files TEXT NOT NULL,
            row_count BIGINT NOT NULL,
            is_plain BIGINT NOT NULL,
            created_at TEXT NOT NULL,
            arrow_schema BYTEA NOT NULL,
            PRIMARY KEY (owner_id, first_epoch, last_epoch))""",
    ),
    (
        # The change that records of an epoch wait for; they are dead letters until then. NULL before this step.
        "ALTER TABLE epochs ADD COLUMN waits_for BIGINT",
        # The rules by which the values of an epoch were decoded (`model.READING`): a re-read uses the same.
        "ALTER TABLE epochs ADD COLUMN reading BIGINT NOT NULL DEFAULT 1",
    ),
)


def migrate(driver: Driver) -> None:
    """Apply the missing steps, each in its own transaction. Safe while other processes do the same."""
    while (format_number := _format(driver)) != len(MIGRATIONS):
        if format_number > len(MIGRATIONS):
            raise NewerHome(location=driver.location, found=format_number, known=len(MIGRATIONS))
        with driver.migrating() as transaction:
            # Another process may have applied this step between the check and the lock.
            if _format(driver) == format_number:
                for step in MIGRATIONS[format_number]:
                    if isinstance(step, str):
                        transaction.execute(step)
                    else:
                        step(transaction)
                transaction.execute(
                    "INSERT INTO meta (format, written_by) VALUES (?, ?)", format_number + 1, __version__
                )


def _format(driver: Driver) -> int:
    tables = driver.tables()
    if "meta" in tables:
        (format_number,) = driver.query("SELECT coalesce(max(format), 0) FROM meta")[0]
        return int(format_number)
    if tables:
        raise CatalogCorrupt(
            location=driver.location, problem=f"it contains the table {sorted(tables)[0]} of another program"
        )
    return 0
