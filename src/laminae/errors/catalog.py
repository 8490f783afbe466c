"""The catalog, the home it lies in, and the lease of the one who runs it."""

from __future__ import annotations

from laminae.errors.root import ErrorRow, LaminaeError


class ConcurrentChange(LaminaeError):
    code = "CONCURRENT_CHANGE"
    row = ErrorRow(
        "{name} was changed concurrently: expected version {expected}, found {found}",
        "Read the current definition and repeat the statement. This statement changed nothing.",
    )


class ChangeNotPending(LaminaeError):
    code = "CHANGE_NOT_PENDING"
    row = ErrorRow(
        "Change {change_id} of {source} is not pending: {problem}",
        "List the pending changes: SELECT * FROM laminar_catalog.pending_changes.",
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
        "Restore the catalog from a backup.",
    )


class NewerHome(LaminaeError):
    code = "NEWER_HOME"
    row = ErrorRow(
        "{location} was written by a newer version of laminae (format {found}; this version supports up to {known})",
        "Install the version of laminae that wrote it, or a newer one.",
    )


class HomeUnwritable(LaminaeError):
    code = "HOME_UNWRITABLE"
    row = ErrorRow(
        "The home {location} cannot be written: {problem}",
        "Grant write permission, free disk space, or choose another home.",
    )


class LeaseHeld(LaminaeError):
    code = "LEASE_HELD"
    row = ErrorRow(
        "{location} is being run by {holder}",
        "Stop that driver first. The lease of a dead driver expires within {seconds} seconds.",
    )


class LeaseLost(LaminaeError):
    code = "LEASE_LOST"
    row = ErrorRow(
        "The lease on {location} was taken over by {holder} (token {found}, expected {expected})",
        "Stop this driver: another driver runs this home. This epoch was not committed.",
    )
