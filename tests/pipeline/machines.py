"""Queue managers for the pipeline's tests: each a service on a loop of its own."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from pyspark.sql import DataFrame, SparkSession

from lanner.client import Client, MessageIn
from lanner.config import load_config
from lanner.service import Service, running

__all__ = ["DURABLE", "TRANSACTIONAL", "Machine", "lsns", "read"]

T = TypeVar("T")

DURABLE = r".\private$\orders"
TRANSACTIONAL = r".\private$\ledger"
SECONDS = 60


class Machine:
    """A queue manager with a queue of each kind. It keeps its port when it is restarted."""

    def __init__(self, data: Path, name: str = "LON-1", *, bodies: bool = False, port: int = 0) -> None:
        self.data = data
        self.name = name
        self.port = port
        self._bodies = bodies
        self._client: Client | None = None

    def start(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        started = threading.Event()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._serve(started)))
        self._thread.start()
        assert started.wait(SECONDS)
        if not any(queue.path == DURABLE for queue in self.client.queues()):
            self.client.create_queue(DURABLE)
            self.client.create_queue(TRANSACTIONAL, transactional=True)

    def stop(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(SECONDS)

    async def _serve(self, started: threading.Event) -> None:
        flags = {
            "manager.data": str(self.data),
            "manager.name": self.name,
            "manager.history_bodies": self._bodies,
            "api.port": self.port,
            "network.srmp_port": 0,
        }
        async with running(load_config(environment={}, flags=flags)) as (service, _):
            self.service: Service = service
            self.port = int(service.api.url.rpartition(":")[2])
            started.set()
            await self._stop.wait()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something on the service's own loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(SECONDS)

    @property
    def client(self) -> Client:
        if self._client is None:
            self._client = Client.connect(data=self.data)
        return self._client

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def token(self) -> str:
        return (self.data / "token").read_text().strip()

    @property
    def options(self) -> dict[str, str]:
        """What the data source needs to find it."""
        return {"managers": self.url, "token": self.token, "patience": "2"}

    @property
    def id(self) -> str:
        return str(self.client.status().id)

    def send(self, count: int, *, queue: str = DURABLE, prefix: str = "m", body: bytes = b"") -> None:
        """Send messages with labels that count."""
        messages = [
            MessageIn(body=body or f"{prefix}{number}".encode(), label=f"{prefix}{number}", durable=True)
            for number in range(count)
        ]
        for first in range(0, count, 1000):
            some = messages[first : first + 1000]
            self.client.send_many(queue, some, transactional=queue == TRANSACTIONAL)

    def labels(self, queue: str = DURABLE) -> list[str]:
        return [message.label for message in self.client.browse(queue, bodies=False)]

    def bodies(self, queue: str = DURABLE) -> list[bytes]:
        return [message.body for message in self.client.browse(queue)]

    def trim(self) -> int:
        """Drop all history that there is."""
        self.client.history_status()  # everything is written
        history = self.service.manager.history
        return self.run(history.trim(before=time.time() + 3600, max_bytes=None))


def read(spark: SparkSession, machine: Machine, **options: object) -> DataFrame:
    chosen = machine.options | {name: str(value) for name, value in options.items()}
    return spark.read.format("msmq").options(**chosen).load()


def lsns(frame: DataFrame) -> list[int]:
    return sorted(row.lsn for row in frame.select("lsn").collect())
