"""What the manager knows of its enterprise: the newest directory, its own place in it, and the ways out.

The directory is read at the start, when it may have changed, and by timers (MS-MQDMPR 3.1.2, MS-MQBR
3.1.2.1). While it is away the last good one counts, which is kept in the store.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING
from uuid import UUID

from lanner.directory.base import CHECK_ONLINE_SECONDS, Directory
from lanner.directory.cache import KnownDirectory
from lanner.manager.clock import Timer
from lanner.manager.core import Core
from lanner.manager.events import EnterpriseChanged
from lanner.manager.queues import Queue
from lanner.model.enterprise import EnterpriseMap, Machine, PublicQueue
from lanner.model.errors import LannerError, UnsupportedOperationError
from lanner.model.format_name import PublicName
from lanner.model.path_name import PathName, parse_path_name
from lanner.store import Changes

if TYPE_CHECKING:
    from lanner.routing.topology import Topology

__all__ = ["EnterpriseView"]

log = logging.getLogger(__name__)

SCOPE = "directory"
SNAPSHOT_KEY = "snapshot"


class EnterpriseView:
    """The enterprise as one manager sees it; without a directory there is none."""

    def __init__(self, core: Core, directory: Directory | None, interval: float) -> None:
        self._core = core
        self._directory = directory
        self._interval = interval
        self._known: KnownDirectory | None = None
        self._topology: Topology | None = None
        self._timer: Timer | None = None
        self.read_at = 0.0
        """When the directory was last read without a problem."""

    async def open(self) -> None:
        """Read the directory, or take the last good one."""
        if self._directory is None:
            return
        stored = await self._core.store.state(SCOPE)
        self._known = KnownDirectory(self._directory, cached=stored.get(SNAPSHOT_KEY), save=self._save)
        if self._known.current is not None:
            self._adopt()
        await self.refresh()
        self._set_timer()

    async def close(self) -> None:
        """Read no more."""
        if self._timer is not None:
            self._timer.cancel()
        if self._directory is not None:
            await self._directory.close()

    async def refresh(self) -> bool:
        """Read the directory again; says whether it is another one than before."""
        if self._known is None:
            return False
        was_offline = self._known.offline
        changed = await self._known.refresh()
        if self._known.offline:
            if not was_offline:
                kept = "the last good one is used" if self._known.current else "nothing is known of it"
                log.warning("the directory is away: %s; %s", self._known.problem, kept)
        else:
            self.read_at = self._core.clock.time()
            if was_offline:
                log.info("the directory is back")
        if changed:
            self._adopt()
        return changed

    async def replace(self, text: str) -> None:
        """Take another enterprise, given as a directory file, instead of this one."""
        if self._directory is None:
            raise UnsupportedOperationError(
                "no directory is configured",
                hint="start the manager with --enterprise FILE, which need not exist",
            )
        await self._directory.replace_all(text)
        await self.refresh()

    # What is known.

    @property
    def is_configured(self) -> bool:
        """Whether there is a directory at all."""
        return self._directory is not None

    @property
    def map(self) -> EnterpriseMap | None:
        """The newest good directory."""
        return self._known.current if self._known is not None else None

    @property
    def is_offline(self) -> bool:
        """QueueManager.DirectoryOffline (MS-MQDMPR 3.1.1.1)."""
        return self._known is not None and self._known.offline

    @property
    def problem(self) -> str:
        """Why the directory could not be read last time, in words."""
        found = self._known.problem if self._known is not None else None
        return str(found) if found is not None else ""

    @property
    def machine(self) -> Machine | None:
        """This manager, as the directory knows it."""
        known = self.map
        if known is None:
            return None
        return known.machine(self._core.machine_id) or known.machine_named(self._core.queues.machine_name)

    @property
    def topology(self) -> Topology | None:
        """The enterprise made ready for routing."""
        known = self.map
        if known is None:
            return None
        if self._topology is None:
            # scipy takes a while to load, and a manager without a directory never needs it.
            from lanner.routing.topology import Topology

            self._topology = Topology(known)
        return self._topology

    def next_hops(self, destination: UUID) -> tuple[str, ...]:
        """Where a message for another machine goes next (GetNextHops, MS-MQBR 3.1.5.1), the best first."""
        topology, here = self.topology, self.machine
        if topology is None or here is None:
            return ()
        from lanner.routing.decision import NoRouteError
        from lanner.routing.next_hops import decide

        try:
            return tuple(hop.name for hop in decide(topology, here.id, destination).hops)
        except NoRouteError as error:
            log.warning("there is no route: %s", error)
            return ()

    def address_of(self, name: str) -> str:
        """Where the directory says that a machine is; nothing where it leaves that to the resolver."""
        found = self.map.machine_named(name) if self.map is not None else None
        return found.address if found is not None else ""

    # Public queues.

    def find_queue(self, name: PublicName) -> PublicQueue | None:
        """The public queue that a format name means."""
        return self.map.queue(name.queue_id) if self.map is not None else None

    def is_here(self, queue: PublicQueue) -> bool:
        """Whether this manager hosts a public queue."""
        own = self.machine
        host = self.map.host_of(queue) if self.map is not None else None
        return own is not None and host is not None and host.id == own.id

    def local_path(self, queue: PublicQueue) -> PathName:
        """The path name that a public queue of this machine has here."""
        return parse_path_name(queue.path).with_computer(".")

    def hops_to(self, queue: PublicQueue) -> tuple[str, ...]:
        """Where a message to a public queue goes next."""
        host = self.map.host_of(queue) if self.map is not None else None
        return self.next_hops(host.id) if host is not None else ()

    async def publish(self, queue: Queue) -> None:
        """Put a public queue of this machine into the directory."""
        own = self.machine
        if self._directory is None or own is None:
            return
        await self._directory.create_queue(
            PublicQueue(
                id=queue.record.identifier,
                path=str(queue.path.with_computer(own.name)),
                manager=own.id,
                properties=queue.properties,
            )
        )
        await self.refresh()

    async def withdraw(self, queue: Queue) -> None:
        """Take a public queue of this machine out of the directory."""
        known = self.map.queue(queue.record.identifier) if self.map is not None else None
        if self._directory is not None and known is not None:
            await self._directory.delete_queue(known.id)
            await self.refresh()

    # The pieces.

    def _adopt(self) -> None:
        assert self.map is not None
        self._topology = None
        own = self.machine
        name = self._core.queues.machine_name
        if own is None:
            log.warning("the directory does not know %s: add it as a [[manager]]", name)
        elif own.id != self._core.machine_id:
            log.warning(
                "the directory knows %s as %s, but it is %s: mend the identifier in the directory",
                name,
                own.id,
                self._core.machine_id,
            )
        log.info(
            "the directory of %s: %d sites, %d queue managers, %d public queues",
            self.map.enterprise.name,
            len(self.map.sites),
            len(self.map.machines),
            len(self.map.queues),
        )
        self._core.events.publish(EnterpriseChanged(self.map))

    async def _save(self, data: bytes) -> None:
        changes = Changes()
        changes.state.append((SCOPE, SNAPSHOT_KEY, data))
        await self._core.store.commit(changes)

    def _set_timer(self) -> None:
        interval = min(self._interval, CHECK_ONLINE_SECONDS) if self.is_offline else self._interval
        deadline = self._core.clock.monotonic() + interval
        self._timer = self._core.clock.call_at(deadline, lambda: self._core.spawn(self._round()))

    async def _round(self) -> None:
        try:
            await self.refresh()
        except LannerError as error:
            log.warning("the directory could not be kept: %s", error)
        if self._core.is_running:
            self._set_timer()
