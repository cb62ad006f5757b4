"""Discovery on the network: a directory server answers requests, every other manager asks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from uuid import UUID

from lanner.model.errors import ListenError
from lanner.protocols.discovery.asker import Asker
from lanner.protocols.discovery.client import (
    Action,
    ClientSession,
    Completed,
    PopulateConnectedNetworkIdentifierList,
    PopulateDirectoryServerList,
)
from lanner.protocols.discovery.identity import Identity
from lanner.protocols.discovery.incidents import Incidents
from lanner.protocols.discovery.interfaces import networks_at
from lanner.protocols.discovery.listener import EVERYWHERE, Listener
from lanner.protocols.discovery.memory import FoundLists, Memory
from lanner.protocols.discovery.rate_limit import RateLimit, RateLimits
from lanner.protocols.discovery.server import ServerSession

__all__ = ["DISCOVERY_PORT", "DiscoveryEndpoint", "Identity"]

log = logging.getLogger(__name__)

DISCOVERY_PORT = 1801
"""UDP, registered for MSMQ (1.9)."""

ASK_AGAIN_SECONDS = 60.0
"""When nobody answered: a server that comes up later is found within this time and 15 seconds a network."""

CHECK_SECONDS = 900.0
"""How often it is looked whether the network that answered is still ours; if so, nothing is sent."""

LISTEN_AGAIN_SECONDS = 15.0
"""When a server had to terminate, another one is started after this time."""

NO_SITE = UUID(int=0)
"""What a manager that is in no site yet asks with (1.3: the current site, *if any*)."""


class DiscoveryEndpoint:
    """Both sides of MS-MQSD for one queue manager, which is either a directory server or a client (1.3)."""

    name = "discovery"

    def __init__(
        self,
        identity: Identity,
        *,
        interfaces: tuple[str, ...] = (),
        port: int = DISCOVERY_PORT,
        limits: RateLimits | None = None,
        memory: Memory | None = None,
        on_change: Callable[[], None] | None = None,
    ) -> None:
        if identity.is_directory_server:
            identity.offer()
        self.rejections = Incidents(log, logging.INFO, "a packet was discarded")
        self._outages = Incidents(log, logging.WARNING, "requests are not answered")
        self._silences = Incidents(log, logging.WARNING, "no directory server was found")
        self._identity = identity
        self._interfaces = tuple(interfaces)
        self._port = port
        self._rate_limit = RateLimit(limits)
        self._memory = memory
        self._on_change = on_change
        self._listener: Listener | None = None
        self._asker: Asker | None = None
        self._again: asyncio.TimerHandle | None = None
        self._waiters: list[asyncio.Future[bool]] = []
        self._is_running = False
        self._directory_server_list: tuple[str, ...] = ()
        self._connected_network_identifier_list: tuple[UUID, ...] = ()
        self._begin_with(identity)
        self._told = self._lists

    # The service's side.

    async def start(self) -> str:
        """Begin to answer or to ask; says where. Who asks does not wait for the answer.

        Until it comes, and if it never does, the lists are those that were found before.
        """
        await self._recall()
        self._is_running = True
        self._begin()
        return self._place()

    async def stop(self) -> None:
        """Neither answer nor ask."""
        self._is_running = False
        self._end()

    def check_reload(self) -> None:
        """Looking at the interfaces again cannot fail."""

    def reload(self) -> list[str]:
        """Look at the interfaces again, and ask or listen anew; says what is done."""
        if not self._is_running:
            return []
        self._begin_again()
        return [f"discovery looks at the network again: {self._place()}"]

    def adopt(self, identity: Identity) -> None:
        """Take what the directory says now. What cannot be offered is refused, and nothing changes then."""
        if identity == self._identity:
            return
        if identity.is_directory_server:
            identity.offer()
        before, self._identity = self._identity, identity
        if not identity.is_directory_server and identity.asks_like(before):
            return
        self._begin_with(identity)
        if self._listener is not None and identity.is_directory_server:
            self._listener.session.change(identity.offer())
            self._warn_of_left_out()
        elif self._is_running:
            self._begin_again()
        self._tell_if_changed()

    async def get_directory_server_list(self) -> bool:
        """3.1.4.1: wait until the list is there; says false where nobody answered. A server has its own."""
        if self._identity.is_directory_server:
            return True
        if not self._is_running:
            return False
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self._ask()
        return await waiter

    # What was found.

    @property
    def directory_server_list(self) -> tuple[str, ...]:
        """QueueManager.DirectoryServerList: names of directory servers, the first to be tried first."""
        return self._directory_server_list

    @property
    def connected_network_identifier_list(self) -> tuple[UUID, ...]:
        """QueueManager.ConnectedNetworkIdentifierList."""
        return self._connected_network_identifier_list

    @property
    def port(self) -> int:
        """The port that is listened on, or asked."""
        return self._port

    @property
    def answered(self) -> int:
        """Requests that this listener has answered."""
        return self._listener.answered if self._listener is not None else 0

    @property
    def is_listening(self) -> bool:
        """Whether requests are answered."""
        return self._listener is not None

    # Both.

    def _begin_with(self, identity: Identity) -> None:
        is_server = identity.is_directory_server
        self._directory_server_list = (
            identity.offer().directory_servers if is_server else identity.directory_servers
        )
        self._connected_network_identifier_list = identity.connected_networks

    async def _recall(self) -> None:
        """QueueManager's lists survive a restart (MS-MQDMPR 3.1.1)."""
        if self._memory is None:
            return
        found = await self._memory.recall()
        is_client = not self._identity.is_directory_server
        if found is not None and is_client and found.belongs_to(self._identity):
            self._directory_server_list = found.directory_servers
            self._connected_network_identifier_list = found.connected_networks
        self._tell_if_changed()

    def _begin(self) -> None:
        if self._identity.is_directory_server:
            self._listen()
        else:
            self._ask()

    def _begin_again(self) -> None:
        """As `_begin`, but what fails is tried again: nobody waits for it as they do at the start."""
        self._end()
        if self._identity.is_directory_server:
            self._listen_again()
        else:
            self._ask()

    def _end(self) -> None:
        if self._again is not None:
            self._again.cancel()
            self._again = None
        if self._listener is not None:
            self._listener.stop()
            self._listener = None
        if self._asker is not None:
            self._asker.stop()
            self._asker = None
        self._answer_waiters(False)

    def _place(self) -> str:
        if self._identity.is_directory_server:
            return f"UDP {' and '.join(self._interfaces) or EVERYWHERE}:{self.port}, as a directory server"
        return f"{' and '.join(self._interfaces) or 'every network'}, as a client of UDP port {self.port}"

    def _later(self, seconds: float, what: Callable[[], None]) -> None:
        if self._again is not None:
            self._again.cancel()
        self._again = asyncio.get_running_loop().call_later(seconds, what)

    @property
    def _lists(self) -> tuple[tuple[str, ...], tuple[UUID, ...]]:
        return self._directory_server_list, self._connected_network_identifier_list

    def _tell_if_changed(self) -> None:
        if self._memory is not None:
            is_client = not self._identity.is_directory_server
            self._memory.keep(FoundLists.of(self._identity, *self._lists) if is_client else None)
        if self._lists != self._told:
            self._told = self._lists
            if self._on_change is not None:
                self._on_change()

    # The server.

    def _listen(self) -> None:
        session = ServerSession(self._identity.offer(), self._rate_limit)
        listener = Listener(session, self._interfaces, self._port, self.rejections, self._terminated)
        listener.start()
        self._listener = listener
        self._port = listener.port  # any free port, once found, is kept
        self._warn_of_left_out()

    def _warn_of_left_out(self) -> None:
        assert self._listener is not None
        session = self._listener.session
        left_out = len(session.offer.directory_servers) - len(session.offered_servers)
        if left_out:
            log.warning("discovery: a reply has no room for the last %d directory servers", left_out)

    def _terminated(self) -> None:
        self._listener = None
        self._later(LISTEN_AGAIN_SECONDS, self._listen_again)

    def _listen_again(self) -> None:
        try:
            self._listen()
        except ListenError as error:
            self._outages.note(error, "trying again", asyncio.get_running_loop().time())
            self._terminated()
        else:
            log.info("discovery: requests are answered, on %s", self._place())

    # The client.

    def _ask(self) -> None:
        if self._asker is None:
            site_id = self._identity.site_ids[0] if self._identity.site_ids else NO_SITE
            session = ClientSession(self._identity.enterprise_id, site_id)
            self._asker = Asker(session, self._port, self.rejections, self._take)
        try:
            networks = networks_at(self._interfaces)
        except OSError as error:
            log.warning("discovery: %s", error)
            networks = ()
        self._asker.ask(networks)

    def _answer_waiters(self, succeeded: bool) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():  # whoever waited may have given up
                waiter.set_result(succeeded)

    def _take(self, action: Action) -> None:
        if isinstance(action, PopulateDirectoryServerList):
            self._directory_server_list = action.names
        elif isinstance(action, PopulateConnectedNetworkIdentifierList):
            self._connected_network_identifier_list = action.identifiers
        elif isinstance(action, Completed):
            self._answer_waiters(action.succeeded)
            self._later(CHECK_SECONDS if action.succeeded else ASK_AGAIN_SECONDS, self._ask)
            if action.succeeded:
                log.debug("discovery: %s", action.reason)
            else:
                # What the event log is for (3.1.6.1, note 19).
                self._silences.note(action.reason, "asking again", asyncio.get_running_loop().time())
            self._tell_if_changed()
