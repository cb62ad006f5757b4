"""Remote management on the network: qmmgmt behind the RPC listener and the endpoint mapper (MS-MQMR 2.1)."""

from __future__ import annotations

from pathlib import Path

from lanner.manager import QueueManager
from lanner.protocols.management.server import ManagementServer
from lanner.protocols.management.settings import USERS_NAME, ManagementSettings
from lanner.protocols.rpc.endpoint import RpcEndpoint, RpcSettings
from lanner.protocols.rpc.limits import Limits

__all__ = ["ManagementEndpoint"]


class ManagementEndpoint:
    """The management of one queue manager."""

    name = "Management"

    def __init__(
        self,
        manager: QueueManager,
        settings: ManagementSettings,
        listen: str,
        *,
        port: int,
        data: Path,
        limits: Limits | None = None,
    ) -> None:
        """``data`` is where the file of users lies, if the settings name no other."""
        rpc = RpcSettings(
            users_file=Path(settings.users) if settings.users else data / USERS_NAME,
            administrators=settings.administrators,
            anonymous_loopback=settings.anonymous_loopback,
            kerberos=settings.kerberos,
            limits=limits or Limits(),
        )
        self._rpc = RpcEndpoint(
            [ManagementServer(manager).interface(settings.minimum_level)],
            rpc,
            listen,
            server_name=manager.name,
            port=port,
            mapper_port=settings.endpoint_mapper_port if settings.endpoint_mapper else None,
            # Port 135 needs a privilege, and another program may have it: clients can be told the port.
            mapper_required=False,
        )

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._rpc.server.port

    @property
    def mapper_port(self) -> int | None:
        """Where the endpoint mapper listens, if there is one."""
        return self._rpc.mapper.port if self._rpc.mapper is not None else None

    async def start(self) -> str:
        """Begin to listen; says where."""
        return await self._rpc.start()

    async def stop(self) -> None:
        """Take no more calls."""
        await self._rpc.stop()

    def check_reload(self) -> None:
        """Refuse a file of users that cannot be used."""
        self._rpc.check_reload()

    def reload(self) -> list[str]:
        """Read the file of users again; says what changed."""
        return self._rpc.reload()
