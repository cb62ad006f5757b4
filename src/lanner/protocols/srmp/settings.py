"""What can be set about SRMP."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

__all__ = ["SrmpSettings"]

Seconds = Annotated[float, Meta(gt=0, le=86_400 * 30)]


class SrmpSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[srmp]``: messages over HTTP and HTTPS. Times are in seconds."""

    enabled: bool = True
    """Whether SRMP is spoken at all."""
    url: str = ""
    """Where others reach this manager, for receipts; empty makes it from the computer name and the port."""
    certificate: str = ""
    """The certificate chain of the HTTPS listener, as PEM; empty turns HTTPS off. Read again on SIGHUP."""
    key: str = ""
    """The private key of the certificate, as PEM; empty takes it from the certificate's file."""
    ca_file: str = ""
    """Whom to trust when sending over HTTPS, as PEM; empty trusts what the machine trusts."""
    forward: bool = False
    """Whether to pass on messages for other machines (transparent store-and-forward)."""
    retransmission: Seconds = 20.0
    """How long to wait before a destination that failed is tried again."""
    response_timeout: Seconds = 60.0
    """How long a destination may take to answer a message."""
    resend: tuple[Seconds, ...] = (30.0,) * 3 + (300.0,) * 3 + (1_800.0,) * 3 + (21_600.0,)
    """How long to wait for a stream receipt, the first time, the second, and so on; the last one for ever."""
    coalescing: Seconds = 0.5
    """How long a stream receipt waits for one more message to acknowledge."""
    coalescing_limit: Seconds = 10.0
    """How long it waits at most."""
    cleanup: Seconds = 300.0
    """How long a connection without messages is kept."""
    in_flight: Annotated[int, Meta(ge=1, le=64)] = 32
    """Messages sent to a destination before the first is answered; 1 for proxies that cannot pipeline."""
    keep_envelope: bool = False
    """Whether messages keep their SOAP envelope, for applications that ask for it."""
    weak_digests: bool = False
    """Whether signatures over SHA-1 and MD5 digests are believed."""
    signing_key: str = ""
    """The DSA private key that signs messages whose senders ask for it, as PEM."""
    signing_certificate: str = ""
    """The certificate that goes with it, as PEM."""
    trusted_senders: str = ""
    """A PEM file with the certificates of those whose signatures are believed."""
