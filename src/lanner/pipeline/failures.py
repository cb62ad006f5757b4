"""What Spark says when it fails, in one line: its own texts go on with stack traces of Java and Python."""

from __future__ import annotations

import re

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

__all__ = ["SPARK_FAILURES", "one_line"]

SPARK_FAILURES: tuple[type[BaseException], ...] = (PySparkException, Py4JError)
"""Everything that a query, or making a session, raises besides our own errors."""

_TELLING = (
    # An error of ours, from a worker: its text is made for people.
    re.compile(r"^lanner\.[\w.]+: (.+)$", re.MULTILINE),
    # Java's, of which the innermost says what it was.
    re.compile(r"^(?:: |Caused by: )[\w.]+\.[\w$]+: (.+)$", re.MULTILINE),
    # Anybody else's in Python, whose text alone may say nothing.
    re.compile(r"^((?:\w+\.)*\w+(?:Error|Exception): .+)$", re.MULTILINE),
)

_STATE = re.compile(r"(?:\s+SQLSTATE: \w+)+$")


def one_line(error: BaseException) -> str:
    """The line that a person can do something with."""
    text = str(error)
    for pattern in _TELLING:
        found = pattern.findall(text)
        if found:
            return _STATE.sub("", str(found[-1]))
    lines = text.strip().splitlines()
    return _STATE.sub("", lines[0]) if lines else type(error).__name__
