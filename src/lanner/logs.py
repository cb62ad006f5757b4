"""Logs for people or for programs, on standard error."""

from __future__ import annotations

import logging
import re
import sys
from datetime import UTC, datetime

import msgspec

from lanner.config import LogConfig

__all__ = ["configure_logs"]

_BUILT_IN = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


class _HumanFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        said = record.getMessage()
        text = f"{_time(record)} {record.levelname.lower():7} {said}{_unsaid(record, said)}"
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        return text


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_own_fields(record),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(fields, enc_hook=str).decode()


def configure_logs(config: LogConfig) -> None:
    """Send all logs to standard error in the wanted form."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonFormatter() if config.format == "json" else _HumanFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(config.level.upper())


def _own_fields(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in record.__dict__.items() if name not in _BUILT_IN}


def _unsaid(record: logging.LogRecord, said: str) -> str:
    """The fields of a record that its text does not tell already."""
    fields = []
    for name, value in _own_fields(record).items():
        values = [str(one) for one in value] if isinstance(value, list | tuple) else [str(value)]
        missing = [one for one in values if not re.search(rf"(?<!\w){re.escape(one)}(?!\w)", said)]
        if missing:
            fields.append(f"{name}={','.join(missing)}")
    return f" ({' '.join(fields)})" if fields else ""


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
