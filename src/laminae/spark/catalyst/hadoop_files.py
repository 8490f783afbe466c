"""Checkpoint files through Hadoop's FileSystem, on a local directory, HDFS or an object store.

A file written through it gets the checksum file that Spark's reader expects next to it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from laminae.spark.catalyst.jvm import java_class

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class HadoopFiles:
    """File operations on path strings; a path without a scheme is on the session's default file system.

    The Hadoop configuration is made once: building it from the session's settings takes milliseconds, and every file
    operation needs it.
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
        """The absolute path with its scheme, which is valid in every process."""
        # The JVM does not see a change of this process's working directory.
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
        """The modification time of each file in a directory, in seconds since the epoch."""
        if not self.exists(directory):
            return {}
        statuses = self._system(directory).listStatus(self._path(directory))
        return {status.getPath().getName(): status.getModificationTime() / 1000 for status in statuses}

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
        """Copy a file or a directory recursively."""
        copied = java_class(self._jvm, "org.apache.hadoop.fs.FileUtil").copy(
            self._system(source), self._path(source), self._system(target), self._path(target), False, self.conf
        )
        if not copied:
            raise OSError(f"{source} could not be copied to {target}")

    def make(self, directory: str) -> None:
        self._system(directory).mkdirs(self._path(directory))

    def rename(self, source: str, target: str) -> bool:
        """Rename, atomically where the file system supports it; False when the target exists or the rename failed."""
        return not self.exists(target) and bool(self._system(source).rename(self._path(source), self._path(target)))

    def delete(self, path: str) -> None:
        self._system(path).delete(self._path(path), True)
