"""Queue managers of one process that know each other by name and speak SRMP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

from tests.scenarios.srmp_process import free_port

from lanner.config import load_config
from lanner.manager import QueueManager
from lanner.model.errors import QueueNotFoundError
from lanner.model.message import Message
from lanner.model.queue import QueueAccess, QueueProperties
from lanner.protocols.srmp.endpoint import SrmpEndpoint
from lanner.service import running

PATIENCE = 8.0

NAMES = dict.fromkeys(("alpha", "beta", "gamma", "elsewhere"), "127.0.0.1")

TIMERS = {
    "srmp.retransmission": 0.1,
    "srmp.response_timeout": 5.0,
    "srmp.resend": (0.5, 1.0),
    "srmp.coalescing": 0.05,
    "srmp.coalescing_limit": 0.2,
}


class Machine:
    """One queue manager, which can be restarted."""

    def __init__(self, directory: Path, name: str, **settings: object) -> None:
        self.name = name
        self.port = free_port()
        self._flags = {
            "manager.data": str(directory / name),
            "manager.name": name,
            "api.port": 0,
            "network.srmp_port": self.port,
            "network.names": NAMES,
            **TIMERS,
            **{key.replace("_", ".", 1): value for key, value in settings.items()},
        }
        self._stack = AsyncExitStack()
        self.manager: QueueManager
        self.srmp: SrmpEndpoint

    async def start(self) -> None:
        loaded = load_config(environment={}, flags=self._flags)
        service, _ = await self._stack.enter_async_context(running(loaded))
        self.manager = service.manager
        [endpoint] = service.protocols
        assert isinstance(endpoint, SrmpEndpoint)
        self.srmp = endpoint

    async def stop(self) -> None:
        await self._stack.aclose()

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    @property
    def root(self) -> str:
        return f"http://{self.name}:{self.port}"

    def url(self, queue: str) -> str:
        return f"{self.root}/msmq/private$/{queue}"

    def address(self, queue: str) -> str:
        """The name of one of its queues for the others."""
        return f"DIRECT={self.url(queue)}"

    async def create(self, queue: str, *, transactional: bool = False) -> str:
        path = rf".\private$\{queue}"
        await self.manager.create_queue(path, QueueProperties(transactional=transactional))
        return path

    async def send_stream(self, address: str, *messages: Message) -> None:
        """Send messages in one transaction."""
        async with self.manager.transaction() as transaction:
            await self.manager.send_many(address, messages, transaction=transaction)

    async def receive(self, queue: str) -> Message:
        return await self.manager.receive(queue, timeout=PATIENCE)

    async def labels(self, queue: str) -> list[str]:
        handle = self.manager.open_queue(queue, QueueAccess.PEEK)
        try:
            return [
                message.label for message in await self.manager.browse_messages(handle, 10_000, bodies=False)
            ]
        finally:
            self.manager.close_queue(handle)

    def count(self, queue: str) -> int:
        try:
            return self.manager.queue(queue).messages
        except QueueNotFoundError:
            return 0

    async def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            outgoing = [(each.path, each.messages) for each in self.manager.outgoing_queues()]
            assert time.monotonic() < deadline, outgoing
            await asyncio.sleep(0.01)

    async def until_count(self, queue: str, count: int) -> None:
        await self.until(lambda: self.count(queue) == count)
