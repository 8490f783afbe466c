"""The catalog, the home it lies in, and the lease of the one who runs it."""

from __future__ import annotations

from laminae.errors.root import ErrorRow, LaminaeError


class ConcurrentChange(LaminaeError):
    code = "CONCURRENT_CHANGE"
    row = ErrorRow(
        "{name} was changed by someone else: expected version {expected}, found {found}",
        "Read the object again and repeat the statement; nothing was changed by this one.",
    )


class ChangeNotPending(LaminaeError):
    code = "CHANGE_NOT_PENDING"
    row = ErrorRow(
        "Change {change_id} of {source} is not pending: {problem}",
        "List what waits with SELECT * FROM laminar_catalog.pending_changes.",
    )


class CatalogUnavailable(LaminaeError):
    code = "CATALOG_UNAVAILABLE"
    row = ErrorRow(
        "The catalog {location} cannot be used: {problem}",
        "{advice}",
    )


class CatalogCorrupt(LaminaeError):
    code = "CATALOG_CORRUPT"
    row = ErrorRow(
        "The catalog {location} is damaged: {problem}",
        "Restore the file from a backup; laminae does not guess at damaged definitions.",
    )


class NewerHome(LaminaeError):
    code = "NEWER_HOME"
    row = ErrorRow(
        "{location} was written by a newer laminae (format {found}, this one knows up to {known})",
        "Install a laminae at least as new as the one that wrote it.",
    )


class HomeUnwritable(LaminaeError):
    code = "HOME_UNWRITABLE"
    row = ErrorRow(
        "The home {location} cannot be written: {problem}",
        "Give the user write permission there, free space on the disk, or choose another home.",
    )


class LeaseHeld(LaminaeError):
    code = "LEASE_HELD"
    row = ErrorRow(
        "{location} is being run by {holder}",
        "Stop that driver first; if it is dead, its lease expires by itself within {seconds} seconds.",
    )


class LeaseLost(LaminaeError):
    code = "LEASE_LOST"
    row = ErrorRow(
        "The lease on {location} was taken over by {holder} (token {found}, ours was {expected})",
        "Stop this driver: another one is running the pipelines. Nothing of this epoch was committed.",
    )
