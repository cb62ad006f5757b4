"""From what the manager knows to what goes over the API."""

from __future__ import annotations

from lanner.manager import DeclaredQueue, Outcome, QueueInfo
from lanner.manager.dead_letters import DeadLetter
from lanner.model.queue import QueueProperties
from lanner.schema.dead_letters import DeadLetterOut
from lanner.schema.messages import MessageOut, SendAnswer
from lanner.schema.queues import PlanRequest, QueueOut

__all__ = ["dead_letter_out", "declared_queues", "queue_out", "send_answer"]


def send_answer(outcome: Outcome) -> SendAnswer:
    """Show what a send or transaction came to."""
    return SendAnswer(
        ids=tuple([str(identifier) for identifier in outcome.message_ids]),
        lookup_ids=outcome.lookup_ids,
        replayed=outcome.is_replay,
    )


def queue_out(info: QueueInfo) -> QueueOut:
    """Show a queue."""
    properties = {
        name: getattr(info.properties, name)
        for name in QueueProperties.__struct_fields__
        if name != "privacy"
    }
    rest = {
        name: getattr(info, name)
        for name in QueueInfo.__struct_fields__
        if name not in ("properties", "identifier", "state")
    }
    return QueueOut(
        id=info.identifier,
        privacy=info.properties.privacy.name.lower(),
        state=info.state.value if info.state else "",
        **properties,
        **rest,
    )


def dead_letter_out(letter: DeadLetter) -> DeadLetterOut:
    """Show a dead letter."""
    return DeadLetterOut(queue=letter.queue, reason=letter.reason, message=MessageOut.of(letter.message))


def declared_queues(request: PlanRequest) -> list[DeclaredQueue]:
    """Read a declarative set of queues."""
    return [
        DeclaredQueue(path=queue.path, properties=queue.properties(), security=queue.security or "")
        for queue in request.queues
    ]
