"""Queues as they go over the API."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import Meta

from lanner.model.queue import QueueKind, QueuePrivacy, QueueProperties
from lanner.model.transfer import Connection, IncomingTransfer, OutgoingTransfer
from lanner.schema.base import In, Out, QueueName, UInt32


class PropertiesIn(In, frozen=True, kw_only=True):
    """Properties to give to a queue; what is left out stays, or has its default."""

    label: str | None = None
    transactional: bool | None = None
    journaling: bool | None = None
    quota: UInt32 | None = None
    journal_quota: UInt32 | None = None
    base_priority: Annotated[int, Meta(ge=-0x8000, le=0x7FFF)] | None = None
    authentication: bool | None = None
    privacy: Literal["none", "optional", "body"] | None = None
    multicast_address: str | None = None
    type_id: UUID | None = None
    max_aborts: Annotated[int, Meta(ge=0, le=1_000_000)] | None = None

    def over(self, properties: QueueProperties) -> QueueProperties:
        """Put these over others."""
        given = {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None}
        if "privacy" in given:
            given["privacy"] = QueuePrivacy[given["privacy"].upper()]
        return msgspec.structs.replace(properties, **given)


class CreateQueueRequest(PropertiesIn, frozen=True, kw_only=True):
    """A queue to create."""

    path: QueueName
    security: str | None = None
    """SDDL."""

    def properties(self) -> QueueProperties:
        """The properties alone."""
        fields = {name: getattr(self, name) for name in PropertiesIn.__struct_fields__}
        return PropertiesIn(**fields).over(QueueProperties())


class ChangeQueueRequest(PropertiesIn, frozen=True, kw_only=True):
    """What to change about a queue."""

    queue: QueueName
    security: str | None = None

    def over(self, properties: QueueProperties) -> QueueProperties:
        """Put these over others."""
        fields = {name: getattr(self, name) for name in PropertiesIn.__struct_fields__}
        return PropertiesIn(**fields).over(properties)


class QueueRequest(In, frozen=True, kw_only=True):
    """A queue by one of its names."""

    queue: QueueName


class QueueOut(Out, frozen=True, kw_only=True):
    """A queue at one moment."""

    path: str
    format_name: str
    kind: QueueKind
    id: UUID
    label: str
    transactional: bool
    journaling: bool
    quota: int
    journal_quota: int
    base_priority: int
    authentication: bool
    privacy: str
    multicast_address: str
    type_id: UUID
    max_aborts: int
    created: float
    modified: float
    messages: int
    bytes: int
    available_messages: int
    journal_messages: int
    journal_bytes: int
    subqueues: tuple[str, ...]
    open_handles: int
    waiting_readers: int
    security: str
    access: tuple[str, ...]
    state: str
    explanation: str
    last_failure: str
    """Of an outgoing queue: why the latest attempts to connect failed, if they did."""
    next_hops: tuple[str, ...]
    """Of an outgoing queue: where its messages go first."""
    connections: tuple[Connection, ...]
    """The latest attempts to connect, the newest last; in lists left out."""
    transfer: OutgoingTransfer | None
    """How far the stream of an outgoing queue has got; in lists left out."""
    incoming: tuple[IncomingTransfer, ...]
    """The streams that come into a local queue, the one used last first; in lists left out."""


class QueuesAnswer(Out, frozen=True, kw_only=True):
    """Queues, by name."""

    queues: tuple[QueueOut, ...]


class PathAnswer(Out, frozen=True, kw_only=True):
    """Where a queue is."""

    path: str
    machine: str


class PurgeAnswer(Out, frozen=True, kw_only=True):
    """How many messages went."""

    purged: int


class PlanRequest(In, frozen=True, kw_only=True):
    """A declarative set of queues."""

    queues: Annotated[tuple[CreateQueueRequest, ...], Meta(max_length=10_000)]
    prune: bool = False
    """Delete the queues that are not declared."""
    apply: bool = False
    """Do it, instead of only saying what would be done."""


class PlanAnswer(Out, frozen=True, kw_only=True):
    """What was done, or would be."""

    steps: tuple[str, ...]
    applied: bool
