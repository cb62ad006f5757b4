"""The composition root: settings in, running queue manager out. The only place that wires rooms together."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Protocol
from uuid import UUID

from lanner.api.context import Api
from lanner.api.server import ApiServer
from lanner.api.tokens import Tokens
from lanner.config import Config, LoadedConfig
from lanner.directory.base import Directory, DirectoryError
from lanner.directory.local import LocalDirectory
from lanner.logs import configure_logs
from lanner.manager import QueueManager, SystemClock
from lanner.manager.events import EnterpriseChanged
from lanner.manager.manager import default_name
from lanner.model.errors import LannerError
from lanner.protocols.discovery.endpoint import DiscoveryEndpoint, Identity
from lanner.protocols.discovery.memory import Memory
from lanner.protocols.srmp.endpoint import SrmpEndpoint
from lanner.store import Changes

__all__ = ["PROTOCOLS", "ADDRESS_NAME", "ProtocolEndpoint", "Service", "run"]

log = logging.getLogger(__name__)

ADDRESS_NAME = "api.address"
"""The file in the data directory that tells commands where the API is."""

STOP_SECONDS = 10.0
"""How long a stop may take."""


class ProtocolEndpoint(Protocol):
    """A protocol between machines, as the service sees it."""

    name: str

    async def start(self) -> str:
        """Begin to listen; says where."""

    async def stop(self) -> None:
        """End."""

    def check_reload(self) -> None:
        """Refuse what could not be read again."""

    def reload(self) -> list[str]:
        """Read again what can change without a restart; says what did."""


def _directory(config: Config) -> Directory | None:
    """The directory that the settings name."""
    if config.ldap.servers:
        from lanner.directory.ldap.directory import LdapDirectory

        return LdapDirectory(config.ldap)
    return LocalDirectory(Path(config.directory.file)) if config.directory.file else None


async def _identifier(directory: Directory | None, name: str | None) -> UUID | None:
    """What the directory calls the manager of this name: a new one takes that for its identifier."""
    if directory is None:
        return None
    try:
        known = (await directory.read()).machine_named(name or default_name())
    except DirectoryError:
        return None  # the manager tells, and works with what it knows
    return known.id if known is not None else None


def _discovery(manager: QueueManager, config: Config) -> DiscoveryEndpoint | None:
    identity = _identity(manager)
    if identity is None or not config.network.discovery:
        return None
    listen = config.network.listen
    endpoint = DiscoveryEndpoint(
        identity,
        interfaces=() if listen in ("0.0.0.0", "::") else (listen,),  # noqa: S104 - compared, not bound
        port=config.network.discovery_port,
        memory=Memory(_DiscoveryState(manager)),
    )

    def adopt(_: EnterpriseChanged) -> None:
        changed = _identity(manager)
        if changed is not None:
            endpoint.adopt(changed)

    manager.events.subscribe(EnterpriseChanged, adopt)
    return endpoint


class _DiscoveryState:
    """Where discovery keeps what it found: a value in the manager's store."""

    SCOPE, KEY = "discovery", "found"

    def __init__(self, manager: QueueManager) -> None:
        self._transfers = manager.transfers

    async def read(self) -> bytes | None:
        """What was kept last."""
        return (await self._transfers.state(self.SCOPE)).get(self.KEY)

    def write(self, data: bytes | None, failed: Callable[[str], None]) -> None:
        """Keep this, with the next commit."""
        changes = Changes()
        if data is None:
            changes.state_deletes.append((self.SCOPE, self.KEY))
        else:
            changes.state.append((self.SCOPE, self.KEY, data))
        changes.on_failed.append(lambda: failed(str(changes.error)))
        self._transfers.submit(changes)


def _identity(manager: QueueManager) -> Identity | None:
    """Who we are in the enterprise, for discovery; nobody, where the directory does not know us."""
    known, own = manager.enterprise.map, manager.enterprise.machine
    if known is None or own is None:
        return None
    servers = tuple(
        machine.name for machine in known.machines if machine.directory_server and machine is not own
    )
    return Identity(
        known.enterprise.id,
        own.name,
        own.sites,
        own.directory_server,
        own.networks or tuple(network.id for network in known.networks),
        servers,
    )


def _management(manager: QueueManager, config: Config) -> ProtocolEndpoint | None:
    if not config.management.enabled:
        return None
    # What it takes to log on is loaded only where somebody may.
    from lanner.protocols.management.endpoint import ManagementEndpoint

    network = config.network
    return ManagementEndpoint(
        manager, config.management, network.listen, port=network.rpc_port, data=config.data
    )


def _srmp(manager: QueueManager, config: Config) -> SrmpEndpoint | None:
    if not config.srmp.enabled:
        return None
    network = config.network
    return SrmpEndpoint(
        manager,
        config.srmp,
        network.listen,
        port=network.srmp_port,
        https_port=network.srmp_https_port,
        names=network.names,
    )


PROTOCOLS: list[Callable[[QueueManager, Config], ProtocolEndpoint | None]] = [_srmp, _discovery, _management]
"""A protocol registers itself here: what makes its endpoint, or nothing where settings turn it off."""


class Service:
    """One queue manager with everything around it."""

    def __init__(self, loaded: LoadedConfig) -> None:
        self._loaded = loaded
        self._stack = contextlib.AsyncExitStack()
        self.manager: QueueManager
        self.api: ApiServer
        self.protocols: list[ProtocolEndpoint] = []
        self._tokens: Tokens

    @property
    def config(self) -> Config:
        """The settings."""
        return self._loaded.config

    async def start(self) -> list[str]:
        """Start everything; says in words what listens where."""
        config = self.config
        data = config.data
        try:
            return await self._start(config, data)
        except BaseException:
            await self._stack.aclose()
            raise

    async def _start(self, config: Config, data: Path) -> list[str]:
        directory = _directory(config)
        name = config.manager.name or None
        self.manager = await QueueManager.open(
            data,
            name=name,
            identifier=await _identifier(directory, name),
            settings=config.manager.settings(),
            enterprise=directory,
            enterprise_interval=(
                config.directory.ldap_interval if config.ldap.servers else config.directory.file_interval
            ),
        )
        self._stack.push_async_callback(self.manager.close)
        self._tokens = Tokens.open(data)
        api = Api(self.manager, self._tokens, SystemClock(), data, config.api.lease)
        self.api = ApiServer(api, config.api.listen, config.api.port)
        # The address is there before the first answer: whoever gets one can find the rest.
        address = data / ADDRESS_NAME
        address.write_text(self.api.url + "\n")
        self._stack.callback(address.unlink, missing_ok=True)
        await self.api.start()
        self._stack.push_async_callback(self.api.stop)
        started = [f"API on {self.api.url}"]
        for make in PROTOCOLS:
            endpoint = make(self.manager, config)
            if endpoint is not None:
                self.protocols.append(endpoint)
                started.append(f"{endpoint.name} on {await endpoint.start()}")
                self._stack.push_async_callback(endpoint.stop)
                if isinstance(endpoint, SrmpEndpoint):
                    api.srmp = endpoint  # now that it knows what was redirected before
                elif isinstance(endpoint, DiscoveryEndpoint):
                    api.discovery = endpoint
        return started

    def reload(self, loaded: LoadedConfig) -> list[str]:
        """Take what can be taken without a restart; says what changed and what needs one."""
        said = []
        # First what can fail: then nothing is to change.
        for endpoint in self.protocols:
            endpoint.check_reload()
        self._tokens.reload()
        if loaded.config.log != self.config.log:
            configure_logs(loaded.config.log)
            said.append("log settings changed")
        said.append("tokens read again")
        for endpoint in self.protocols:
            said.extend(endpoint.reload())
        for section in ("manager", "api", "network", "srmp", "directory", "ldap", "management"):
            if getattr(loaded.config, section) != getattr(self.config, section):
                said.append(f"changes in [{section}] take effect at the next start")
        self._loaded = loaded
        return said

    async def stop(self) -> None:
        """Stop everything, in the opposite order."""
        async with asyncio.timeout(STOP_SECONDS):
            await self._stack.aclose()


@contextlib.asynccontextmanager
async def running(loaded: LoadedConfig) -> AsyncIterator[tuple[Service, list[str]]]:
    """A service for the length of a block."""
    service = Service(loaded)
    started = await service.start()
    try:
        yield service, started
    finally:
        await service.stop()


def run(load: Callable[[], LoadedConfig], announce: Callable[[Service, list[str]], None]) -> None:
    """Run until SIGTERM or SIGINT; SIGHUP reads the settings again."""
    import uvloop

    loaded = load()
    configure_logs(loaded.config.log)
    _tune_collector()

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        async with running(loaded) as (service, started):
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, stop.set)
            loop.add_signal_handler(signal.SIGHUP, lambda: _reload(service, load))
            announce(service, started)
            await stop.wait()
            log.info("stopping")

    uvloop.run(serve())


def _tune_collector() -> None:
    """Let the garbage collector look less often.

    Every message makes dozens of objects that live until its commit, so the collector's default of one look
    per 700 objects finds nothing and took a sixth of the time of each message (bench/RESULTS.md). Nearly
    nothing here is circular; what is, is found later.
    """
    gc.freeze()
    gc.set_threshold(20_000, 50, 20)


def _reload(service: Service, load: Callable[[], LoadedConfig]) -> None:
    try:
        for line in service.reload(load()):
            log.info("reload: %s", line)
    except LannerError as error:
        log.error("reload: %s; the settings are as they were", error)
