"""Which tables and keys a directory file has, and what may stand behind each key."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, NamedTuple
from uuid import UUID

from lanner.model.directory_objects import DirectoryServerType, OperatingSystemType
from lanner.model.errors import LannerError
from lanner.model.message import INFINITE
from lanner.model.names import check_computer, read_guid
from lanner.model.path_name import parse_path_name
from lanner.model.queue import QueuePrivacy

__all__ = [
    "LIMITS",
    "MAX_FILE_BYTES",
    "REQUIRED",
    "TABLES",
    "Key",
    "WrongValueError",
    "nearest",
]

MAX_FILE_BYTES = 256 * 1024 * 1024
"""Ten times a file of 100,000 managers and as many queues; more is not a directory file."""

LIMITS = {"site": 20_000, "link": 200_000, "network": 1_000, "manager": 500_000, "queue": 1_000_000}
"""Twice and more what has been measured; a file beyond them is a mistake, and would fill the memory."""

MAX_NAME = 256
"""Characters of a name or another short text, as MS-MQMQ 2.1.1 has for computers."""

MAX_PATH = 4096
"""Characters of a distinguished name, which has a part for each level of a directory."""

MAX_LISTED = 256
"""Entries of one list: nobody has more sites, gates or routing servers than people can look after."""

_MAX_NUMBER = 2**53
"""Beyond this, numbers are not exact everywhere."""


class WrongValueError(ValueError):
    """A value that cannot stand where it stands: what it is, and what to write."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix


class Key(NamedTuple):
    """A key of a table: the field it fills, how its value is read, and what it refers to."""

    field: str
    read: Callable[[Any], Any]
    refers_to: str = ""
    """The table whose names, or identifiers, the value lists."""
    of_queue: bool = False
    """Whether the field is one of the queue's properties."""


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that was probably meant, as a hint to add, or nothing."""
    by_key = {one.casefold(): one for one in known}
    found = difflib.get_close_matches(word.casefold(), by_key, n=1, cutoff=0.6)
    return f"did you mean {by_key[found[0]]!r}?" if found else ""


def _text(value: Any, limit: int = MAX_NAME) -> str:
    if not isinstance(value, str):
        raise WrongValueError(f"{value!r} is not a text", "put it in quotes")
    if len(value) > limit:
        raise WrongValueError(f"the text has {len(value)} characters", f"write at most {limit}")
    if not value.isprintable():
        raise WrongValueError(f"{value!r} has characters that cannot be printed", "leave them out")
    return value


def _free_text(value: Any) -> str:
    """What people write about something: any characters that a text can have."""
    if not isinstance(value, str) or len(value) > MAX_NAME:
        return _text(value)
    return value


def _long_text(value: Any) -> str:
    return _text(value, MAX_PATH)


def _name(value: Any) -> str:
    text = _text(value)
    if not text.strip():
        raise WrongValueError("the name is empty", "give it a name")
    return text


def _computer(value: Any) -> str:
    text = _name(value)
    try:
        check_computer(text)
    except LannerError as error:
        raise WrongValueError(error.message, error.hint or "write the computer's name, as LON-GW") from None
    if text == ".":
        raise WrongValueError("'.' is the local computer, whichever that is", "write its name")
    return text


def _path(value: Any) -> str:
    text = _name(value)
    try:
        path = parse_path_name(text)
    except LannerError as error:
        raise WrongValueError(error.message, error.hint or r"write it as 'LON-1\orders'") from None
    if path.kind.value != "public" or path.subqueue or path.journal or path.is_local:
        raise WrongValueError(f"{text!r} is not the path of a public queue", r"write it as 'LON-1\orders'")
    return str(path)


def _identifier(value: Any) -> UUID:
    try:
        return read_guid(_text(value).strip("{}"))
    except LannerError as error:
        raise WrongValueError(error.message, "write it in full, or leave it out to derive it") from None


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise WrongValueError(f"{value!r} is neither true nor false", "write true or false, without quotes")
    return value


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise WrongValueError(f"{value!r} is not a whole number", "write it in digits, without quotes")
    if not -_MAX_NUMBER <= value <= _MAX_NUMBER:
        raise WrongValueError("the number is far out of range", f"write one of at most {_MAX_NUMBER}")
    return value


def _quota(value: Any) -> int:
    number = _number(value)
    if not 0 <= number <= INFINITE:
        raise WrongValueError(f"{number} is not between 0 and {INFINITE}", "leave it out for no limit")
    return number


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise WrongValueError(f"{value!r} is not a list", 'write it as ["London", "Paris"]')
    if len(value) > MAX_LISTED:
        raise WrongValueError(f"the list has {len(value)} entries", f"write at most {MAX_LISTED}")
    return tuple(map(_name, value))


def _two_names(value: Any) -> tuple[str, ...]:
    names = _names(value)
    if len(names) != 2:
        raise WrongValueError(
            f"a link joins two sites, not {len(names)}", 'write sites = ["London", "Paris"]'
        )
    return names


def _one_of(kind: type[Enum]) -> Callable[[Any], Any]:
    words = {str(one.value if isinstance(one.value, str) else one.name.lower()): one for one in kind}

    def read(value: Any) -> Enum:
        if not isinstance(value, str) or value not in words:
            raise WrongValueError(f"{value!r} is unknown here", f"write one of {', '.join(words)}")
        return words[value]

    return read


TABLES: dict[str, dict[str, Key]] = {
    "enterprise": {
        "name": Key("name", _name),
        "id": Key("id", _identifier),
        "default_time_to_live": Key("default_time_to_live", _quota),
        "weakened_security": Key("weakened_security", _boolean),
        "change_notification": Key("change_notification", _boolean),
        "old_directory": Key("old_directory", _boolean),
    },
    "site": {
        "name": Key("name", _name),
        "id": Key("id", _identifier),
        "foreign": Key("foreign", _boolean),
        "primary_site_controller": Key("primary_site_controller", _text),
        "migrated": Key("migrated", _boolean),
        "full_path": Key("full_path", _long_text),
    },
    "link": {
        "sites": Key("sites", _two_names, "site"),
        "cost": Key("cost", _number),
        "gates": Key("gates", _names, "manager"),
        "id": Key("id", _identifier),
        "description": Key("description", _free_text),
        "full_path": Key("full_path", _long_text),
    },
    "network": {"name": Key("name", _name), "id": Key("id", _identifier)},
    "manager": {
        "name": Key("name", _computer),
        "id": Key("id", _identifier),
        "sites": Key("sites", _names, "site"),
        "networks": Key("networks", _names, "network"),
        "routing": Key("routing", _boolean),
        "in_routing": Key("in_routing", _names, "manager"),
        "out_routing": Key("out_routing", _names, "manager"),
        "directory_server": Key("directory_server", _boolean),
        "directory_server_type": Key("directory_server_type", _one_of(DirectoryServerType)),
        "foreign": Key("foreign", _boolean),
        "supporting_server": Key("supporting_server", _boolean),
        "remote_access_server": Key("remote_access_server", _boolean),
        "clustered": Key("clustered", _boolean),
        "address": Key("address", _text),
        "qualified_name": Key("qualified_name", _text),
        "version": Key("version", _text),
        "os_version": Key("os_version", _text),
        "os_type": Key("os_type", _one_of(OperatingSystemType)),
        "quota": Key("quota", _quota),
        "journal_quota": Key("journal_quota", _quota),
        "create_time": Key("create_time", _number),
        "modify_time": Key("modify_time", _number),
        "full_path": Key("full_path", _long_text),
    },
    "queue": {
        "path": Key("path", _path),
        "id": Key("id", _identifier),
        "manager": Key("manager", _name, "manager"),
        "label": Key("label", _free_text, of_queue=True),
        "type": Key("type_id", _identifier, of_queue=True),
        "transactional": Key("transactional", _boolean, of_queue=True),
        "journaling": Key("journaling", _boolean, of_queue=True),
        "quota": Key("quota", _quota, of_queue=True),
        "journal_quota": Key("journal_quota", _quota, of_queue=True),
        "authentication": Key("authentication", _boolean, of_queue=True),
        "privacy": Key("privacy", _one_of(QueuePrivacy), of_queue=True),
        "base_priority": Key("base_priority", _number, of_queue=True),
        "multicast_address": Key("multicast_address", _text, of_queue=True),
        "qualified_path": Key("qualified_path", _long_text),
        "create_time": Key("create_time", _number),
        "modify_time": Key("modify_time", _number),
        "full_path": Key("full_path", _long_text),
    },
}

REQUIRED = {
    "enterprise": ("name",),
    "site": ("name",),
    "link": ("sites", "cost"),
    "network": ("name",),
    "manager": ("name",),
    "queue": ("path",),
}
