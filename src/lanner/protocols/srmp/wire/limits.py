"""Every size that a peer controls, with its reason. What exceeds one is a WireFault."""

from __future__ import annotations

from lanner.model.message import MAX_MESSAGE_SIZE

__all__ = [
    "MAX_ATTRIBUTES",
    "MAX_BOUNDARY_BYTES",
    "MAX_CONTENT_TYPE_BYTES",
    "MAX_DEPTH",
    "MAX_ELEMENTS",
    "MAX_ENVELOPE_BYTES",
    "MAX_PARTS",
    "MAX_PART_HEADER_BYTES",
    "MAX_REQUEST_BYTES",
    "MAX_TEXT_LENGTH",
]

MAX_ENVELOPE_BYTES = 262_144
"""A thousand destinations of 200 bytes fit; parsing this much takes milliseconds, not seconds."""

MAX_DEPTH = 16
"""The protocol nests 6 deep (DigestMethod, 2.2.7.1.2.1); headers of others may nest further."""

MAX_ELEMENTS = 1_024
"""The protocol itself has some 70; a security header of somebody else's, some hundred."""

MAX_ATTRIBUTES = 32
"""Of one element. The protocol's own have at most one, beside the namespaces."""

MAX_TEXT_LENGTH = 131_072
"""Of one element, in characters. Lists of queues are the longest (2.2.6.14)."""

MAX_CONTENT_TYPE_BYTES = 1_024
"""The samples' have 75. It is read with a regular expression, so it stays short."""

MAX_BOUNDARY_BYTES = 70
"""RFC 2046 5.1.1."""

MAX_PARTS = 16
"""Envelope, body and extension are three."""

MAX_PART_HEADER_BYTES = 4_096
"""The samples' have 117."""

MAX_REQUEST_BYTES = MAX_MESSAGE_SIZE + MAX_ENVELOPE_BYTES + MAX_PARTS * MAX_PART_HEADER_BYTES
"""The largest message there is, and what stands around it."""
