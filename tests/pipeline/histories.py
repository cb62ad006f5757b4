"""Histories written by hand: what each manager would have recorded."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from pyspark.sql import DataFrame, SparkSession

from lanner.pipeline.schema import spark_schema

START = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)
STREAM = 7_700_000_000_000_000_001


def identifier(manager: str) -> str:
    return str(UUID(int=int.from_bytes(manager.encode(), "big")))


class Fleet:
    """Managers that write down what happens to messages, each with its own LSNs and clock."""

    def __init__(self, start: datetime = START) -> None:
        self.now = start
        self.rows: list[dict[str, Any]] = []
        self.lsn: dict[str, int] = {}
        self.skew: dict[str, float] = {}
        self.numbers: dict[str, int] = {}
        self.sequences: dict[tuple[str, str], int] = {}

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def note(self, manager: str, event: str, queue: str, message: str, **more: Any) -> dict[str, Any]:
        self.lsn[manager] = self.lsn.get(manager, 0) + 1
        row = {
            "manager": manager,
            "manager_id": identifier(manager),
            "lsn": self.lsn[manager],
            "time": self.now + timedelta(seconds=self.skew.get(manager, 0.0)),
            "event": event,
            "queue": queue,
            "message_id": message,
            "lookup_id": self.lsn[manager],
            "message_class": 0,
            "priority": 3,
            "size": 100,
            **more,
        }
        self.rows.append(row)
        return row

    def new_message(self, manager: str) -> str:
        self.numbers[manager] = self.numbers.get(manager, 0) + 1
        return f"{identifier(manager)}\\{self.numbers[manager]}"

    def stream_place(self, sender: str, queue: str) -> dict[str, Any]:
        self.sequences[sender, queue] = number = self.sequences.get((sender, queue), 0) + 1
        stream = STREAM + list(self.sequences).index((sender, queue))
        return {"stream": stream, "sequence": number, "previous": number - 1, "transaction_id": f"t{number}"}

    def send(self, sender: str, receiver: str, queue: str = "orders", **more: Any) -> dict[str, Any]:
        """A message of a stream goes into the outgoing queue; what identifies it comes back."""
        url = f"DIRECT=HTTP://{receiver}/msmq/private$/{queue}"
        about = {"destination": url, **self.stream_place(sender, url), **more}
        message = self.new_message(sender)
        self.note(sender, "sent", url, message, **about)
        return {
            "message": message,
            "sender": sender,
            "receiver": receiver,
            "queue": queue,
            "url": url,
            **about,
        }

    def _about(self, sent: dict[str, Any], **more: Any) -> dict[str, Any]:
        names = ("destination", "stream", "sequence", "previous", "transaction_id")
        return {name: sent.get(name) for name in names} | more

    def arrive(self, sent: dict[str, Any], **more: Any) -> None:
        self.wait(0.5)
        self.note(
            sent["receiver"],
            "arrived",
            f".\\private$\\{sent['queue']}",
            sent["message"],
            **self._about(sent, peer="127.0.0.1", **more),
        )

    def forward(self, sent: dict[str, Any], through: str) -> None:
        self.wait(0.25)
        self.note(through, "arrived", sent["url"], sent["message"], **self._about(sent, peer="127.0.0.1"))
        self.wait(0.25)
        about = self._about(sent, peer=f"http://{sent['receiver']}", message_class=2)
        self.note(through, "transmitted", sent["url"], sent["message"], **about)

    def acknowledge(self, sent: dict[str, Any]) -> None:
        self.wait(0.1)
        about = self._about(sent, peer=f"http://{sent['receiver']}", message_class=255)
        self.note(sent["sender"], "acknowledged", sent["url"], sent["message"], **about)

    def receive(self, sent: dict[str, Any]) -> None:
        self.wait(1)
        queue = f".\\private$\\{sent['queue']}"
        self.note(sent["receiver"], "received", queue, sent["message"], **self._about(sent))

    def deliver(self, sender: str, receiver: str, count: int = 1) -> list[dict[str, Any]]:
        """Everything goes well."""
        done = []
        for _ in range(count):
            sent = self.send(sender, receiver)
            self.arrive(sent)
            self.acknowledge(sent)
            self.receive(sent)
            done.append(sent)
        return done

    def frame(self, spark: SparkSession, rows: Iterable[dict[str, Any]] | None = None) -> DataFrame:
        schema = spark_schema("history")
        chosen = self.rows if rows is None else list(rows)
        return spark.createDataFrame(
            [tuple(row.get(field.name) for field in schema.fields) for row in chosen], schema
        )
