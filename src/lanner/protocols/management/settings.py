"""What can be set about remote management."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from lanner.protocols.rpc.interface import AuthLevel

__all__ = ["USERS_NAME", "ManagementSettings"]

USERS_NAME = "management.users"
"""The file of users in the data directory, unless another is set."""

Port = Annotated[int, Meta(ge=0, le=65_535)]


class ManagementSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[management]``: remote management by MSMQ's own tools and `lanner mgmt`."""

    enabled: bool = False
    """Whether the manager can be managed from other machines, on `network.rpc_port`."""
    endpoint_mapper: bool = True
    """Whether to tell clients that know no port where management listens."""
    endpoint_mapper_port: Port = 135
    """The port of the endpoint mapper; clients expect 135. If it cannot be had, there is no mapper."""
    users: str = ""
    """The file of users and their NT hashes (`lanner mgmt user`); empty takes `management.users` in the data
    directory. Read again on SIGHUP."""
    administrators: tuple[str, ...] = ()
    """Who may manage: users of that file, and user@REALM for those who log on with Kerberos."""
    anonymous_loopback: bool = False
    """Whether whoever is on this machine may manage without a log-on."""
    kerberos: bool = False
    """Whether Kerberos is offered too; its keytab is the one that the environment names."""
    protection: Literal["connect", "integrity", "privacy"] = "connect"
    """How calls must be protected at least: not at all after the log-on, signed, or sealed."""

    @property
    def minimum_level(self) -> AuthLevel:
        """The protection as the RPC layer counts it."""
        return AuthLevel[self.protection.upper()]
