"""A stub cut into fragments, and put together again."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from lanner.protocols.rpc.codec import encode, segments
from lanner.protocols.rpc.errors import ProtocolError
from lanner.protocols.rpc.pdu import TRAILER_SIZE, Fault, Flags, Request, Response, SecTrailer
from lanner.protocols.rpc.security import SecurityContext

__all__ = ["Budget", "fragment", "plain_body"]

BODY_ALIGNMENT = 16
"""The sec_trailer stands at a multiple of this, from the beginning of the body (MS-RPCE 2.2.2.11)."""

P = TypeVar("P", Request, Response)


class Budget:
    """Octets that several associations may hold together."""

    def __init__(self, size: int) -> None:
        self._left = size

    @property
    def left(self) -> int:
        """What nobody holds."""
        return self._left

    def take(self, size: int) -> bool:
        """Hold so many, if they are there."""
        if size > self._left:
            return False
        self._left -= size
        return True

    def give(self, size: int) -> None:
        """Hold them no longer."""
        self._left += size


def fragment(pdu: P, stub: bytes, limit: int, security: SecurityContext | None) -> list[bytes]:
    """The PDUs that carry a stub: the header of ``pdu``, no fragment longer than ``limit``, protected."""
    header = len(encode(replace(pdu, stub=b"", auth=None)))
    token = security.token_length if security is not None else 0
    room = limit - header
    if token:
        room -= TRAILER_SIZE + token
    # Only the last fragment needs padding.
    room -= room % BODY_ALIGNMENT
    pieces = [stub[at : at + room] for at in range(0, len(stub), room)] or [b""]
    left = len(stub)
    pdus = []
    for index, piece in enumerate(pieces):
        flags = pdu.flags & ~(Flags.FIRST | Flags.LAST)
        flags |= Flags.FIRST if index == 0 else Flags.NONE
        flags |= Flags.LAST if index == len(pieces) - 1 else Flags.NONE
        one = replace(pdu, flags=flags, alloc_hint=left, stub=piece)
        pdus.append(_protected(one, security, token))
        left -= len(piece)
    return pdus


def _protected(pdu: P, security: SecurityContext | None, token: int) -> bytes:
    if security is None or not token:
        return encode(pdu)
    pad = -len(pdu.stub) % BODY_ALIGNMENT
    trailer = SecTrailer(security.kind, security.level, security.context_id, bytes(token), pad)
    data = encode(replace(pdu, stub=pdu.stub + bytes(pad), auth=trailer))
    return security.protect(segments(data))


def plain_body(data: bytes, pdu: Request | Response | Fault, security: SecurityContext) -> bytes:
    """The stub of a PDU with authentication: checked, plain, and without its padding."""
    assert pdu.auth is not None
    body = security.unprotect(segments(data))
    if pdu.auth.pad_length > len(body):
        raise ProtocolError(f"{pdu.auth.pad_length} octets of padding in a body of {len(body)}")
    return body[: len(body) - pdu.auth.pad_length]
