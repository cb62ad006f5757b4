"""Copies the write-ahead log back into the database, on a thread of its own.

SQLite would do it inside a commit, which then takes as long as copying 16 MB does. A passive
checkpoint from a second connection runs beside the commits instead.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from pathlib import Path

from lanner.store.database import open_checkpointer

__all__ = ["Checkpointer"]

log = logging.getLogger(__name__)

CHECKPOINT_BYTES = 16 * 1024 * 1024
"""The log is copied back when it has grown by this much."""


class Checkpointer:
    """Watches how much is written, and copies when it is enough."""

    def __init__(self, path: Path) -> None:
        self._connection = open_checkpointer(path)
        self._wanted = threading.Event()
        self._stopped = False
        self._written = 0
        self._thread = threading.Thread(target=self._run, name="lanner-checkpoint", daemon=True)
        self._thread.start()

    def wrote(self, size: int) -> None:
        """Note that the writer has committed about this many bytes."""
        self._written += size
        if self._written >= CHECKPOINT_BYTES:
            self._written = 0
            self._wanted.set()

    def close(self) -> None:
        """End the thread."""
        self._stopped = True
        self._wanted.set()
        self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            if self._stopped:
                return
            try:
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            except sqlite3.Error as error:
                # Nothing is lost: the log keeps growing, and the next round tries again.
                log.warning("the log could not be copied back: %s", error)
