"""A running service for the clients."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from lanner.config import load_config
from lanner.service import running

T = TypeVar("T")


class ServiceThread:
    """A service on a loop of its own, so that sync clients can talk to it. It can be restarted."""

    def __init__(self, data: Path, flags: dict[str, object] | None = None) -> None:
        self.data = data
        self.port = 0
        self._flags = flags or {}
        self._loop = asyncio.new_event_loop()

    def start(self) -> None:
        self._stop = asyncio.Event()
        started = threading.Event()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._serve(started)))
        self._thread.start()
        assert started.wait(20)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(20)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something on the service's own loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    async def _serve(self, started: threading.Event) -> None:
        flags = {
            "manager.data": str(self.data),
            "manager.name": "LON-1",
            "api.port": self.port,
            "network.srmp_port": 0,
            **self._flags,
        }
        async with running(load_config(environment={}, flags=flags)) as (service, _):
            self.service = service
            self.port = int(service.api.url.rpartition(":")[2])
            started.set()
            await self._stop.wait()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ServiceThread]:
    thread = ServiceThread(tmp_path / "data")
    thread.start()
    yield thread
    thread.stop()
