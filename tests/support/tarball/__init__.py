"""A connector that is not shipped: a directory with one tar file for each day, each with gzip files of lines."""

from laminae.engine.options.connectors import Connector

ROW = Connector(
    "tarball",
    "tests.support.tarball.source:open_source",
    formats=("json",),
    reading="Reading {format} from tar files",
)
