"""A client of qmmgmt: asks any MSMQ server about itself and its queues, and lets it do things (MS-MQMR 3.2)::

    async with await ManagementClient.connect("mail1", credentials=Credentials("ada", "secret")) as client:
        machine = await client.get_machine("connected", "active-queues")
        queue = await client.get_queue(r"DIRECT=OS:mail1\\private$\\orders", "message-count", "state")
        await client.act("PAUSE", "DIRECT=HTTP://far/msmq/private$/orders")

It keeps no state but its association. What the server answers is passed on as it is; an error is raised.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Self

from lanner.model.codes import StatusCode
from lanner.model.errors import InvalidNameError, InvalidPropertyError, LannerError
from lanner.model.format_name import FormatName
from lanner.model.path_name import PathName, parse_name
from lanner.protocols.management.presenting import understand
from lanner.protocols.management.properties import Property, find_property, properties_of
from lanner.protocols.management.queue_format import from_format_name
from lanner.protocols.management.variant import Variant
from lanner.protocols.management.wire import (
    ACTION,
    GET_INFO,
    MACHINE,
    MAX_PROPERTIES,
    QMMGMT,
    ManagementObject,
    ObjectType,
    decode_action_answer,
    decode_get_info_answer,
    encode_action,
    encode_get_info,
)
from lanner.protocols.rpc.client import CALL_SECONDS, ENDPOINT_MAPPER_PORT, RpcClient
from lanner.protocols.rpc.credentials import Credentials
from lanner.protocols.rpc.interface import AuthLevel

__all__ = ["MACHINE_ACTIONS", "QUEUE_ACTIONS", "ManagementClient", "ManagementError"]

MACHINE_ACTIONS = ("CONNECT", "DISCONNECT", "TIDY")
QUEUE_ACTIONS = ("PAUSE", "RESUME", "EOD_RESEND")

CALLS_AT_ONCE = 8
"""Calls of one association at a time: servers refuse more than they like."""

FAILED = 0x8000_0000
"""The bit of an HRESULT that says failure (MS-ERREF 2.1)."""

_HINTS = {
    StatusCode.MQ_ERROR_QUEUE_NOT_FOUND: "it has no such queue; an outgoing queue is there while it is used",
    StatusCode.MQ_ERROR_ACCESS_DENIED: "only its administrators may do that",
    StatusCode.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION: "that is done to outgoing queues alone",
    StatusCode.MQ_ERROR_ILLEGAL_PROPID: "it is too old for one of the properties: ask for fewer",
}


class ManagementError(LannerError):
    """The server answered with an error; ``status`` is its HRESULT."""

    def __init__(self, status: int) -> None:
        self.status = status
        try:
            known = StatusCode(status)
        except ValueError:
            super().__init__(f"the server answered with {status:#010x}")
        else:
            super().__init__(f"the server answered with {known.name}", hint=_HINTS.get(known, ""))


class ManagementClient:
    """An association with the management interface of one server."""

    def __init__(self, rpc: RpcClient) -> None:
        self._rpc = rpc
        self._turns = asyncio.Semaphore(CALLS_AT_ONCE)

    @classmethod
    async def connect(
        cls,
        host: str,
        *,
        port: int | None = None,
        credentials: Credentials | None = None,
        level: AuthLevel | None = None,
        timeout: float = CALL_SECONDS,
        mapper_port: int = ENDPOINT_MAPPER_PORT,
    ) -> Self:
        """Connect and log on. Without a port, the endpoint mapper of the host is asked for it."""
        rpc = await RpcClient.connect(
            host,
            QMMGMT,
            port=port,
            credentials=credentials,
            level=level,
            timeout=timeout,
            mapper_port=mapper_port,
        )
        return cls(rpc)

    async def close(self) -> None:
        """Hang up."""
        await self._rpc.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # As people say it.

    async def get_machine(self, *names: str) -> dict[str, Any]:
        """Properties of the machine by name; without names, all that it has."""
        return await self._get(MACHINE, names)

    async def get_queue(self, queue: str | FormatName, *names: str) -> dict[str, Any]:
        """Properties of a queue by name; without names, all that it has. One that does not apply is None."""
        return await self._get(_queue_object(queue), names)

    async def act(self, action: str, queue: str | FormatName | None = None) -> None:
        """Let the machine do something, or one of its queues."""
        known = MACHINE_ACTIONS if queue is None else QUEUE_ACTIONS
        if action.upper() not in known:
            what = "machine" if queue is None else "queue"
            raise InvalidPropertyError(
                f"a {what} has no action {action!r}", hint=f"there are {', '.join(known).lower()}"
            )
        await self.action(MACHINE if queue is None else _queue_object(queue), action)

    async def _get(self, target: ManagementObject, names: Sequence[str]) -> dict[str, Any]:
        if names:
            wanted = list(dict.fromkeys(find_property(target.type, name) for name in names))
            return await self._ask(target, wanted)
        everything = list(properties_of(target.type).values())
        try:
            return await self._ask(target, everything)
        except ManagementError as error:
            if error.status != StatusCode.MQ_ERROR_ILLEGAL_PROPID:
                raise
        # A server of before 2008 has fewer (MS-MQMR, product behavior 8 to 11): those that it has, then.
        found: dict[str, Any] = {}
        for each in everything:
            try:
                found |= await self._ask(target, [each])
            except ManagementError as error:
                if error.status != StatusCode.MQ_ERROR_ILLEGAL_PROPID:
                    raise
        return found

    async def _ask(self, target: ManagementObject, wanted: Sequence[Property]) -> dict[str, Any]:
        variants = await self.get_info(target, [each.id for each in wanted])
        return {each.name: understand(each, value) for each, value in zip(wanted, variants, strict=True)}

    # As it is on the wire.

    async def get_info(self, target: ManagementObject, properties: Sequence[int]) -> Sequence[Variant]:
        """R_QMMgmtGetInfo: the values, as they came (3.2.4)."""
        if not 1 <= len(properties) <= MAX_PROPERTIES:
            raise InvalidPropertyError(f"1 to {MAX_PROPERTIES} properties can be asked for at once")
        async with self._turns:
            stub = await self._rpc.call(GET_INFO, encode_get_info(target, properties))
        answer = decode_get_info_answer(stub, len(properties))
        _check(answer.status)
        return answer.variants

    async def action(self, target: ManagementObject, action: str) -> None:
        """R_QMMgmtAction."""
        async with self._turns:
            stub = await self._rpc.call(ACTION, encode_action(target, action))
        _check(decode_action_answer(stub))


def _check(status: int) -> None:
    if status & FAILED:
        raise ManagementError(status)


@lru_cache(maxsize=1024)
def _queue_object(queue: str | FormatName) -> ManagementObject:
    name = parse_name(queue) if isinstance(queue, str) else queue
    if isinstance(name, PathName):
        # "." is the machine that is asked.
        name = name.to_direct_os()
    if len(name.elements) > 1:
        raise InvalidNameError(f"{name} names more than one queue", hint="ask for each of them by itself")
    return ManagementObject(ObjectType.QUEUE, from_format_name(name))
