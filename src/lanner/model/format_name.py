"""Format names: how a message's destination is written (MS-MQMQ 2.1.2 to 2.1.7).

``parse_format_name`` reads one into a frozen value, ``str`` writes it in its canonical form, and names
compare without case. Keywords are read in any case.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address

from lanner.model.direct_name import DirectName, DirectProtocol, read_direct_name
from lanner.model.errors import InvalidNameError
from lanner.model.format_name_kinds import (
    MAX_ELEMENTS,
    MAX_PORT,
    ConnectorName,
    DistributionListName,
    FormatName,
    MachineName,
    MulticastName,
    MultipleName,
    PrivateName,
    PublicName,
    SingleQueueName,
    check_element_count,
)
from lanner.model.name_hints import parse_or_suggest
from lanner.model.names import QueueKind, QueueSuffix, machine_queue_suffix, quote, read_guid, read_suffix

__all__ = [
    "MAX_ELEMENTS",
    "ConnectorName",
    "DirectName",
    "DirectProtocol",
    "DistributionListName",
    "FormatName",
    "MachineName",
    "MulticastName",
    "MultipleName",
    "PrivateName",
    "PublicName",
    "QueueKind",
    "QueueSuffix",
    "SingleQueueName",
    "parse_format_name",
    "read_format_name",
]

_HEX_NUMBER = re.compile(r"[0-9A-Fa-f]{1,8}")
# The grammar for ports in MS-MQMQ 2.1.6 leaves out most numbers (20 to 99, for one); its comments show
# that all of them are meant.
_DECIMAL_PORT = re.compile(r"0|[1-9][0-9]{0,4}")


def parse_format_name(text: str) -> FormatName:
    """Read a format name of any kind, or of several elements.

    Raises InvalidNameError, which says what is wrong and suggests the nearest right format name.
    """
    return parse_or_suggest(
        text,
        read_format_name,
        adapt="DIRECT=OS:{}".format,
        example=r"DIRECT=OS:host\private$\orders",
    )


def read_format_name(text: str) -> FormatName:
    """Read a format name, without the search for a better one when it is wrong."""
    if "," not in text:
        return _read_element(text)
    count = text.count(",") + 1
    check_element_count(count)
    elements = []
    for index, element in enumerate(text.split(",")):
        try:
            elements.append(_read_element(element))
        except InvalidNameError as error:
            raise InvalidNameError(f"element {index + 1} of {count}: {error.message}") from None
    return MultipleName(tuple(elements))


def _read_element(text: str) -> FormatName:
    if not text:
        raise InvalidNameError("the format name is empty")
    keyword, equals, rest = text.partition("=")
    reader = _READERS.get(keyword.upper()) if equals else None
    if reader is None:
        found = f"{quote(keyword + '=')} is none of them" if equals else "there is none"
        known = ", ".join(f"{known}=" for known in _READERS)
        raise InvalidNameError(f"a format name begins with one of {known}; {found}")
    return reader(rest)


def _read_public_name(text: str) -> PublicName:
    guid, *suffixes = text.split(";")
    subqueue, suffix = read_suffix(suffixes)
    return PublicName(read_guid(guid), subqueue=subqueue, suffix=suffix)


def _read_private_name(text: str) -> PrivateName:
    queue, *suffixes = text.split(";")
    guid, backslash, number = queue.partition("\\")
    machine_id = read_guid(guid)
    if not backslash:
        raise InvalidNameError("after the computer's GUID a backslash and the queue's number must stand")
    if not _HEX_NUMBER.fullmatch(number):
        raise InvalidNameError(f"the queue's number {quote(number)} is not one to eight hexadecimal digits")
    subqueue, suffix = read_suffix(suffixes)
    return PrivateName(machine_id, int(number, 16), subqueue=subqueue, suffix=suffix)


def _read_distribution_list_name(text: str) -> DistributionListName:
    guid, at, domain = text.partition("@")
    list_id = read_guid(guid)
    if at and not domain:
        raise InvalidNameError("there is no domain name after the '@'")
    return DistributionListName(list_id, domain)


def _read_machine_name(text: str) -> MachineName:
    guid, semicolon, word = text.partition(";")
    machine_id = read_guid(guid)
    if not semicolon:
        return MachineName(machine_id)
    suffix = machine_queue_suffix(word)
    if suffix is QueueSuffix.NONE:
        raise InvalidNameError(
            f"after the computer's GUID ;JOURNAL, ;DEADLETTER or ;DEADXACT may stand, not {quote(';' + word)}"
        )
    return MachineName(machine_id, suffix)


def _read_connector_name(text: str) -> ConnectorName:
    guid, semicolon, word = text.partition(";")
    connector_id = read_guid(guid)
    if semicolon and word.upper() != QueueSuffix.XACTONLY.name:
        raise InvalidNameError(f"after the connector's GUID ;XACTONLY may stand, not {quote(';' + word)}")
    return ConnectorName(connector_id, is_transactional=bool(semicolon))


def _read_multicast_name(text: str) -> MulticastName:
    address, colon, port = text.partition(":")
    if not colon:
        raise InvalidNameError("after the multicast address a colon and a port must stand")
    try:
        parsed = IPv4Address(address)
    except ValueError:
        raise InvalidNameError(f"{quote(address)} is not an IPv4 address") from None
    if not _DECIMAL_PORT.fullmatch(port):
        raise InvalidNameError(f"the port {quote(port)} is not a number between 0 and {MAX_PORT}")
    return MulticastName(parsed, int(port))


_READERS = {
    "DIRECT": read_direct_name,
    "PUBLIC": _read_public_name,
    "PRIVATE": _read_private_name,
    "DL": _read_distribution_list_name,
    "MACHINE": _read_machine_name,
    "CONNECTOR": _read_connector_name,
    "MULTICAST": _read_multicast_name,
}
