"""Printing what a managed server says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from lanner.cli.output import print_json, printable, shown_time
from lanner.model.transfer import Sequence
from lanner.protocols.management.presenting import Attempt, Source

__all__ = ["print_values", "shown"]


def print_values(values: Mapping[str, Any], *, as_json: bool, leave_out: bool = False) -> None:
    """Print properties: a line each, lists below each other."""
    if as_json:
        print_json({name: _for_json(value) for name, value in values.items()})
        return
    kept = {name: value for name, value in values.items() if value is not None or not leave_out}
    width = max((len(name) for name in kept), default=0)
    for name, value in kept.items():
        lines = (
            [shown(name, each) for each in value] if isinstance(value, list | tuple) else [shown(name, value)]
        )
        for number, line in enumerate(lines or ["none"]):
            typer.echo(f"{'' if number else name:<{width}}  {line}")


def shown(name: str, value: Any) -> str:
    """A value for people. What the server wrote is never obeyed by a terminal."""
    if value is None:
        return "-"
    if isinstance(value, Sequence):
        return f"stream {value.stream:#x}, number {value.number} after {value.previous}"
    if isinstance(value, Source):
        rejected = f", rejected {value.rejections} times" if value.rejections else ""
        return printable(
            f"{value.sender}: stream {value.stream:#x}, number {value.number}, "
            f"last at {shown_time(value.last_access)}{rejected}, to {value.format_name}"
        )
    if isinstance(value, Attempt):
        return printable(f"{shown_time(value.time)} {value.status} at {', '.join(value.addresses)}")
    if name.endswith("-time"):
        return shown_time(value) or "-"
    if isinstance(value, int):
        return f"{value:,}"
    return printable(value.hex() if isinstance(value, bytes) else str(value))


def _for_json(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value
