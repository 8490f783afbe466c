"""Who wants to know that a schema has changed is told: what changed, the verdict, the version."""

from laminae.notices.courier import Courier, NoticeCounts
from laminae.notices.model import SchemaNotice

__all__ = ["Courier", "NoticeCounts", "SchemaNotice"]
