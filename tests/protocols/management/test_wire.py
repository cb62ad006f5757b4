"""The two calls as stubs (MS-MQMR 2.2.1.2, 3.1.4)."""

from __future__ import annotations

import contextlib
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanner.protocols.management.queue_format import QueueFormat, QueueFormatType
from lanner.protocols.management.variant import NULL, Variant, VariantType
from lanner.protocols.management.wire import (
    MACHINE,
    QMMGMT,
    ManagementObject,
    ObjectType,
    decode_action,
    decode_action_answer,
    decode_get_info,
    decode_get_info_answer,
    encode_action,
    encode_action_answer,
    encode_get_info,
    encode_get_info_answer,
)
from lanner.protocols.rpc.ndr import NdrError

GUID = UUID("e6eaba61-d1c6-11db-baac-0003ff4e2d22")
QUEUE = ManagementObject(ObjectType.QUEUE, QueueFormat(QueueFormatType.PUBLIC, 0, GUID))
DIRECT = ManagementObject(ObjectType.QUEUE, QueueFormat(QueueFormatType.DIRECT, 0, text=r"OS:h\q"))
NO_QUEUE = ManagementObject(ObjectType.QUEUE)
SESSION = ManagementObject(ObjectType.SESSION)
OBJECTS = [MACHINE, QUEUE, DIRECT, NO_QUEUE, SESSION]
ORDERS = pytest.mark.parametrize("big_endian", [False, True], ids=["little", "big"])


def test_the_interface() -> None:
    assert str(QMMGMT) == "41208ee0-e970-11d1-9b9e-00e02c064c39 1.0"


@ORDERS
@pytest.mark.parametrize("target", OBJECTS, ids=str)
def test_a_question_both_ways(target: ManagementObject, big_endian: bool) -> None:
    stub = encode_get_info(target, [1, 27, 9999], big_endian=big_endian)
    call = decode_get_info(stub, big_endian=big_endian)
    assert (call.object, call.properties, call.variants) == (target, (1, 27, 9999), [NULL] * 3)
    for end in range(len(stub)):
        with pytest.raises(NdrError):
            decode_get_info(stub[:end], big_endian=big_endian)


@ORDERS
@pytest.mark.parametrize("target", OBJECTS, ids=str)
def test_an_action_both_ways(target: ManagementObject, big_endian: bool) -> None:
    stub = encode_action(target, "EOD_RESEND", big_endian=big_endian)
    call = decode_action(stub, big_endian=big_endian)
    assert (call.object, call.action) == (target, "EOD_RESEND")
    for end in range(len(stub)):
        with pytest.raises(NdrError):
            decode_action(stub[:end], big_endian=big_endian)


def test_answers_both_ways() -> None:
    variants = [Variant(VariantType.LPWSTR, "CONNECTED"), Variant(VariantType.I8, 5)]
    answer = decode_get_info_answer(encode_get_info_answer(variants, 0xC00E0003), 2)
    assert (answer.variants, answer.status) == (variants, 0xC00E0003)
    assert decode_action_answer(encode_action_answer(0xC00E0006)) == 0xC00E0006
    with pytest.raises(NdrError):
        decode_get_info_answer(encode_get_info_answer(variants, 0), 3)


def test_the_octets_of_a_question() -> None:
    assert encode_get_info(MACHINE, [4]).hex(" ", -4) == (
        "01000100 00000000 01000000 01000000 04000000 01000000 01000000 00000000 0100"
    )
    assert encode_get_info(QUEUE, [7, 11]) == (
        b"\x02\0\x02\0" + b"\0\0\x02\0"  # the type, the tag, the pointer
        b"\x01\0\0\0\x01\0\0\0" + GUID.bytes_le +  # what it points to
        b"\x02\0\0\0" + b"\x02\0\0\0\x07\0\0\0\x0b\0\0\0"  # cp, aProp
        b"\x02\0\0\0"  # apVar, which fills up to a multiple of 8
        + bytes(4) + b"\x01\0\0\0\0\0\0\0\x01\0" + bytes(6) + b"\x01\0\0\0\0\0\0\0\x01\0"
    )  # fmt: skip


def test_the_octets_of_an_action() -> None:
    assert encode_action(MACHINE, "TIDY").hex(" ", -4) == (
        "01000100 00000000 05000000 00000000 05000000 54004900 44005900 0000"
    )


@pytest.mark.parametrize("count", [0, 129, 0xFFFFFFFF])
def test_the_count_is_between_1_and_128(count: int) -> None:
    stub = bytearray(encode_get_info(MACHINE, [1]))
    stub[8:12] = count.to_bytes(4, "little")
    with pytest.raises(NdrError, match="not 1 to 128"):
        decode_get_info(bytes(stub))


def test_128_properties_are_taken_and_129_are_not() -> None:
    assert len(decode_get_info(encode_get_info(MACHINE, [1] * 128)).properties) == 128
    with pytest.raises(NdrError):
        decode_get_info(encode_get_info(MACHINE, [1] * 129))


def test_arrays_of_another_length_than_the_count_are_refused() -> None:
    stub = encode_get_info(MACHINE, [1, 2])
    properties = stub[:12] + b"\x03\0\0\0" + stub[16:]
    variants = stub[:24] + b"\x03\0\0\0" + stub[28:]
    for broken in (properties, variants):
        with pytest.raises(NdrError, match="its count says 2"):
            decode_get_info(broken)


@pytest.mark.parametrize(("kind", "tag"), [(1, 2), (2, 1), (0, 0), (4, 4), (0x8001, 0x8001)])
def test_a_type_that_is_none_or_not_the_unions_is_refused(kind: int, tag: int) -> None:
    stub = bytearray(encode_get_info(MACHINE, [1]))
    stub[0:2], stub[2:4] = kind.to_bytes(2, "little"), tag.to_bytes(2, "little")
    with pytest.raises(NdrError):
        decode_get_info(bytes(stub))


def test_the_reserved_member_is_ignored() -> None:
    stub = bytearray(encode_get_info(MACHINE, [1]))
    stub[4:8] = b"\xff\xff\xff\xff"
    assert decode_get_info(bytes(stub)).object == MACHINE


def test_a_verification_trailer_is_let_be() -> None:
    trailer = bytes.fromhex("8a e3 13 71 02 f4 36 71 02 40 28 00") + bytes(40)
    assert decode_get_info(encode_get_info(QUEUE, [1]) + b"\0\0" + trailer).object == QUEUE
    assert decode_action(encode_action(QUEUE, "PAUSE") + trailer).action == "PAUSE"


def test_a_long_action_is_refused() -> None:
    with pytest.raises(NdrError):
        decode_action(encode_action(MACHINE, "X" * 65))


@given(st.binary(max_size=300), st.booleans())
def test_noise_is_refused_with_the_documented_error(noise: bytes, big_endian: bool) -> None:
    for decode in (decode_get_info, decode_action):
        with contextlib.suppress(NdrError):
            decode(noise, big_endian=big_endian)


@given(st.sampled_from(OBJECTS), st.data())
def test_damage_is_refused_with_the_documented_error(target: ManagementObject, data: st.DataObject) -> None:
    stub = bytearray(encode_get_info(target, [1, 2, 3]))
    stub[data.draw(st.integers(0, len(stub) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(NdrError):
        decode_get_info(bytes(stub))
