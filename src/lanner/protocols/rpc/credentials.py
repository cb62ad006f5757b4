"""Who a client logs on as."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

__all__ = ["Credentials", "Mechanism"]


class Mechanism(Enum):
    """How a client proves who it is (MS-RPCE 2.2.1.1.7)."""

    NTLM = "ntlm"
    SPNEGO = "spnego"
    KERBEROS = "kerberos"


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user and what proves it.

    ``user`` may be ``DOMAIN\\user`` or ``user@REALM``. SPNEGO tries Kerberos for ``user@REALM``,
    and where there is no password: then the ticket of the credential cache is taken.
    """

    user: str = ""
    password: str = field(default="", repr=False)
    mechanism: Mechanism = Mechanism.SPNEGO
    service: str = "host"
    """Kerberos: the service part of the server's principal name."""
    target: str = ""
    """Kerberos: the server's name in its principal, if it is not the host that is connected to."""
