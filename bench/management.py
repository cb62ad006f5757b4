"""Management: calls of one sealed association, against impacket's client, and 200 associations at once.

The server is a process of its own on loopback, with a queue that has been used. A call is R_QMMgmtGetInfo
with 10 properties. Our client and impacket's take turns against the same server; both seal with NTLM.
"""

# mypy: disable-error-code="import-untyped, import-not-found"

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import statistics
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import uvloop

from bench.measure import Rounds, Target, disk_directory, print_report
from bench.peers import PeerMissingError
from lanner.manager import QueueManager
from lanner.model.message import Message
from lanner.protocols.management.client import ManagementClient
from lanner.protocols.management.endpoint import ManagementEndpoint
from lanner.protocols.management.settings import USERS_NAME, ManagementSettings
from lanner.protocols.rpc.accounts import UserFile
from lanner.protocols.rpc.credentials import Credentials, Mechanism
from lanner.protocols.rpc.ntlm import nt_hash

QUEUE = r".\private$\orders"
WANTED = (
    "path-name",
    "format-name",
    "type",
    "location",
    "transactional",
    "message-count",
    "bytes",
    "journal-message-count",
    "journal-bytes",
    "state",
)
ADA = Credentials("ada", "secret", Mechanism.NTLM)

ROUNDS = 5
ROUND_SECONDS = 2.0
AT_ONCE = 8
ASSOCIATIONS = 200
MANY_SECONDS = 10.0


def main() -> list[Target]:
    try:
        import impacket.dcerpc.v5.rpcrt  # noqa: F401
    except ImportError:
        raise PeerMissingError("impacket", "impacket (pip)") from None
    serial = Rounds("calls one after the other, our client", "a second", [])
    several = Rounds(f"calls {AT_ONCE} at a time, our client", "a second", [])
    peer = Rounds("calls one after the other, impacket's client", "a second", [])
    with disk_directory() as data, _server(data) as port:
        for _ in range(ROUNDS):
            serial.values.append(uvloop.run(_ours(port, 1)))
            several.values.append(uvloop.run(_ours(port, AT_ONCE)))
            peer.values.append(_impacket(port))
        counts = uvloop.run(_many(port))
    mean = statistics.mean(counts)
    targets = [
        Target("calls of one sealed association", max(serial.median, several.median), 2_000, unit="a second"),
        Target("our client against impacket's", serial.median / peer.median, 3.0),
        Target("the slowest of 200 associations against their mean", min(counts) / mean, 0.5),
    ]
    rate = sum(counts) / MANY_SECONDS
    lines = [
        serial,
        several,
        peer,
        f"{ASSOCIATIONS} associations at once: {rate:,.0f} calls a second together, "
        f"{min(counts)} to {max(counts)} each in {MANY_SECONDS:g} s",
    ]
    print_report("Management", [*lines, *targets])
    return targets


async def _ours(port: int, at_once: int) -> float:
    async with await ManagementClient.connect("127.0.0.1", port=port, credentials=ADA) as client:
        count = 0
        begun = time.perf_counter()
        end = begun + ROUND_SECONDS

        async def go_on() -> None:
            nonlocal count
            while time.perf_counter() < end:
                await client.get_queue(QUEUE, *WANTED)
                count += 1

        await asyncio.gather(*(go_on() for _ in range(at_once)))
        return count / (time.perf_counter() - begun)


def _impacket(port: int) -> float:
    from impacket.dcerpc.v5 import rpcrt, transport
    from impacket.uuid import uuidtup_to_bin
    from tests.interop import qmmgmt_impacket as qmmgmt

    rpc = transport.DCERPCTransportFactory(f"ncacn_ip_tcp:127.0.0.1[{port}]")
    rpc.set_credentials(ADA.user, ADA.password, "")
    dce = rpc.get_dce_rpc()
    dce.set_auth_type(rpcrt.RPC_C_AUTHN_WINNT)
    dce.set_auth_level(rpcrt.RPC_C_AUTHN_LEVEL_PKT_PRIVACY)
    dce.connect()
    dce.bind(uuidtup_to_bin(("41208ee0-e970-11d1-9b9e-00e02c064c39", "1.0")))
    numbers = (1, 2, 3, 4, 5, 7, 8, 9, 10, 11)
    queue = (3, 0, r"OS:.\private$\orders")
    count = 0
    begun = time.perf_counter()
    while (passed := time.perf_counter() - begun) < ROUND_SECONDS:
        dce.call(0, qmmgmt.get_info(numbers, queue))
        answer = qmmgmt.R_QMMgmtGetInfoResponse(dce.recv())
        assert len([qmmgmt.plain(each) for each in answer["apVar"]]) == 10
        count += 1
    dce.disconnect()
    return count / passed


async def _many(port: int) -> list[int]:
    """Calls that each of many associations got through in the same time."""
    clients = []
    for _ in range(ASSOCIATIONS):
        clients.append(await ManagementClient.connect("127.0.0.1", port=port, credentials=ADA))
    end = time.perf_counter() + MANY_SECONDS

    async def go_on(client: ManagementClient) -> int:
        count = 0
        while time.perf_counter() < end:
            await client.get_queue(QUEUE, *WANTED)
            count += 1
        return count

    counts = await asyncio.gather(*map(go_on, clients))
    for client in clients:
        await client.close()
    return list(counts)


# The server.


@contextlib.contextmanager
def _server(data: Path) -> Iterator[int]:
    UserFile(data / USERS_NAME).set(ADA.user, nt_hash(ADA.password))
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(data, theirs), daemon=True)
    process.start()
    try:
        yield ours.recv()
    finally:
        ours.send(None)
        process.join(10)


def _serve(data: Path, pipe: Connection) -> None:
    async def run() -> None:
        async with await QueueManager.open(data / "store", name="here") as manager:
            await manager.create_queue(QUEUE)
            for _ in range(100):
                await manager.send(QUEUE, Message(body=b"x" * 1000))
            settings = ManagementSettings(endpoint_mapper=False, administrators=(ADA.user,))
            endpoint = ManagementEndpoint(manager, settings, "127.0.0.1", port=0, data=data)
            await endpoint.start()
            pipe.send(endpoint.port)
            await asyncio.to_thread(pipe.recv)
            await endpoint.stop()

    uvloop.run(run())
