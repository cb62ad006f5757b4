"""RPC on the network: a listener with its interfaces, and an endpoint mapper that says where they are."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path

from lanner.model.errors import InvalidPropertyError, ListenError
from lanner.protocols.rpc.accounts import Accounts
from lanner.protocols.rpc.interface import InterfaceId, RpcInterface
from lanner.protocols.rpc.kerberos import has_kerberos, keytab_problem
from lanner.protocols.rpc.limits import Limits
from lanner.protocols.rpc.logons import LogonLimits, Logons
from lanner.protocols.rpc.mapper import NIL, Entry, mapper_interface
from lanner.protocols.rpc.mgmt import mgmt_interface
from lanner.protocols.rpc.security import Acceptor
from lanner.protocols.rpc.server import RpcServer
from lanner.protocols.rpc.towers import Tower

__all__ = ["RpcEndpoint", "RpcSettings"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RpcSettings:
    """What can be set about RPC."""

    users_file: Path | None = None
    """Users and their NT hashes."""
    administrators: tuple[str, ...] = ()
    """Who may call: names of that file, and user@REALM for Kerberos."""
    anonymous_loopback: bool = False
    """Whether whoever is on this machine may call without a log-on."""
    kerberos: bool = False
    """Whether Kerberos is offered; the keytab is the one that the environment names."""
    logons: LogonLimits = field(default_factory=LogonLimits)
    limits: Limits = field(default_factory=Limits)


class RpcEndpoint:
    """Interfaces and the management interface on one port, the endpoint mapper on another."""

    name = "RPC"

    def __init__(
        self,
        interfaces: Iterable[RpcInterface],
        settings: RpcSettings,
        listen: str,
        *,
        server_name: str,
        port: int,
        mapper_port: int | None = None,
        mapper_required: bool = True,
    ) -> None:
        """Without ``mapper_port`` there is no mapper; one that is not required may fail to listen."""
        if settings.kerberos:
            _check_kerberos()
        self._offered = tuple(interfaces)
        self._listen = listen
        self._mapper_required = mapper_required
        self._accounts = Accounts(settings.users_file, settings.administrators)
        self.logons = Logons(self._accounts, time.monotonic, settings.logons)
        acceptor = Acceptor(self.logons, server_name, kerberos=settings.kerberos)
        mgmt = mgmt_interface(self._ids, self._statistics)
        self.server = RpcServer(
            (*self._offered, mgmt),
            acceptor,
            listen,
            port,
            anonymous_loopback=settings.anonymous_loopback,
            limits=settings.limits,
        )
        self.mapper: RpcServer | None = None
        if mapper_port is not None:
            mapper = mapper_interface(self._entries)
            self.mapper = RpcServer((mapper, mgmt), acceptor, listen, mapper_port, limits=settings.limits)

    async def start(self) -> str:
        """Begin to listen; says where."""
        place = await self.server.start()
        if self.mapper is not None:
            try:
                place += f", endpoint mapper on {await self.mapper.start()}"
            except ListenError as error:
                if self._mapper_required:
                    await self.server.stop()
                    raise
                log.warning("RPC: there is no endpoint mapper: %s", error)
                self.mapper = None
        return place

    async def stop(self) -> None:
        """Take no more calls."""
        if self.mapper is not None:
            await self.mapper.stop()
        await self.server.stop()

    def check_reload(self) -> None:
        """Refuse a file of users that cannot be used."""
        self._accounts.check()

    def reload(self) -> list[str]:
        """Read the users again; says what is done. Whoever is logged on stays it."""
        self._accounts.reload()
        return [f"the users of RPC were read again: {len(self._accounts)}"]

    # What mgmt and the mapper tell.

    def _ids(self) -> Sequence[InterfaceId]:
        return [each.id for each in self._offered]

    def _statistics(self) -> Sequence[int]:
        return (self.server.answered, 0, 0, 0)

    def _entries(self) -> Sequence[Entry]:
        address = self._listen if _is_ipv4(self._listen) else "0.0.0.0"  # noqa: S104 - told, not bound
        return [
            Entry(Tower(each.id, self.server.port, address), each.object_uuid or NIL, each.annotation)
            for each in self._offered
        ]


def _check_kerberos() -> None:
    """Refuse to offer what would fail for everybody."""
    if not has_kerberos():
        raise InvalidPropertyError("Kerberos is not installed", hint="pip install 'lanner[kerberos]'")
    problem = keytab_problem()
    if problem:
        raise InvalidPropertyError(
            f"Kerberos has no keytab for this machine: {problem}", hint="KRB5_KTNAME names the file"
        )


def _is_ipv4(text: str) -> bool:
    try:
        IPv4Address(text)
    except ValueError:
        return False
    return True
