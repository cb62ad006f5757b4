"""The table of properties against the specification's (MS-MQMR 2.2.3, 3.1.4.1)."""

from __future__ import annotations

import pytest

from lanner.model.errors import InvalidPropertyError
from lanner.protocols.management.properties import (
    MACHINE_PROPERTIES,
    QUEUE_PROPERTIES,
    Applies,
    Shape,
    find_property,
    properties_of,
)
from lanner.protocols.management.values import _MACHINE, _QUEUE
from lanner.protocols.management.variant import type_name
from lanner.protocols.management.wire import ObjectType

MACHINE_TABLE = """
PROPID_MGMT_MSMQ_ACTIVEQUEUES 0x01 VT_VECTOR|VT_LPWSTR
PROPID_MGMT_MSMQ_PRIVATEQ 0x02 VT_VECTOR|VT_LPWSTR
PROPID_MGMT_MSMQ_DSSERVER 0x03 VT_LPWSTR
PROPID_MGMT_MSMQ_CONNECTED 0x04 VT_LPWSTR
PROPID_MGMT_MSMQ_TYPE 0x05 VT_LPWSTR
PROPID_MGMT_MSMQ_BYTES_IN_ALL_QUEUES 0x06 VT_I8
"""
QUEUE_TABLE = """
PROPID_MGMT_QUEUE_PATHNAME 0x01 VT_LPWSTR
PROPID_MGMT_QUEUE_FORMATNAME 0x02 VT_LPWSTR
PROPID_MGMT_QUEUE_TYPE 0x03 VT_LPWSTR
PROPID_MGMT_QUEUE_LOCATION 0x04 VT_LPWSTR
PROPID_MGMT_QUEUE_XACT 0x05 VT_LPWSTR
PROPID_MGMT_QUEUE_FOREIGN 0x06 VT_LPWSTR
PROPID_MGMT_QUEUE_MESSAGE_COUNT 0x07 VT_UI4
PROPID_MGMT_QUEUE_BYTES_IN_QUEUE 0x08 VT_UI4
PROPID_MGMT_QUEUE_JOURNAL_MESSAGE_COUNT 0x09 VT_UI4
PROPID_MGMT_QUEUE_BYTES_IN_JOURNAL 0x0A VT_UI4
PROPID_MGMT_QUEUE_STATE 0x0B VT_LPWSTR
PROPID_MGMT_QUEUE_NEXTHOPS 0x0C VT_VECTOR|VT_LPWSTR
PROPID_MGMT_QUEUE_EOD_LAST_ACK 0x0D VT_BLOB
PROPID_MGMT_QUEUE_EOD_LAST_ACK_TIME 0x0E VT_I4
PROPID_MGMT_QUEUE_EOD_LAST_ACK_COUNT 0x0F VT_UI4
PROPID_MGMT_QUEUE_EOD_FIRST_NON_ACK 0x10 VT_BLOB
PROPID_MGMT_QUEUE_EOD_LAST_NON_ACK 0x11 VT_BLOB
PROPID_MGMT_QUEUE_EOD_NEXT_SEQ 0x12 VT_BLOB
PROPID_MGMT_QUEUE_EOD_NO_READ_COUNT 0x13 VT_UI4
PROPID_MGMT_QUEUE_EOD_NO_ACK_COUNT 0x14 VT_UI4
PROPID_MGMT_QUEUE_EOD_RESEND_TIME 0x15 VT_I4
PROPID_MGMT_QUEUE_EOD_RESEND_INTERVAL 0x16 VT_UI4
PROPID_MGMT_QUEUE_EOD_RESEND_COUNT 0x17 VT_UI4
PROPID_MGMT_QUEUE_EOD_SOURCE_INFO 0x18 VT_VECTOR|VT_VARIANT
PROPID_MGMT_QUEUE_CONNECTION_HISTORY 0x19 VT_VECTOR|VT_VARIANT
PROPID_MGMT_QUEUE_SUBQUEUE_COUNT 0x1A VT_UI4
PROPID_MGMT_QUEUE_SUBQUEUE_NAMES 0x1B VT_VECTOR|VT_LPWSTR
"""


def _rows(table: str) -> list[tuple[str, int, str]]:
    lines = [line.split() for line in table.strip().splitlines()]
    return [(name, int(number, 16), kind) for name, number, kind in lines]


def test_the_tables_are_the_specifications() -> None:
    for table, ours in ((MACHINE_TABLE, MACHINE_PROPERTIES), (QUEUE_TABLE, QUEUE_PROPERTIES)):
        found = [(each.official_name, int(each.id), type_name(each.type)) for each in ours.values()]
        assert found == _rows(table)
        assert list(ours) == [number for _, number, _ in _rows(table)]


def test_each_has_a_value_a_name_and_a_meaning() -> None:
    assert set(_MACHINE) == set(MACHINE_PROPERTIES)
    assert set(_QUEUE) == set(QUEUE_PROPERTIES)
    for known in (MACHINE_PROPERTIES, QUEUE_PROPERTIES):
        names = [each.name for each in known.values()]
        assert len(set(names)) == len(names)
        assert all(name == name.lower() and " " not in name and each.meaning for name, each in zip(
            names, known.values(), strict=True
        ))  # fmt: skip


def test_shapes_follow_types() -> None:
    shapes = {each.name: each.shape for each in QUEUE_PROPERTIES.values() if each.shape is not Shape.PLAIN}
    assert shapes["sources"] is Shape.SOURCES
    assert shapes["connection-history"] is Shape.CONNECTIONS
    blobs = [each for each in QUEUE_PROPERTIES.values() if type_name(each.type) == "VT_BLOB"]
    assert len(blobs) == 4
    assert all(each.shape is Shape.SEQUENCE and each.applies is Applies.OUTGOING for each in blobs)


@pytest.mark.parametrize(
    ("kind", "name", "number"),
    [
        (ObjectType.QUEUE, "message-count", 7),
        (ObjectType.QUEUE, "Message_Count", 7),
        (ObjectType.QUEUE, "PROPID_MGMT_QUEUE_MESSAGE_COUNT", 7),
        (ObjectType.QUEUE, "eod_last_ack", 13),
        (ObjectType.QUEUE, "next-hops", 12),
        (ObjectType.QUEUE, "nexthops", 12),
        (ObjectType.QUEUE, "state", 11),
        (ObjectType.MACHINE, "active-queues", 1),
        (ObjectType.MACHINE, "ACTIVEQUEUES", 1),
        (ObjectType.MACHINE, "type", 5),
    ],
)
def test_a_property_is_found_by_its_names(kind: ObjectType, name: str, number: int) -> None:
    assert find_property(kind, name).id == number


def test_a_wrong_name_is_answered_with_the_nearest_right_one() -> None:
    with pytest.raises(InvalidPropertyError, match="did you mean message-count"):
        find_property(ObjectType.QUEUE, "mesage-count")
    with pytest.raises(InvalidPropertyError, match="there are active-queues"):
        find_property(ObjectType.MACHINE, "zzz")


def test_sessions_have_none() -> None:
    assert properties_of(ObjectType.SESSION) == {}
