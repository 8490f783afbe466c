"""Notifies subscribers of schema changes: what changed, the verdict, the version.

Delivery runs in its own thread. A failure must never fail a statement or an epoch.
"""

from laminae.notifications.dispatcher import Dispatcher, NoticeCounts
from laminae.notifications.model import SchemaNotice

__all__ = ["Dispatcher", "NoticeCounts", "SchemaNotice"]
