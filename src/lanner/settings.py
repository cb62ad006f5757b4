"""How settings are put together: from defaults, ``lanner.toml``, the environment and flags.

What settings there are is said by whoever asks: a structure of sections, each a structure with defaults. A
queue manager asks for all of them, the pipeline for those that it needs.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from lanner.model.errors import InvalidPropertyError

__all__ = ["names_of", "read_settings"]

CONFIG_NAME = "lanner.toml"
ENVIRONMENT_PREFIX = "LANNER_"

MAX_CONFIG_BYTES = 1024 * 1024
"""Settings are written by people: a larger file is something else."""

Sections = TypeVar("Sections", bound=msgspec.Struct)


def names_of(kind: type[msgspec.Struct]) -> list[str]:
    """Every setting as ``section.name``."""
    default = kind()
    return [
        f"{section}.{name}"
        for section in kind.__struct_fields__
        for name in getattr(default, section).__struct_fields__
    ]


def read_settings(
    kind: type[Sections],
    *,
    file: Path | None = None,
    environment: Mapping[str, str] = os.environ,
    flags: Mapping[str, object] | None = None,
    elsewhere: Collection[str] = (),
) -> tuple[Sections, dict[str, str]]:
    """The settings, and for each that is not a default where it came from.

    Without ``file``, ``lanner.toml`` of the current directory counts. Sections ``elsewhere`` are not looked
    at; any other that is not known is an error.
    """
    values: dict[str, object] = {}
    sources: dict[str, str] = {}
    for name, value, source in (
        *(one for one in _from_file(file) if one[0].partition(".")[0] not in elsewhere),
        *_from_environment(kind, environment),
        *((name, value, f"flag --{name}") for name, value in (flags or {}).items() if value is not None),
    ):
        values[name] = value
        sources[name] = source
    return _convert(kind, values, sources), sources


def _from_file(file: Path | None) -> Iterator[tuple[str, object, str]]:
    path = file or Path(CONFIG_NAME)
    if file is None and not path.exists():
        return
    try:
        if path.stat().st_size > MAX_CONFIG_BYTES:
            raise InvalidPropertyError(f"{path} is larger than {MAX_CONFIG_BYTES:,} bytes")
        document = tomllib.loads(path.read_text())
    except OSError as error:
        raise InvalidPropertyError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise InvalidPropertyError(f"{path} is not TOML: {error}") from error
    for section, settings in document.items():
        if not isinstance(settings, dict):
            raise InvalidPropertyError(f"{path}: {section} stands outside of a section")
        for name, value in settings.items():
            yield f"{section}.{name}", value, f"file {path}"


def _from_environment(
    kind: type[msgspec.Struct], environment: Mapping[str, str]
) -> Iterator[tuple[str, object, str]]:
    for name in names_of(kind):
        variable = ENVIRONMENT_PREFIX + name.replace(".", "_").upper()
        if variable in environment:
            text = environment[variable]
            yield name, _from_text(kind, name, text), f"environment {variable}"


def _from_text(kind: type[msgspec.Struct], name: str, text: str) -> object:
    """Lists are written with commas, tables as ``name=value`` with commas between."""
    section, _, key = name.partition(".")
    default = getattr(getattr(kind(), section), key)
    if not isinstance(default, dict | tuple):
        return text
    entries = [entry for entry in text.split(",") if entry]
    if isinstance(default, tuple):
        return entries
    if not all("=" in entry for entry in entries):
        raise InvalidPropertyError(f"{name} = {text!r}: it must be name=value,name=value")
    return dict(entry.partition("=")[::2] for entry in entries)


def _convert(kind: type[Sections], values: Mapping[str, object], sources: Mapping[str, str]) -> Sections:
    known = names_of(kind)
    tree: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
            raise InvalidPropertyError(f"there is no setting {name} ({sources[name]})", hint=hint)
        section, _, key = name.partition(".")
        tree.setdefault(section, {})[key] = value
        try:
            msgspec.convert({section: {key: value}}, kind, strict=False)
        except msgspec.ValidationError as error:
            reason = str(error).partition(" - at")[0]
            raise InvalidPropertyError(f"{name} = {value!r} ({sources[name]}): {reason}") from error
    return msgspec.convert(tree, kind, strict=False)
