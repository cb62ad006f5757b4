"""Values of properties as Python values, for whoever has asked for them."""

from __future__ import annotations

import struct
from collections.abc import Sequence as Values
from typing import Any
from uuid import UUID

import msgspec

from lanner.model.transfer import ConnectionStatus, Sequence
from lanner.protocols.management.properties import Property, Shape
from lanner.protocols.management.variant import Variant

__all__ = ["Attempt", "Source", "understand"]

_SEQUENCE = struct.Struct("<QII")


class Source(msgspec.Struct, frozen=True):
    """A stream of transactional messages that comes in (MS-MQMQ 2.3.12.24)."""

    format_name: str | None
    sender: UUID
    stream: int
    number: int
    last_access: int
    """Seconds since 1970."""
    rejections: int


class Attempt(msgspec.Struct, frozen=True):
    """An attempt to connect (MS-MQMQ 2.3.12.25)."""

    status: str
    """In words, or the number of a status that nobody has described."""
    time: int
    error: int
    """An HRESULT; zero says that nothing went wrong."""
    addresses: tuple[str, ...]


_STATUSES = {
    **{number: list(ConnectionStatus)[number] for number in range(3)},
    **{0x8000_0000 + number: status for number, status in enumerate(list(ConnectionStatus)[3:])},
}
"""ConnectionStatus is in the order of the codes."""


def understand(wanted: Property, variant: Variant) -> Any:
    """The value of a property: None where it does not apply.

    A server may use another type than the specification's; then its value is given as it is.
    """
    if variant.value is None:
        return None
    plain = _plain(variant)
    if wanted.shape is Shape.SEQUENCE and isinstance(plain, bytes) and len(plain) == _SEQUENCE.size:
        return Sequence(*_SEQUENCE.unpack(plain))
    if wanted.shape is Shape.SOURCES and _has_columns(plain, 6):
        return tuple(Source(*row) for row in zip(*plain, strict=True))
    if wanted.shape is Shape.CONNECTIONS and _has_columns(plain, 4):
        return tuple(_attempt(*row) for row in zip(*plain, strict=True))
    return plain


def _plain(variant: Variant) -> Any:
    value = variant.value
    if isinstance(value, list):
        return [_plain(each) if isinstance(each, Variant) else each for each in value]
    return value


def _has_columns(value: Any, count: int) -> bool:
    if not isinstance(value, list) or len(value) != count:
        return False
    return all(isinstance(each, list) and len(each) == len(value[0]) for each in value)


def _attempt(code: int, time: int, error: int, addresses: Values[str] | str | None) -> Attempt:
    known = _STATUSES.get(code & 0xFFFF_FFFF)
    if isinstance(addresses, str):
        addresses = [addresses]
    return Attempt(
        known.words if known is not None else f"{code:#010x}",
        time,
        error & 0xFFFF_FFFF,
        tuple(each for each in addresses or () if each),
    )
