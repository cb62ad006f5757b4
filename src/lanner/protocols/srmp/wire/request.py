"""One HTTP request and one SRMP message, both ways (MC-MQSRM 2.1.1, 2.2.2)."""

from __future__ import annotations

from lanner.protocols.srmp.wire.elements import EncodedRequest, SrmpMessage

__all__ = ["decode_request", "encode_request"]


def decode_request(content_type: bytes, body: bytes | memoryview) -> SrmpMessage:
    """Read what a POST carried: ``multipart/related`` with the envelope first, or a bare ``text/xml``.

    Raises WireFault, which names the section that the bytes break.
    """
    raise NotImplementedError


def encode_request(message: SrmpMessage) -> EncodedRequest:
    """Write a message for a POST, its elements in the order of MC-MQSRM 3.1.7.2.4."""
    raise NotImplementedError
