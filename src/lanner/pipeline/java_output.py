"""Standard error under ``spark-submit``, which gives the driver's Python one pipe for both outputs.

What is written to standard error there comes out of standard output, among the JSON. Java's own standard
error is that of the command.
"""

from __future__ import annotations

import io
from typing import Any

from pyspark import SparkContext

__all__ = ["JavaErrors"]


class JavaErrors(io.TextIOBase):
    """A text file whose lines Java writes to its standard error."""

    def __init__(self) -> None:
        SparkContext._ensure_initialized()  # connects to the Java that started us
        jvm: Any = SparkContext._jvm
        self._out = jvm.System.err

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, text: str) -> int:
        """Hand the text over."""
        self._out.print(text)
        return len(text)

    def flush(self) -> None:
        """Let it out."""
        self._out.flush()
