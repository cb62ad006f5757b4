"""Asking managers from Spark's Python workers, which have no event loop of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from lanner.client import AsyncClient
from lanner.model.errors import ConnectionFailedError
from lanner.pipeline.errors import InvalidOptionError, ManagerAwayError, tell_loss
from lanner.pipeline.offsets import Seen
from lanner.pipeline.options import ManagerAddress

__all__ = ["Fleet", "Run", "ask", "connected", "look_at"]

T = TypeVar("T")

MAX_AT_ONCE = 32
"""Managers that are asked at the same time."""


class Run:
    """A client, and a loop to run its coroutines on."""

    def __init__(self, client: AsyncClient, loop: asyncio.AbstractEventLoop) -> None:
        self.client = client
        self._loop = loop

    def __call__(self, work: Coroutine[Any, Any, T]) -> T:
        """Run one coroutine to its end."""
        return self._loop.run_until_complete(work)


@contextmanager
def connected(manager: ManagerAddress, patience: float) -> Iterator[Run]:
    """A client of one manager, for sync code."""
    # No asyncio.Runner: each of its runs puts the signal handler back, for which signal.getsignal makes the
    # text of the finished task with its result. For an answer of 32 MB this takes longer than to read it.
    loop = asyncio.new_event_loop()
    client = AsyncClient(manager.address, patience=patience)
    try:
        yield Run(client, loop)
    finally:
        loop.run_until_complete(client.close())
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


class Fleet(NamedTuple):
    """The managers that answered, in the order of the option, and where each is."""

    seen: tuple[Seen, ...]
    addresses: dict[str, ManagerAddress]
    is_whole: bool
    """Whether all of them answered."""


def look_at(
    managers: Sequence[ManagerAddress], patience: float, *, fail: bool, history: bool = True
) -> Fleet:
    """Ask every manager who it is and how far its history goes; tell which do not answer.

    Without ``history`` the right to peek is enough.
    """

    async def look(client: AsyncClient) -> Seen:
        status = await client.status()
        if not history:
            return Seen(status.name, str(status.id), 1, 1)
        kept = await client.history_status()
        return Seen(status.name, str(status.id), kept.first_lsn, kept.last_lsn + 1)

    answers = ask(managers, patience, look)
    for manager, answer in zip(managers, answers, strict=True):
        if answer is None:
            _tell_away(manager, patience, fail)
    found = [(seen, manager) for seen, manager in zip(answers, managers, strict=True) if seen is not None]
    addresses = {seen.name: manager for seen, manager in found}
    if len(addresses) != len(found):
        raise InvalidOptionError(
            f"two of the managers have the same name: {', '.join(sorted(seen.name for seen, _ in found))}",
            hint="name every manager once; rename one of two with the same name",
        )
    return Fleet(tuple([seen for seen, _ in found]), addresses, len(found) == len(managers))


def ask(
    managers: Sequence[ManagerAddress],
    patience: float,
    question: Callable[[AsyncClient], Coroutine[Any, Any, T]],
) -> list[T | None]:
    """Ask all of them at once; whoever is away gives None."""

    async def ask_one(manager: ManagerAddress, turn: asyncio.Semaphore) -> T | None:
        async with turn, AsyncClient(manager.address, patience=patience) as client:
            try:
                return await question(client)
            except ConnectionFailedError:
                return None

    async def ask_all() -> list[T | None]:
        turn = asyncio.Semaphore(MAX_AT_ONCE)
        return list(await asyncio.gather(*[ask_one(manager, turn) for manager in managers]))

    return asyncio.run(ask_all())


def _tell_away(manager: ManagerAddress, patience: float, fail: bool) -> None:
    what = f"the manager at {manager.url} did not answer for {patience:g} seconds"
    if fail:
        raise ManagerAwayError(
            what, hint="start it and restart the query; failOnDataLoss=false goes on without it"
        )
    # Nothing is lost yet: it stays where it is and is asked again.
    tell_loss(f"{what}; its rows are not in this batch", fail=False)
