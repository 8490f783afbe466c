"""Access to other systems: HTTP requests, PostgreSQL connections, and the one backoff between attempts.

It must know no registry, no source and no sink: settings come from the caller, failures go back as values or errors.
"""
