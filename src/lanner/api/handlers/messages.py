"""Sending, receiving, looking, moving."""

from __future__ import annotations

from lanner.api.context import Api
from lanner.api.convert import send_answer
from lanner.api.tokens import Caller, Right
from lanner.manager import OpenQueue, Transaction
from lanner.model.errors import InvalidPropertyError, ReceiveTimeoutError
from lanner.model.message import Message
from lanner.model.message_id import MessageId
from lanner.model.queue import QueueAccess, SeekAction, ShareMode
from lanner.schema.base import DoneAnswer
from lanner.schema.messages import (
    MessageOut,
    MessagesAnswer,
    MoveRequest,
    PeekRequest,
    ReceiveRequest,
    SendAnswer,
    SendRequest,
)

__all__ = ["move", "peek", "receive", "send"]


async def send(api: Api, caller: Caller, request: SendRequest) -> SendAnswer:
    """Send messages together."""
    api.check(caller, Right.SEND, request.queue)
    manager = api.manager
    messages = [message.to_message() for message in request.messages]
    if request.transaction is not None:
        transaction = api.leases.get(request.transaction, caller.name)
        return send_answer(
            await manager.send_many(request.queue, messages, transaction=transaction, key=request.key)
        )
    if not request.transactional:
        return send_answer(await manager.send_many(request.queue, messages, key=request.key))
    transaction = manager.create_transaction(key=request.key)
    try:
        await manager.send_many(request.queue, messages, transaction=transaction)
    except BaseException:
        await manager.transaction_abort(transaction)
        raise
    return send_answer(await manager.transaction_commit(transaction))


async def receive(api: Api, caller: Caller, request: ReceiveRequest) -> MessagesAnswer:
    """Receive messages; none when none came in time."""
    api.check(caller, Right.RECEIVE, request.queue)
    transaction = api.leases.get(request.transaction, caller.name) if request.transaction else None
    share = ShareMode.DENY_RECEIVE if request.exclusive else ShareMode.DENY_NONE
    handle = _open(api, request.queue, QueueAccess.RECEIVE, QueueAccess.RECEIVE_ADMIN, share)
    try:
        messages = await _receive(api, handle, request, transaction)
    except ReceiveTimeoutError:
        messages = []
    finally:
        api.manager.close_queue(handle)
    return MessagesAnswer(messages=tuple([MessageOut.of(message) for message in messages]))


async def _receive(
    api: Api, handle: OpenQueue, request: ReceiveRequest, transaction: Transaction | None
) -> list[Message]:
    manager = api.manager
    if request.lookup_id is not None or request.action in ("first", "last"):
        message = await manager.read_message_by_lookup_identifier(
            handle, request.lookup_id or 0, SeekAction(request.action), transaction=transaction
        )
        return [message]
    if request.message_id or request.correlation_id:
        if request.count != 1:
            raise InvalidPropertyError("by identifier, one message is received at a time")
        message = await manager.dequeue_message(
            handle,
            timeout=request.wait,
            transaction=transaction,
            message_id=MessageId.parse(request.message_id) if request.message_id else None,
            correlation_id=MessageId.parse(request.correlation_id) if request.correlation_id else None,
        )
        return [message]
    return await manager.dequeue_messages(
        handle, request.count, timeout=request.wait, transaction=transaction
    )


async def peek(api: Api, caller: Caller, request: PeekRequest) -> MessagesAnswer:
    """Look at messages without taking them."""
    api.check(caller, Right.PEEK, request.queue)
    manager = api.manager
    handle = _open(api, request.queue, QueueAccess.PEEK, QueueAccess.PEEK_ADMIN)
    try:
        messages = await manager.browse_messages(
            handle, request.count, after=request.after, bodies=request.bodies
        )
        if not messages and request.wait and request.after < 0:
            messages = [await manager.peek_message(handle, timeout=request.wait)]
    except ReceiveTimeoutError:
        messages = []
    finally:
        manager.close_queue(handle)
    return MessagesAnswer(messages=tuple([MessageOut.of(message) for message in messages]))


async def move(api: Api, caller: Caller, request: MoveRequest) -> DoneAnswer:
    """Move a message to another queue or subqueue."""
    api.check(caller, Right.RECEIVE, request.queue)
    api.check(caller, Right.SEND, request.target)
    transaction = api.leases.get(request.transaction, caller.name) if request.transaction else None
    handle = api.manager.open_queue(request.queue, QueueAccess.RECEIVE)
    try:
        await api.manager.move_message(handle, request.lookup_id, request.target, transaction=transaction)
    finally:
        api.manager.close_queue(handle)
    return DoneAnswer()


def _open(
    api: Api,
    name: str,
    access: QueueAccess,
    admin_access: QueueAccess,
    share: ShareMode = ShareMode.DENY_NONE,
) -> OpenQueue:
    """Open a local queue, or, for an administrator's eyes, an outgoing one."""
    is_outgoing = api.manager.is_outgoing(name)
    return api.manager.open_queue(name, admin_access if is_outgoing else access, share=share)
