"""The tables of the catalog, as numbered steps, and the one function that brings a catalog up to date.

A step that has been released is never edited: a change of the tables is a new step at the end.
Types are those that both databases take: SQLite leaves bytes in a BYTEA column as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.errors import CatalogCorrupt, NewerHome
from laminae.version import __version__

if TYPE_CHECKING:
    from laminae.catalog.driver import Driver

# Schemas stand last in their rows: SQLite reads through a long value to reach the columns behind it.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
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
        # The epoch whose table the sink began with. Sinks from before this step are taken to have begun at once.
        "ALTER TABLE sinks ADD COLUMN began BIGINT",
        "UPDATE sinks SET began = 0 WHERE state <> 'creating'",
    ),
    (
        # The latest event time of an epoch's rows, in microseconds, where the source has a watermark.
        "ALTER TABLE epochs ADD COLUMN event_time BIGINT",
        # Up to which epoch a view that is not live has everything.
        "ALTER TABLE views ADD COLUMN applied BIGINT NOT NULL DEFAULT 0",
        # What the columns that a view reads were called when it was written, by id.
        "ALTER TABLE views ADD COLUMN written TEXT NOT NULL DEFAULT '[]'",
        # The view whose state it goes on with.
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
        # Every epoch asks whether there are any, and most views have none.
        "CREATE INDEX advances_refused ON advances (owner_id) WHERE refused > 0",
    ),
    (
        # What the schema ids of a registry stand for in the records of a source, for epochs behind `after_epoch`.
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
)


def migrate(driver: Driver) -> None:
    """Apply the steps that are missing, each in a transaction of its own. Safe while other processes do the same."""
    while (found := _format(driver)) != len(MIGRATIONS):
        if found > len(MIGRATIONS):
            raise NewerHome(location=driver.location, found=found, known=len(MIGRATIONS))
        with driver.migrating() as transaction:
            # Another process may have made this step between the look and the lock.
            if _format(driver) == found:
                for statement in MIGRATIONS[found]:
                    transaction.execute(statement)
                transaction.execute("INSERT INTO meta (format, written_by) VALUES (?, ?)", found + 1, __version__)


def _format(driver: Driver) -> int:
    tables = driver.tables()
    if "meta" in tables:
        (found,) = driver.query("SELECT coalesce(max(format), 0) FROM meta")[0]
        return int(found)
    if tables:
        raise CatalogCorrupt(location=driver.location, problem=f"it holds {sorted(tables)[0]} of another program")
    return 0
