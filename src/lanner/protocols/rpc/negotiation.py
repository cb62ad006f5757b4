"""Presentation contexts: which interface and transfer syntax a client gets (MS-RPCE 3.3.1.5.3, 3.3.1.5.6)."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from lanner.protocols.rpc.interface import InterfaceId, RpcInterface
from lanner.protocols.rpc.pdu import NDR20, ContextElement, ContextReason, ContextResult, ResultCode

__all__ = [
    "KEEP_CONNECTION_ON_ORPHAN",
    "SECURITY_MULTIPLEXING",
    "features_of",
    "features_syntax",
    "negotiate",
]

FEATURES_PREFIX = UUID("6cb71c2c-9812-4540-0000-000000000000").bytes_le[:8]
"""How the UUID of a bind time feature negotiation begins (3.3.1.5.3)."""

SECURITY_MULTIPLEXING = 0x01
"""Several security contexts on one association (2.2.2.14)."""

KEEP_CONNECTION_ON_ORPHAN = 0x02
"""An orphaned call does not end the association (2.2.2.14)."""

SUPPORTED_FEATURES = SECURITY_MULTIPLEXING | KEEP_CONNECTION_ON_ORPHAN

MAX_CONTEXTS = 64
"""Presentation contexts of one association: three interfaces are offered here, and MS-RPCE 3.3.3.5.5 has an
upper limit only, of 4,000 for each interface."""


def features_of(element: ContextElement) -> int | None:
    """The features that an element of a bind asks for, if that is what it is."""
    if len(element.transfers) != 1:
        return None
    (syntax,) = element.transfers
    raw = syntax.uuid.bytes_le
    if raw[:8] != FEATURES_PREFIX or (syntax.major, syntax.minor) != (1, 0):
        return None
    return raw[8]


def features_syntax(features: int) -> InterfaceId:
    """The transfer syntax that asks for features."""
    return InterfaceId(UUID(bytes_le=FEATURES_PREFIX + bytes([features]) + bytes(7)), 1, 0)


def negotiate(
    elements: Iterable[ContextElement],
    interfaces: Iterable[RpcInterface],
    contexts: dict[int, RpcInterface],
) -> tuple[tuple[ContextResult, ...], int]:
    """Answer each element in its place; new contexts go into ``contexts``. Says which features are agreed."""
    offered = tuple(interfaces)
    agreed = 0
    results = []
    for element in elements:
        features = features_of(element)
        if features is not None:
            agreed = features & SUPPORTED_FEATURES
            results.append(ContextResult(ResultCode.NEGOTIATE_ACK, agreed))
        else:
            results.append(_answer(element, offered, contexts))
    return tuple(results), agreed


def _answer(
    element: ContextElement, interfaces: tuple[RpcInterface, ...], contexts: dict[int, RpcInterface]
) -> ContextResult:
    interface = next((each for each in interfaces if each.serves(element.abstract)), None)
    if interface is None:
        return _rejection(ContextReason.ABSTRACT_SYNTAX_NOT_SUPPORTED)
    if NDR20 not in element.transfers:
        return _rejection(ContextReason.TRANSFER_SYNTAXES_NOT_SUPPORTED)
    known = contexts.get(element.id)
    if known is not None and known is not interface:
        return _rejection(ContextReason.NOT_SPECIFIED)  # what an identifier means stays what it means
    if known is None and len(contexts) >= MAX_CONTEXTS:
        return _rejection(ContextReason.LOCAL_LIMIT_EXCEEDED)
    contexts[element.id] = interface
    return ContextResult(ResultCode.ACCEPTANCE, 0, NDR20)


def _rejection(reason: ContextReason) -> ContextResult:
    return ContextResult(ResultCode.PROVIDER_REJECTION, reason)
