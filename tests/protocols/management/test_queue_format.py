"""QUEUE_FORMAT: every kind, as names and on the wire (MS-MQMQ 2.2.7)."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanner.model.errors import InvalidNameError
from lanner.model.format_name import parse_format_name
from lanner.protocols.management.queue_format import (
    MAX_NAME,
    QueueFormat,
    QueueFormatType,
    from_format_name,
    read_queue_format,
    to_format_name,
    write_queue_format,
)
from lanner.protocols.rpc.ndr import NdrError, NdrReader, NdrWriter

TEXT = "e6eaba61-d1c6-11db-baac-0003ff4e2d22"
GUID = UUID(TEXT)
K = QueueFormatType

NAMES = [
    (f"PUBLIC={TEXT}", QueueFormat(K.PUBLIC, 0x00, GUID)),
    (f"PUBLIC={TEXT};JOURNAL", QueueFormat(K.PUBLIC, 0x81, GUID)),
    (f"PRIVATE={TEXT}\\1f", QueueFormat(K.PRIVATE, 0x00, GUID, 0x1F)),
    (f"PRIVATE={TEXT}\\1f;JOURNAL", QueueFormat(K.PRIVATE, 0x81, GUID, 0x1F)),
    (r"DIRECT=OS:host\private$\q", QueueFormat(K.DIRECT, 0x00, text=r"OS:host\private$\q")),
    (r"DIRECT=TCP:10.0.0.1\q", QueueFormat(K.DIRECT, 0x00, text=r"TCP:10.0.0.1\q")),
    ("DIRECT=HTTP://host/msmq/q", QueueFormat(K.DIRECT, 0x00, text="HTTP://host/msmq/q")),
    (r"DIRECT=OS:host\q;JOURNAL", QueueFormat(K.DIRECT, 0x81, text=r"OS:host\q;JOURNAL")),
    (r"DIRECT=OS:h\SYSTEM$;JOURNAL", QueueFormat(K.DIRECT, 0x81, text=r"OS:h\SYSTEM$;JOURNAL")),
    (r"DIRECT=OS:h\SYSTEM$;DEADLETTER", QueueFormat(K.DIRECT, 0x82, text=r"OS:h\SYSTEM$;DEADLETTER")),
    (r"DIRECT=OS:h\SYSTEM$;DEADXACT", QueueFormat(K.DIRECT, 0x83, text=r"OS:h\SYSTEM$;DEADXACT")),
    (f"MACHINE={TEXT};JOURNAL", QueueFormat(K.MACHINE, 0x81, GUID)),
    (f"MACHINE={TEXT};DEADLETTER", QueueFormat(K.MACHINE, 0x82, GUID)),
    (f"MACHINE={TEXT};DEADXACT", QueueFormat(K.MACHINE, 0x83, GUID)),
    (f"CONNECTOR={TEXT}", QueueFormat(K.CONNECTOR, 0x00, GUID)),
    (f"CONNECTOR={TEXT};XACTONLY", QueueFormat(K.CONNECTOR, 0x04, GUID)),
    (f"DL={TEXT}", QueueFormat(K.DL, 0x00, GUID)),
    (f"DL={TEXT}@example.com", QueueFormat(K.DL, 0x00, GUID, text="example.com")),
    ("MULTICAST=234.1.2.3:8001", QueueFormat(K.MULTICAST, 0x00, address=0x030201EA, port=8001)),
    (r"DIRECT=OS:host\private$\q;sub", QueueFormat(K.SUBQUEUE, 0x05, text=r"OS:host\private$\q;sub")),
]
IDS = [name for name, _ in NAMES]


@pytest.mark.parametrize(("name", "structure"), NAMES, ids=IDS)
def test_every_name_becomes_its_structure_and_back(name: str, structure: QueueFormat) -> None:
    parsed = parse_format_name(name)
    assert from_format_name(parsed) == structure
    assert to_format_name(structure) == parsed


def encoded(given_format: QueueFormat, *, big_endian: bool = False) -> bytes:
    writer = NdrWriter(big_endian)
    write_queue_format(writer, given_format)
    return writer.getvalue()


def decoded(stub: bytes, *, big_endian: bool = False) -> QueueFormat:
    reader = NdrReader(stub, big_endian)
    found = read_queue_format(reader)
    reader.finish()
    return found


@pytest.mark.parametrize("big_endian", [False, True], ids=["little", "big"])
@pytest.mark.parametrize(("name", "structure"), NAMES, ids=IDS)
def test_every_structure_both_ways(name: str, structure: QueueFormat, big_endian: bool) -> None:
    stub = encoded(structure, big_endian=big_endian)
    assert decoded(stub, big_endian=big_endian) == structure
    for end in range(len(stub)):
        with pytest.raises(NdrError):
            decoded(stub[:end], big_endian=big_endian)


def test_the_tag_is_at_4_and_every_arm_at_8() -> None:
    assert encoded(QueueFormat(K.PUBLIC, 0x81, GUID)) == b"\x01\x81\0\0\x01\0\0\0" + GUID.bytes_le
    private = encoded(QueueFormat(K.PRIVATE, 0, GUID, 0x1F))
    assert private == b"\x02\0\0\0\x02\0\0\0" + GUID.bytes_le + b"\x1f\0\0\0"
    assert encoded(QueueFormat(K.MULTICAST, 0, address=0x030201EA, port=8001)).hex(" ", 4) == (
        "07000000 07000000 ea010203 411f0000"
    )
    assert encoded(QueueFormat(K.DIRECT, text="a")).hex(" ", 4) == (
        "03000000 03000000 00000200 02000000 00000000 02000000 61000000"
    )
    assert encoded(QueueFormat(K.UNKNOWN)) == b"\0\0\0\0\0"


def test_the_reserved_field_is_not_used() -> None:
    stub = bytearray(encoded(QueueFormat(K.PUBLIC, 0, GUID)))
    stub[2:4] = b"\xff\xff"
    assert decoded(bytes(stub)) == QueueFormat(K.PUBLIC, 0, GUID)


@pytest.mark.parametrize(("at", "value", "told"), [(0, 9, "union has the tag"), (4, 2, "union has the tag")])
def test_a_tag_that_is_not_the_kind_is_refused(at: int, value: int, told: str) -> None:
    stub = bytearray(encoded(QueueFormat(K.PUBLIC, 0, GUID)))
    stub[at] = value
    with pytest.raises(NdrError, match=told):
        decoded(bytes(stub))


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(NdrError, match="no kind of a queue format"):
        decoded(b"\x09\0\0\0\x09\0\0\0" + bytes(16))


def test_a_long_name_is_refused() -> None:
    decoded(encoded(QueueFormat(K.DIRECT, text="x" * MAX_NAME)))
    with pytest.raises(NdrError, match="room for"):
        decoded(encoded(QueueFormat(K.DIRECT, text="x" * (MAX_NAME + 1))))


ALLOWED = {
    # By suffix and flags: the kinds that may have them (MS-MQMQ 2.2.7).
    0x00: {1, 2, 3, 5, 6, 7, 8},
    0x81: {1, 2, 3, 4},
    0x82: {4},
    0x83: {4},
    0x04: {5},
    0x84: {5},
    0x05: {8},
}
PLAIN = {
    K.DIRECT: QueueFormat(K.DIRECT, text=r"OS:h\q"),
    K.SUBQUEUE: QueueFormat(K.SUBQUEUE, text=r"OS:h\q;s"),
    K.MULTICAST: QueueFormat(K.MULTICAST, address=0xE0, port=1),
}


@pytest.mark.parametrize("kind", K)
def test_suffixes_and_flags_follow_the_table(kind: K) -> None:
    structure = PLAIN.get(kind, QueueFormat(kind, identifier=GUID))
    for bits in range(256):
        if kind in ALLOWED.get(bits, set()):
            to_format_name(replace(structure, suffix_and_flags=bits))
        else:
            with pytest.raises(InvalidNameError):
                to_format_name(replace(structure, suffix_and_flags=bits))


@pytest.mark.parametrize(
    "structure",
    [
        QueueFormat(K.UNKNOWN),
        QueueFormat(K.DIRECT),
        QueueFormat(K.DIRECT, text=""),
        QueueFormat(K.DIRECT, text="nonsense"),
        QueueFormat(K.DIRECT, text=r"OS:h\q;sub"),
        QueueFormat(K.DIRECT, text=r"OS:h\q,DIRECT=OS:h\r"),
        QueueFormat(K.DIRECT, 0x82, text=r"OS:h\q"),
        QueueFormat(K.DIRECT, 0x82, text=r"OS:h\SYSTEM$;DEADXACT"),
        QueueFormat(K.SUBQUEUE, 0x05),
        QueueFormat(K.SUBQUEUE, 0x05, text=r"OS:h\q"),
        QueueFormat(K.MULTICAST, address=0x01020304, port=1),
        QueueFormat(K.MULTICAST, address=0xE0, port=65_536),
        QueueFormat(K.DL, identifier=GUID, text="a,b"),
    ],
    ids=str,
)
def test_what_names_no_queue_is_refused(structure: QueueFormat) -> None:
    with pytest.raises(InvalidNameError):
        to_format_name(structure)


def test_a_suffix_may_stand_in_one_place_alone() -> None:
    journal = parse_format_name(r"DIRECT=OS:h\q;JOURNAL")
    assert to_format_name(QueueFormat(K.DIRECT, 0x81, text=r"OS:h\q")) == journal
    assert to_format_name(QueueFormat(K.DIRECT, 0x00, text=r"OS:h\q;JOURNAL")) == journal


def test_a_multicast_address_is_understood_in_either_order() -> None:
    name = parse_format_name("MULTICAST=234.1.2.3:80")
    for address in (0x030201EA, 0xEA010203):
        assert to_format_name(QueueFormat(K.MULTICAST, address=address, port=80)) == name


@pytest.mark.parametrize(
    "name", [r"DIRECT=OS:h\q,DIRECT=OS:h\r", f"PUBLIC={TEXT};sub", f"PRIVATE={TEXT}\\1;sub"]
)
def test_what_the_structure_cannot_say_is_told(name: str) -> None:
    with pytest.raises(InvalidNameError) as told:
        from_format_name(parse_format_name(name))
    assert told.value.hint


@given(st.binary(max_size=120), st.booleans())
def test_noise_is_refused_with_the_documented_errors(noise: bytes, big_endian: bool) -> None:
    with contextlib.suppress(NdrError, InvalidNameError):
        to_format_name(read_queue_format(NdrReader(noise, big_endian)))
