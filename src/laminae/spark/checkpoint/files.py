"""The files of checkpoints through Hadoop's FileSystem: a local directory, HDFS or an object store alike.

Written through it, a file has the checksum beside it that Spark's reader will look for.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from laminae.spark.java import java_class

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class HadoopFiles:
    """Paths are texts; one without a scheme is on the session's default file system. The session's settings are read
    once: to make Hadoop's of them takes milliseconds, and every file asks for them.
    """

    spark: SparkSession

    @property
    def _jvm(self) -> Any:
        return self.spark._jvm

    @cached_property
    def conf(self) -> Any:
        return self.spark._jsparkSession.sessionState().newHadoopConf()

    def _path(self, path: str) -> Any:
        return java_class(self._jvm, "org.apache.hadoop.fs.Path")(path)

    def _system(self, path: str) -> Any:
        return self._path(path).getFileSystem(self.conf)

    def qualified(self, path: str) -> str:
        """The path with its scheme and from its root, so that it means the same everywhere."""
        # The JVM does not follow this process when it changes its directory.
        if ":" not in path and self._system(path).getScheme() == "file":
            path = os.path.abspath(path)
        return str(self._system(path).makeQualified(self._path(path.rstrip("/"))).toString())

    def exists(self, path: str) -> bool:
        return bool(self._system(path).exists(self._path(path)))

    def names(self, directory: str) -> tuple[str, ...]:
        if not self.exists(directory):
            return ()
        return tuple(
            sorted(status.getPath().getName() for status in self._system(directory).listStatus(self._path(directory)))
        )

    def times(self, directory: str) -> dict[str, float]:
        """When each file of a directory was written, in seconds since the epoch."""
        if not self.exists(directory):
            return {}
        found = self._system(directory).listStatus(self._path(directory))
        return {status.getPath().getName(): status.getModificationTime() / 1000 for status in found}

    def read(self, path: str) -> bytes | None:
        if not self.exists(path):
            return None
        stream = self._system(path).open(self._path(path))
        try:
            return bytes(java_class(self._jvm, "org.apache.commons.io.IOUtils").toByteArray(stream))
        finally:
            stream.close()

    def write(self, path: str, content: bytes) -> None:
        stream = self._system(path).create(self._path(path), True)
        try:
            stream.write(content)
        finally:
            stream.close()

    def copy(self, source: str, target: str) -> None:
        """A file or a directory with all in it, under its new name."""
        copied = java_class(self._jvm, "org.apache.hadoop.fs.FileUtil").copy(
            self._system(source), self._path(source), self._system(target), self._path(target), False, self.conf
        )
        if not copied:
            raise OSError(f"{source} could not be copied to {target}")

    def make(self, directory: str) -> None:
        self._system(directory).mkdirs(self._path(directory))

    def rename(self, source: str, target: str) -> bool:
        """One step on a file system that has it; False when the target is there or the step failed."""
        return not self.exists(target) and bool(self._system(source).rename(self._path(source), self._path(target)))

    def delete(self, path: str) -> None:
        self._system(path).delete(self._path(path), True)
