"""Creating, showing, changing and deleting queues."""

from __future__ import annotations

from lanner.api.context import Api
from lanner.api.convert import declared_queues, queue_out
from lanner.api.tokens import Caller, Right
from lanner.model.security import SecurityDescriptor
from lanner.schema.base import DoneAnswer, In
from lanner.schema.queues import (
    ChangeQueueRequest,
    CreateQueueRequest,
    PathAnswer,
    PlanAnswer,
    PlanRequest,
    PurgeAnswer,
    QueueOut,
    QueueRequest,
    QueuesAnswer,
)

__all__ = ["change", "create", "delete", "list_queues", "path", "pause", "plan", "purge", "resume", "show"]


async def list_queues(api: Api, caller: Caller, request: In) -> QueuesAnswer:
    """List the local and the outgoing queues."""
    infos = [*api.manager.queues(), *api.manager.outgoing_queues()]
    return QueuesAnswer(queues=tuple([queue_out(info) for info in infos]))


async def show(api: Api, caller: Caller, request: QueueRequest) -> QueueOut:
    """Show one queue."""
    api.check(caller, Right.PEEK, request.queue)
    return queue_out(api.manager.queue(request.queue))


async def path(api: Api, caller: Caller, request: QueueRequest) -> PathAnswer:
    """Tell the path name that a format name stands for, and the machine that it is on."""
    found, machine = api.manager.get_queue_path(request.queue)
    return PathAnswer(path=found, machine=machine)


async def create(api: Api, caller: Caller, request: CreateQueueRequest) -> QueueOut:
    """Create a queue."""
    security = SecurityDescriptor.from_sddl(request.security) if request.security else None
    return queue_out(await api.manager.create_queue(request.path, request.properties(), security=security))


async def change(api: Api, caller: Caller, request: ChangeQueueRequest) -> QueueOut:
    """Change a queue's properties."""
    properties = request.over(api.manager.queue(request.queue).properties)
    security = SecurityDescriptor.from_sddl(request.security) if request.security else None
    return queue_out(await api.manager.change_queue(request.queue, properties, security=security))


async def delete(api: Api, caller: Caller, request: QueueRequest) -> DoneAnswer:
    """Delete a queue with everything in it."""
    await api.manager.delete_queue(request.queue)
    return DoneAnswer()


async def purge(api: Api, caller: Caller, request: QueueRequest) -> PurgeAnswer:
    """Drop every message of a queue."""
    return PurgeAnswer(purged=await api.manager.purge_queue(request.queue))


async def pause(api: Api, caller: Caller, request: QueueRequest) -> DoneAnswer:
    """Let nothing leave an outgoing queue."""
    await api.manager.pause_queue(request.queue)
    return DoneAnswer()


async def resume(api: Api, caller: Caller, request: QueueRequest) -> DoneAnswer:
    """Let messages leave an outgoing queue again."""
    await api.manager.resume_queue(request.queue)
    return DoneAnswer()


async def plan(api: Api, caller: Caller, request: PlanRequest) -> PlanAnswer:
    """Compare a declarative set of queues with what is there, and apply the difference."""
    found = api.manager.plan_queues(declared_queues(request), prune=request.prune)
    if request.apply:
        await api.manager.apply_plan(found)
    return PlanAnswer(steps=tuple([str(step) for step in found.steps]), applied=request.apply)
