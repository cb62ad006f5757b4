"""``lanner mgmt HOST watch``: the queues of a machine in a table that keeps itself up to date."""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lanner.cli.output import print_json, printable, shown_time
from lanner.model.codes import StatusCode
from lanner.model.errors import InvalidNameError

if TYPE_CHECKING:
    from rich.table import Table

    from lanner.protocols.management.client import ManagementClient

__all__ = ["Look", "look", "watch_queues"]

MACHINE = ("connected", "bytes-in-all-queues", "active-queues", "private-queues")
QUEUE = ("location", "message-count", "bytes", "journal-message-count", "state", "unacknowledged-count")

MAX_ASKED = 5_000
"""Queues that are asked for in one look; the active ones come first."""


@dataclass(frozen=True)
class Look:
    """A machine at one moment."""

    time: float
    connected: str
    bytes: int
    queues: list[dict[str, Any]]
    left_out: int
    """Queues that are not shown."""


async def look(client: ManagementClient, limit: int) -> Look:
    """Look at the machine and at its queues, the fullest first."""
    machine = await client.get_machine(*MACHINE)
    names = list(machine["active-queues"] or ())
    known = {name.casefold() for name in names}
    for path in machine["private-queues"] or ():
        direct = f"DIRECT=OS:{path}"
        if direct.casefold() not in known:
            names.append(direct)
    answers = await asyncio.gather(*(_ask(client, name) for name in names[:MAX_ASKED]))
    found = [each for each in answers if each is not None]
    found.sort(key=lambda each: (-(each["message-count"] or 0), each["name"].casefold()))
    return Look(
        time.time(),
        machine["connected"] or "",
        machine["bytes-in-all-queues"] or 0,
        found[:limit],
        len(names) - len(found[:limit]),
    )


async def _ask(client: ManagementClient, name: str) -> dict[str, Any] | None:
    from lanner.protocols.management.client import ManagementError

    try:
        return {"name": name, **await client.get_queue(name, *QUEUE)}
    except ManagementError as error:
        if error.status != StatusCode.MQ_ERROR_QUEUE_NOT_FOUND:
            raise
    except InvalidNameError:
        pass  # a name that this client has no form for
    return None  # it went away between the two questions


async def watch_queues(
    client: ManagementClient, host: str, *, interval: float, rounds: int, limit: int, as_json: bool
) -> None:
    """Look again and again; with ``as_json`` each look is a line, without a terminal each is a table."""
    if as_json or not sys.stdout.isatty():
        await _print(client, host, interval, rounds, limit, as_json)
        return
    from rich.live import Live

    found = await look(client, limit)
    with Live(_table(host, found), auto_refresh=False, screen=False) as live:
        number = 1
        while not rounds or number < rounds:
            await asyncio.sleep(interval)
            live.update(_table(host, await look(client, limit)), refresh=True)
            number += 1


async def _print(
    client: ManagementClient, host: str, interval: float, rounds: int, limit: int, as_json: bool
) -> None:
    from rich.console import Console

    console = Console(width=200, highlight=False, markup=False)
    number = 0
    while not rounds or number < rounds:
        if number:
            await asyncio.sleep(interval)
        found = await look(client, limit)
        if as_json:
            print_json(found)
        else:
            console.print(_table(host, found))
        number += 1


def _table(host: str, found: Look) -> Table:
    from rich import box
    from rich.table import Table

    rest = f", {found.left_out:,} more queues" if found.left_out else ""
    title = f"{host}: {found.connected.lower()}, {found.bytes:,} bytes, {shown_time(found.time)}{rest}"
    table = Table(box=box.SIMPLE_HEAD, title=printable(title), title_justify="left", pad_edge=False)
    table.add_column("queue", overflow="fold")
    for column in ("messages", "bytes", "journal", "unacknowledged"):
        table.add_column(column, justify="right")
    table.add_column("state")
    for each in found.queues:
        numbers = (
            each["message-count"],
            each["bytes"],
            each["journal-message-count"],
            each["unacknowledged-count"],
        )
        state = each["state"] if each["location"] == "REMOTE" else "local"
        cells = ["" if number is None else f"{number:,}" for number in numbers]
        table.add_row(printable(each["name"]), *cells, printable((state or "").lower()))
    return table
