"""The durable catalog: sources with their schema versions, views, sinks, epochs and the lease of a home.

Knows nothing of Spark. Definitions are read as values and changed by committing updates atomically.
"""

from laminae.catalog.opening import open_catalog
from laminae.catalog.port import Catalog, Committed

__all__ = ["Catalog", "Committed", "open_catalog"]
