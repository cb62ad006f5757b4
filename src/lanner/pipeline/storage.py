"""Small files beside the tables, read and written through Hadoop so that any file system will do."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

__all__ = ["Storage"]


class Storage:
    """Texts and directories below one root, on whatever file system its address names."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self.root = root.rstrip("/")
        jvm: Any = spark._jvm
        session: Any = spark._jsparkSession
        self._path = jvm.org.apache.hadoop.fs.Path
        self._io = jvm.org.apache.commons.io.IOUtils
        self._system = self._path(self.root).getFileSystem(session.sessionState().newHadoopConf())

    def at(self, name: str) -> str:
        """The address of something below the root."""
        return f"{self.root}/{name}"

    def names(self, directory: str) -> list[str]:
        """What is in a directory, sorted; nothing if it is not there."""
        path = self._path(self.at(directory))
        if not self._system.exists(path):
            return []
        return sorted(entry.getPath().getName() for entry in self._system.listStatus(path))

    def read(self, name: str) -> bytes:
        """Read a small file."""
        stream = self._system.open(self._path(self.at(name)))
        try:
            return bytes(self._io.toByteArray(stream))
        finally:
            stream.close()

    def write(self, name: str, data: bytes) -> bool:
        """Write a small file that is there as a whole or not at all. Says no if it was there before."""
        target = self._path(self.at(name))
        if self._system.exists(target):
            return False
        beside = self._path(self.at(f"{name}.unfinished"))
        stream = self._system.create(beside, True)
        try:
            stream.write(bytearray(data))
        finally:
            stream.close()
        return bool(self._system.rename(beside, target))

    def delete(self, name: str) -> None:
        """Remove a file or a directory with everything in it."""
        self._system.delete(self._path(self.at(name)), True)
