"""qmmgmt as a server: R_QMMgmtGetInfo and R_QMMgmtAction against the live manager (MS-MQMR 3.1.4).

Neither method throws (3.1.4): what goes wrong is told by the status, and then no out parameter is set, so
that the values go back as they came. Stubs that do not follow the interface are the RPC layer's to refuse.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from lanner.manager import QueueManager
from lanner.manager.queues import Queue
from lanner.model.codes import StatusCode
from lanner.model.errors import LannerError
from lanner.model.log_fields import about
from lanner.protocols.management.properties import properties_of
from lanner.protocols.management.queue_format import to_format_name
from lanner.protocols.management.values import machine_value, queue_value
from lanner.protocols.management.variant import Variant
from lanner.protocols.management.wire import (
    ACTION,
    GET_INFO,
    QMMGMT,
    ActionCall,
    GetInfoCall,
    ManagementObject,
    ObjectType,
    decode_action,
    decode_get_info,
    encode_action_answer,
    encode_get_info_answer,
)
from lanner.protocols.rpc.interface import Access, AuthLevel, CallContext, RpcInterface

__all__ = ["ManagementServer"]

log = logging.getLogger(__name__)


class _Refused(Exception):  # noqa: N818 - an answer, not an error of ours
    """The call fails with a status."""

    def __init__(self, status: StatusCode, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class ManagementServer:
    """The two operations, for one queue manager."""

    def __init__(self, manager: QueueManager) -> None:
        self._manager = manager
        self._tidying: asyncio.Task[int] | None = None
        self._machine_actions: dict[str, Callable[[], Awaitable[None]]] = {
            "CONNECT": self._connect,
            "DISCONNECT": self._disconnect,
            "TIDY": self._tidy,
        }
        self._queue_actions: dict[str, Callable[[str], Awaitable[None]]] = {
            "PAUSE": manager.pause_queue,
            "RESUME": manager.resume_queue,
            "EOD_RESEND": self._resend,
        }

    def interface(self, minimum_level: AuthLevel = AuthLevel.NONE) -> RpcInterface:
        """What the RPC server serves: to administrators alone (3)."""
        return RpcInterface(
            uuid=QMMGMT.uuid,
            major=QMMGMT.major,
            minor=QMMGMT.minor,
            operations={GET_INFO: self.get_info, ACTION: self.action},
            access=Access.ADMINISTRATORS,
            minimum_level=minimum_level,
            annotation="Message Queuing - QMMGMT",
        )

    # R_QMMgmtGetInfo (3.1.4.1).

    async def get_info(self, context: CallContext, stub: bytes) -> bytes:
        """Opnum 0."""
        call = decode_get_info(stub, big_endian=context.big_endian)
        try:
            self._check(context)
            return encode_get_info_answer(self._values(call), StatusCode.MQ_OK)
        except Exception as error:
            # [in, out]: what is not set goes back as the client gave it.
            return encode_get_info_answer(call.variants, self._status(error, context))

    def _values(self, call: GetInfoCall) -> list[Variant]:
        if call.object.type is ObjectType.SESSION:
            raise _Refused(StatusCode.MQ_ERROR_INVALID_PARAMETER, "sessions are not managed")
        known = properties_of(call.object.type)
        for number in call.properties:
            if number not in known:
                raise _Refused(
                    StatusCode.MQ_ERROR_ILLEGAL_PROPID,
                    f"a {call.object.type.name.lower()} has no property {number}",
                )
        if call.object.type is ObjectType.MACHINE:
            return [machine_value(self._manager, number) for number in call.properties]
        queue = self._find(call.object)
        return [queue_value(self._manager, queue, number) for number in call.properties]

    # R_QMMgmtAction (3.1.4.2).

    async def action(self, context: CallContext, stub: bytes) -> bytes:
        """Opnum 1."""
        call = decode_action(stub, big_endian=context.big_endian)
        try:
            self._check(context)
            name = await self._act(call)
        except Exception as error:
            return encode_action_answer(self._status(error, context))
        log.info(
            "%s of %s by %s from %s",
            call.action.upper(),
            name or "the machine",
            context.caller,
            context.peer,
            extra=about(queues=[name] if name else []),
        )
        return encode_action_answer(StatusCode.MQ_OK)

    async def _act(self, call: ActionCall) -> str:
        """Do it; says to which queue."""
        wanted = call.action.upper()
        if call.object.type is ObjectType.MACHINE and wanted in self._machine_actions:
            await self._machine_actions[wanted]()
            return ""
        if call.object.type is ObjectType.QUEUE and wanted in self._queue_actions:
            name = self._find(call.object).name
            await self._queue_actions[wanted](name)
            return name
        raise _Refused(
            StatusCode.MQ_ERROR_INVALID_PARAMETER,
            f"a {call.object.type.name.lower()} has no action {call.action!r}",
        )

    async def _connect(self) -> None:
        self._manager.bring_online()

    async def _disconnect(self) -> None:
        self._manager.take_offline()

    async def _tidy(self) -> None:
        """Give the room back that deleted messages had.

        Deviation: the text purges every queue (3.1.4.2), which its own table contradicts ("cleans up empty
        message files"), and which would destroy every message.
        """
        if self._tidying is None or self._tidying.done():
            self._tidying = asyncio.ensure_future(self._manager.store.compact())
        # Who asks meanwhile waits for the same one; who goes away does not stop it.
        await asyncio.shield(self._tidying)

    async def _resend(self, name: str) -> None:
        self._manager.resend_stream(name)

    # What both share.

    def _check(self, context: CallContext) -> None:
        """The client must be an administrator (3). The RPC layer has seen to that; nobody gets past both."""
        if not context.caller.is_administrator:
            raise _Refused(StatusCode.MQ_ERROR_ACCESS_DENIED, f"{context.caller} is no administrator")
        if not self._manager.is_running:
            raise _Refused(StatusCode.MQ_ERROR_SERVICE_NOT_AVAILABLE, "the queue manager is stopping")

    def _find(self, given: ManagementObject) -> Queue:
        """The queue that is named.

        Deviation: the text opens it to receive (3.1.4.1), which would make outgoing queues and is impossible
        for those over HTTP; here it is looked up, and one that is not there is not found.
        """
        if given.queue is None:
            raise _Refused(StatusCode.MQ_ERROR_INVALID_PARAMETER, "no queue is named")
        name = to_format_name(given.queue)
        queue = self._manager.transfers.find(name)
        if queue is None:
            raise _Refused(StatusCode.MQ_ERROR_QUEUE_NOT_FOUND, f"there is no queue {name}")
        return queue

    def _status(self, error: Exception, context: CallContext) -> StatusCode:
        """What to answer, and a word in the log."""
        if isinstance(error, _Refused):
            status = error.status
        elif isinstance(error, LannerError):
            status = error.code
        else:
            log.exception("a call of %s from %s failed", context.caller, context.peer)
            return StatusCode.MQ_ERROR
        log.info("a call of %s from %s ends with %s: %s", context.caller, context.peer, status.name, error)
        return status
