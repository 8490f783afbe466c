"""laminae: live schema evolution and incremental, retracting views for Spark streams."""

__version__ = "0.1.0"
