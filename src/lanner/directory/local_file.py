"""A directory as one TOML file: reading it.

The file is read as a whole. What cannot be understood is an error with its line and what to write
instead; what can be understood but will not work (unknown sites, gates in the wrong place, costs out of
range) is read as it stands, and ``lanner.directory.check`` reports it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from lanner.directory.base import InvalidDirectoryError
from lanner.directory.file_schema import LIMITS, MAX_FILE_BYTES, REQUIRED, TABLES, WrongValueError, nearest
from lanner.directory.places import Places
from lanner.model.enterprise import (
    ConnectedNetwork,
    Enterprise,
    EnterpriseMap,
    Machine,
    PublicQueue,
    RoutingLink,
    Site,
    derived_id,
)
from lanner.model.errors import LannerError
from lanner.model.names import read_guid
from lanner.model.queue import QueueProperties

__all__ = ["LoadedEnterprise", "load", "load_file"]

_SYNTAX_PLACE = re.compile(r"(.*) \(at line (\d+), column (\d+)\)$", re.DOTALL)


class LoadedEnterprise(NamedTuple):
    """What a file says, and what the checks need to name places and unknown names."""

    map: EnterpriseMap
    places: Places
    unknown: Mapping[UUID, str]
    """Names that stand for nothing in the file, by the identifiers that they were given in the snapshot."""


def load_file(path: Path) -> LoadedEnterprise:
    """Read a directory file. Raises InvalidDirectoryError, or OSError if it cannot be read."""
    with path.open("rb") as file:
        data = file.read(MAX_FILE_BYTES + 1)
    return load(data, str(path))


def load(data: bytes, source: str = "the file") -> LoadedEnterprise:
    """Read the bytes of a directory file. Raises InvalidDirectoryError."""
    if len(data) > MAX_FILE_BYTES:
        raise InvalidDirectoryError(f"{source} has more than {MAX_FILE_BYTES:,} bytes", hint="split it")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidDirectoryError(
            f"{source}:{line}: byte {data[error.start]:#04x} is not UTF-8", hint="save the file as UTF-8"
        ) from None
    # tomllib takes CRLF for a line end as well; the places count the same lines either way.
    return _Loader(_parsed(text, source), Places(text, source)).load()


def _parsed(text: str, source: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise InvalidDirectoryError(
            f"{source}: values are nested too deeply", hint="the file has tables and lists of texts alone"
        ) from None
    except ValueError as error:
        found = _SYNTAX_PLACE.match(str(error))
        where, what = (f"{source}:{found[2]}:{found[3]}", found[1]) if found else (source, str(error))
        raise InvalidDirectoryError(f"{where}: {what}", hint="texts need quotes, lists brackets") from None


class _Loader:
    """Turns the parsed file into a snapshot."""

    def __init__(self, data: dict[str, Any], places: Places) -> None:
        self.data = data
        self.places = places
        self.unknown: dict[UUID, str] = {}
        self.ids: dict[str, dict[str, UUID]] = {"site": {}, "network": {}, "manager": {}}

    def load(self) -> LoadedEnterprise:
        self._check_tables()
        fields, _ = self._read("enterprise", 0, self.data["enterprise"])
        fields.setdefault("id", derived_id("enterprise", fields["name"]))
        enterprise = Enterprise(**fields)
        self.enterprise = enterprise.id
        # Names are known before anything refers to them, wherever they stand in the file.
        rows = {table: self._rows(table) for table in ("site", "network", "manager", "link", "queue")}
        for table, ids in self.ids.items():
            for number, (fields, _) in enumerate(rows[table]):
                key = fields["name"].casefold()
                fields.setdefault("id", derived_id(table, key, enterprise=self.enterprise))
                if table != "manager" and key in ids:
                    raise self._wrong(
                        table, number, "name", f"{fields['name']!r} is named twice", "rename one"
                    )
                ids.setdefault(key, fields["id"])
        return LoadedEnterprise(
            EnterpriseMap(
                enterprise=enterprise,
                sites=tuple(Site(**fields) for fields, _ in rows["site"]),
                links=self._links(rows["link"]),
                networks=tuple(ConnectedNetwork(**fields) for fields, _ in rows["network"]),
                machines=tuple(Machine(**self._resolved("manager", fields)) for fields, _ in rows["manager"]),
                queues=self._queues(rows["queue"]),
            ),
            self.places,
            self.unknown,
        )

    def _check_tables(self) -> None:
        for table in self.data:
            if table not in TABLES:
                fix = nearest(table, TABLES) or f"there are {', '.join(TABLES)}"
                raise InvalidDirectoryError(f"{self.places.source}: unknown table {table!r}", hint=fix)
        if not isinstance(self.data.get("enterprise"), dict):
            raise InvalidDirectoryError(
                f"{self.places.source}: there is no [enterprise] table",
                hint='begin the file with [enterprise] and name = "..."',
            )

    def _rows(self, table: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        rows = self.data.get(table, [])
        if not isinstance(rows, list):
            raise self._wrong(table, 0, "", f"[{table}] is a single table", f"write [[{table}]]")
        if len(rows) > LIMITS[table]:
            raise InvalidDirectoryError(
                f"{self.places.source}: {len(rows):,} times [[{table}]]",
                hint=f"at most {LIMITS[table]:,} are read",
            )
        return [self._read(table, number, row) for number, row in enumerate(rows)]

    def _read(self, table: str, number: int, row: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The fields of one table, and those that belong to a queue's properties."""
        if not isinstance(row, dict):
            raise self._wrong(table, number, "", f"{row!r} is not a table", f"write [[{table}]]")
        keys = TABLES[table]
        fields: dict[str, Any] = {}
        properties: dict[str, Any] = {}
        for name, value in row.items():
            key = keys.get(name)
            if key is None:
                fix = nearest(name, keys) or f"there are {', '.join(keys)}"
                raise self._wrong(table, number, name, f"unknown key {name!r}", fix)
            try:
                (properties if key.of_queue else fields)[key.field] = key.read(value)
            except WrongValueError as error:
                raise self._wrong(table, number, name, f"{name}: {error.what}", error.fix) from None
        for name in REQUIRED[table]:
            if name not in row:
                raise self._wrong(table, number, "", f"{name} is missing", f"add {name} = ...")
        return fields, properties

    def _resolved(self, table: str, fields: dict[str, Any]) -> dict[str, Any]:
        for name, key in TABLES[table].items():
            if key.refers_to and name in fields:
                value = fields[name]
                fields[name] = (
                    self._identifier(key.refers_to, value)
                    if isinstance(value, str)
                    else tuple([self._identifier(key.refers_to, one) for one in value])
                )
        return fields

    def _identifier(self, table: str, name: str) -> UUID:
        key = name.casefold()
        found = self.ids[table].get(key)
        if found is None:
            # An identifier may stand for a name; what is neither is for the checks to report.
            try:
                found = read_guid(name.strip("{}"))
            except LannerError:
                found = derived_id(table, key, enterprise=self.enterprise)
                self.unknown[found] = name
        return found

    def _links(self, rows: list[tuple[dict[str, Any], dict[str, Any]]]) -> tuple[RoutingLink, ...]:
        links = []
        count: dict[tuple[str, ...], int] = {}
        for fields, _ in rows:
            pair = tuple(sorted(name.casefold() for name in fields["sites"]))
            number = count[pair] = count.get(pair, 0) + 1
            if "id" not in fields:  # parallel links are told apart by their order
                fields["id"] = derived_id("link", *pair, str(number), enterprise=self.enterprise)
            fields["site1"], fields["site2"] = self._resolved("link", fields).pop("sites")
            links.append(RoutingLink(**fields))
        return tuple(links)

    def _queues(self, rows: list[tuple[dict[str, Any], dict[str, Any]]]) -> tuple[PublicQueue, ...]:
        queues = []
        paths: set[str] = set()
        for number, (fields, given) in enumerate(rows):
            properties = QueueProperties(**given)
            try:
                properties.check()
            except LannerError as error:
                raise self._wrong("queue", number, "", error.message, error.hint or "change it") from None
            key = fields["path"].casefold()
            if key in paths:
                raise self._wrong("queue", number, "path", f"{fields['path']!r} is there twice", "remove one")
            paths.add(key)
            fields.setdefault("id", derived_id("queue", key, enterprise=self.enterprise))
            queues.append(PublicQueue(properties=properties, **self._resolved("queue", fields)))
        return tuple(queues)

    def _wrong(self, table: str, number: int, key: str, what: str, fix: str) -> InvalidDirectoryError:
        return InvalidDirectoryError(f"{self.places.shown(table, number, key)}: {what}", hint=fix)
