"""The endpoint mapper and the management interface, without a network."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.protocols.rpc.echo import ECHO, SECOND

from lanner.protocols.rpc.errors import FaultStatus, NdrError, RpcFault
from lanner.protocols.rpc.handles import HandleTable
from lanner.protocols.rpc.interface import CallContext
from lanner.protocols.rpc.mapper import (
    Entry,
    Operation,
    lookup_request,
    map_request,
    mapper_interface,
    read_lookup_response,
    read_map_response,
)
from lanner.protocols.rpc.mgmt import mgmt_interface
from lanner.protocols.rpc.ndr import NULL_HANDLE, ContextHandle, NdrReader, NdrWriter
from lanner.protocols.rpc.towers import Tower

ENTRIES = [
    Entry(Tower(ECHO, 2103, "192.0.2.1"), annotation="echo"),
    Entry(Tower(SECOND, 2103), UUID(int=9), "second"),
    Entry(Tower(replace(SECOND, minor=4), 2105), annotation="second, newer"),
]
MAPPER = mapper_interface(lambda: ENTRIES)
TOWER = bytes.fromhex(
    "0500"
    "13000d0883afe11f5dc91191a408002b14a0fa0300" + "02000000"
    "13000d045d888aeb1cc9119fe808002b1048600200" + "02000000"
    "01000b" + "02000000"
    "010007" + "02000087"
    "010009" + "0400c0000201"
)


def test_a_tower_both_ways() -> None:
    tower = Tower.decode(TOWER)
    assert (str(tower.interface.uuid), tower.interface.major) == ("e1af8308-5d1f-11c9-91a4-08002b14a0fa", 3)
    assert (tower.port, tower.address, tower.is_tcp) == (135, "192.0.2.1", True)
    assert tower.encode() == TOWER
    for cut in range(len(TOWER)):
        with pytest.raises(NdrError):
            Tower.decode(TOWER[:cut])


def test_towers_of_other_protocols() -> None:
    pipe = TOWER.replace(bytes.fromhex("01000702000087"), bytes.fromhex("01000f02000087"))
    assert not Tower.decode(pipe).is_tcp
    with pytest.raises(NdrError, match="7 floors"):
        Tower.decode(b"\7\0" + TOWER[2:])
    with pytest.raises(NdrError, match="2 floors"):
        Tower.decode(b"\2\0" + TOWER[2:])


@given(st.binary(max_size=120))
@settings(max_examples=300, deadline=None)
def test_any_octets_are_a_tower_or_an_ndr_error(data: bytes) -> None:
    for octets in (data, TOWER[: len(data)] + data):
        try:
            Tower.decode(octets)
        except NdrError:
            continue


async def ask(opnum: int, stub: bytes, context: CallContext | None = None) -> bytes:
    return await MAPPER.operations[opnum](context or CallContext(), stub)


async def test_map_finds_compatible_versions() -> None:
    handle, towers, status = read_map_response(await ask(Operation.MAP, map_request(Tower(ECHO))))
    assert (handle, status) == (NULL_HANDLE, 0)
    assert [(tower.port, tower.address) for tower in towers] == [(2103, "192.0.2.1")]
    _, towers, _ = read_map_response(await ask(Operation.MAP, map_request(Tower(replace(SECOND, minor=3)))))
    assert [tower.port for tower in towers] == [2105]


async def test_map_finds_nothing() -> None:
    for tower in (Tower(replace(ECHO, major=2)), Tower(ECHO, transfer=ECHO)):
        handle, towers, status = read_map_response(await ask(Operation.MAP, map_request(tower)))
        assert (handle, towers, status) == (NULL_HANDLE, [], 0x16C9A0D6)


async def test_lookup_in_pages() -> None:
    context = CallContext(handles=HandleTable())
    handle, found = NULL_HANDLE, []
    for _ in range(3):
        stub = await ask(Operation.LOOKUP, lookup_request(handle, 1), context)
        handle, entries, status = read_lookup_response(stub)
        assert status == 0
        found += entries
    assert handle.is_null
    assert found == ENTRIES
    assert len(context.handles) == 0


async def test_handles_are_freed_bounded_and_not_guessed() -> None:
    context = CallContext(handles=HandleTable(limit=2))
    handle, _, _ = read_lookup_response(await ask(Operation.LOOKUP, lookup_request(NULL_HANDLE, 1), context))
    writer = NdrWriter()
    writer.context_handle(handle)
    reader = NdrReader(await ask(Operation.HANDLE_FREE, writer.getvalue(), context))
    assert reader.context_handle().is_null
    assert len(context.handles) == 0
    with pytest.raises(RpcFault) as caught:
        await ask(Operation.LOOKUP, lookup_request(ContextHandle(0, UUID(int=3)), 1), context)
    assert caught.value.status == FaultStatus.CONTEXT_MISMATCH
    for _ in range(2):
        await ask(Operation.LOOKUP, lookup_request(NULL_HANDLE, 1), context)
    with pytest.raises(RpcFault) as caught:
        await ask(Operation.LOOKUP, lookup_request(NULL_HANDLE, 1), context)
    assert caught.value.status == FaultStatus.OUT_OF_MEMORY


def inquiry(kind: int, option: int = 1, uuid: UUID | None = None, interface: object = None) -> bytes:
    writer = NdrWriter()
    writer.u32(kind)
    writer.pointer(uuid is not None)
    if uuid is not None:
        writer.guid(uuid)
    writer.pointer(interface is not None)
    if interface is not None:
        writer.guid(interface.uuid)  # type: ignore[attr-defined]
        writer.u16(interface.major)  # type: ignore[attr-defined]
        writer.u16(interface.minor)  # type: ignore[attr-defined]
    writer.u32(option)
    writer.context_handle(NULL_HANDLE)
    writer.u32(10)
    return writer.getvalue()


@pytest.mark.parametrize(
    ("stub", "ports"),
    [
        (inquiry(0), [2103, 2103, 2105]),
        (inquiry(1, 1, None, replace(SECOND, major=7)), [2103, 2105]),
        (inquiry(1, 2, None, replace(SECOND, minor=2)), [2105]),
        (inquiry(1, 3, None, SECOND), [2103]),
        (inquiry(1, 4, None, replace(SECOND, minor=9)), [2103, 2105]),
        (inquiry(1, 5, None, replace(SECOND, minor=3)), [2103]),
        (inquiry(1, 9, None, SECOND), []),
        (inquiry(1), []),
        (inquiry(2, 1, UUID(int=9)), [2103]),
        (inquiry(3, 1, UUID(int=9), SECOND), [2103]),
        (inquiry(3, 1, UUID(int=9), ECHO), []),
    ],
)
async def test_inquiries(stub: bytes, ports: list[int]) -> None:
    _, entries, status = read_lookup_response(await ask(Operation.LOOKUP, stub))
    assert [entry.tower.port for entry in entries] == ports
    assert status == (0 if ports else 0x16C9A0D6)


async def test_an_unknown_inquiry() -> None:
    _, entries, status = read_lookup_response(await ask(Operation.LOOKUP, inquiry(4)))
    assert (entries, status) == ([], 0x6D8)


async def test_ranges() -> None:
    with pytest.raises(NdrError, match="not 0 to 500"):
        await ask(Operation.LOOKUP, lookup_request(NULL_HANDLE, 501))
    with pytest.raises(NdrError, match="not 0 to 500"):
        await ask(Operation.MAP, map_request(Tower(ECHO), NULL_HANDLE, 501))


@pytest.mark.parametrize("stub", [map_request(Tower(ECHO)), lookup_request()])
async def test_requests_cut_short(stub: bytes) -> None:
    opnum = Operation.MAP if len(stub) > 60 else Operation.LOOKUP
    for cut in range(len(stub)):
        with pytest.raises(NdrError):
            await ask(opnum, stub[:cut])
    await ask(opnum, stub + b"padding")
    with pytest.raises(NdrError):
        await ask(opnum, stub + bytes.fromhex("8ae3137102f43671"))


@given(st.binary(max_size=200), st.sampled_from(list(Operation)), st.booleans())
@settings(max_examples=300, deadline=None)
async def test_any_request_gives_an_answer_or_a_documented_error(stub: bytes, opnum: int, big: bool) -> None:
    with contextlib.suppress(NdrError, RpcFault):
        await ask(opnum, stub, CallContext(big_endian=big))


@given(st.binary(max_size=200), st.booleans())
@settings(max_examples=300, deadline=None)
def test_any_answer_is_read_or_an_ndr_error(stub: bytes, big: bool) -> None:
    for read in (read_map_response, read_lookup_response):
        try:
            read(stub, big)
        except NdrError:
            continue


async def test_the_management_interface() -> None:
    mgmt = mgmt_interface(lambda: [ECHO, SECOND], lambda: (7, 0, 0, 0))

    async def inquire(opnum: int, *numbers: int) -> NdrReader:
        writer = NdrWriter()
        for number in numbers:
            writer.u32(number)
        return NdrReader(await mgmt.operations[opnum](CallContext(), writer.getvalue()))

    reader = await inquire(0)
    assert reader.pointer()
    assert [reader.u32(), reader.u32()] == [2, 2]
    assert reader.pointer()
    assert reader.pointer()
    assert [reader.guid(), reader.u16(), reader.u16()] == [ECHO.uuid, 1, 0]
    assert [reader.guid(), reader.u16(), reader.u16(), reader.u32()] == [SECOND.uuid, 2, 1, 0]
    reader.finish()
    reader = await inquire(1, 2)
    assert [reader.u32() for _ in range(5)] == [2, 2, 7, 0, 0]
    reader = await inquire(2)
    assert [reader.u32(), reader.u32()] == [0, 1]
    reader = await inquire(3)
    assert reader.u32() == FaultStatus.ACCESS_DENIED
    reader = await inquire(4, 10, 100)
    assert [reader.u32(), reader.u32(), reader.u32(), reader.u8(), reader.u32()] == [100, 0, 1, 0, 0x6D2]
    for opnum, numbers in ((1, (51,)), (4, (10, 4097)), (1, ())):
        with pytest.raises(NdrError):
            await inquire(opnum, *numbers)
