from __future__ import annotations

from typing import Any

import pytest
from tests.manager.conftest import ELSEWHERE, ORDERS, OTHER, durable

from lanner.manager import DeclaredQueue, QueueManager
from lanner.manager.plan import PlannedChange
from lanner.model.errors import (
    InvalidNameError,
    InvalidPropertyError,
    InvalidSecurityDescriptorError,
    LannerError,
    QueueExistsError,
)
from lanner.model.queue import QueueKind, QueueProperties

SDDL = "O:BAD:(A;;0x4;;;WD)"


def declare(path: str, security: str = "", **properties: Any) -> DeclaredQueue:
    return DeclaredQueue(path=path, properties=QueueProperties(**properties), security=security)


def paths(manager: QueueManager) -> list[str]:
    return [info.path for info in manager.queues() if info.kind is not QueueKind.SYSTEM]


def steps(manager: QueueManager, *declared: DeclaredQueue, prune: bool = False) -> list[str]:
    return [str(step) for step in manager.plan_queues(declared, prune=prune).steps]


async def test_what_is_not_there_is_created(manager: QueueManager) -> None:
    plan = manager.plan_queues([declare(ORDERS, SDDL, label="Orders"), declare(r".\catalogue")])
    assert [step.change for step in plan.steps] == [PlannedChange.CREATE] * 2
    assert str(plan) == "create .\\private$\\orders\ncreate .\\catalogue"
    assert paths(manager) == []
    await manager.apply_plan(plan)
    assert paths(manager) == [r".\catalogue", ORDERS]
    info = manager.queue(ORDERS)
    assert (info.properties.label, info.security) == ("Orders", SDDL)


async def test_what_differs_is_changed_and_the_rest_left(manager: QueueManager, orders: str) -> None:
    await manager.send(orders, durable(b"kept"))
    before = manager.queue(orders)
    plan = manager.plan_queues([declare(ORDERS, quota=100, label="new")])
    assert str(plan) == rf"change {ORDERS}: label: '' -> 'new', quota: 4294967295 -> 100"
    await manager.apply_plan(plan)
    after = manager.queue(orders)
    assert after.properties == QueueProperties(quota=100, label="new")
    assert (after.identifier, after.messages, after.security) == (
        before.identifier,
        1,
        before.security,
    )


async def test_only_a_declared_descriptor_is_compared(manager: QueueManager, orders: str) -> None:
    assert steps(manager, declare(ORDERS)) == []
    (step,) = manager.plan_queues([declare(ORDERS, SDDL)]).steps
    assert step.change is PlannedChange.CHANGE
    assert step.differences[0].endswith(f"-> {SDDL}")
    await manager.apply_plan(manager.plan_queues([declare(ORDERS, SDDL)]))
    assert manager.queue(orders).security == SDDL
    assert steps(manager, declare(ORDERS)) == []


async def test_nothing_is_deleted_unless_that_is_asked_for(
    manager: QueueManager, orders: str, other: str
) -> None:
    assert steps(manager, declare(ORDERS)) == []
    assert steps(manager, declare(ORDERS), prune=True) == [rf"delete {OTHER}"]


async def test_pruning_deletes_what_nobody_declares_with_its_messages(
    manager: QueueManager, orders: str, other: str
) -> None:
    await manager.send(other, durable())
    await manager.send(ELSEWHERE, durable())
    plan = manager.plan_queues([declare(ORDERS)], prune=True)
    assert str(plan) == rf"delete {OTHER} (and its 1 messages)"
    await manager.apply_plan(plan)
    assert paths(manager) == [orders]
    assert len(manager.queues()) == 5
    assert len(manager.outgoing_queues()) == 1


async def test_a_plan_that_was_applied_leaves_nothing_to_do(manager: QueueManager, other: str) -> None:
    declared = [declare(ORDERS, SDDL, label="Orders", journaling=True), declare(r".\private$\third", quota=5)]
    first = manager.plan_queues(declared, prune=True)
    assert not first.is_empty
    await manager.apply_plan(first)
    second = manager.plan_queues(declared, prune=True)
    assert second.is_empty
    assert str(second) == "nothing to do"
    await manager.apply_plan(second)


@pytest.mark.parametrize(
    "spelling", [r".\PRIVATE$\Orders", r"here\private$\orders", r"localhost\private$\orders"]
)
async def test_a_queue_may_be_declared_in_any_spelling(
    manager: QueueManager, orders: str, spelling: str
) -> None:
    assert steps(manager, declare(spelling)) == []
    assert steps(manager, declare(spelling, label="x")) == [rf"change {ORDERS}: label: '' -> 'x'"]


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (declare("no path"), InvalidNameError),
        (declare(r"elsewhere\private$\orders"), InvalidNameError),
        (declare(r".\private$\fine;journal"), InvalidNameError),
        (declare(r".\private$\fine;later"), InvalidNameError),
        (declare(r".\system$;journal"), InvalidNameError),
        (declare(r".\private$\order_queue$"), InvalidNameError),
        (declare(r".\private$\fine", quota=-1), InvalidPropertyError),
        (declare(r".\private$\fine", security="nonsense"), InvalidSecurityDescriptorError),
        (declare(r".\private$\FIRST"), InvalidPropertyError),
        (declare(OTHER, transactional=True), InvalidPropertyError),
    ],
    ids=lambda value: value.path if isinstance(value, DeclaredQueue) else "",
)
async def test_what_could_not_be_applied_is_refused_before_anything_is_changed(
    manager: QueueManager, other: str, wrong: DeclaredQueue, error: type[LannerError]
) -> None:
    with pytest.raises(error):
        manager.plan_queues([declare(r".\private$\first"), wrong], prune=True)
    assert paths(manager) == [other]


async def test_a_plan_that_is_out_of_date_says_so(manager: QueueManager) -> None:
    plan = manager.plan_queues([declare(ORDERS)])
    await manager.apply_plan(plan)
    with pytest.raises(QueueExistsError):
        await manager.apply_plan(plan)
