"""Keys: the same send or transaction twice is done once, also after a restart."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from lanner.manager.core import Core
from lanner.model.errors import InvalidPropertyError
from lanner.model.message_id import MessageId
from lanner.store import Changes

__all__ = ["Outcome", "Outcomes", "check_key"]

MAX_KEY_LENGTH = 512
"""Characters: a key is kept and indexed for days."""


class Outcome(msgspec.Struct, frozen=True):
    """What a send or transaction came to: the identifiers of its messages, and their places."""

    message_ids: tuple[MessageId, ...]
    lookup_ids: tuple[int, ...]
    is_replay: bool = False
    """Whether an earlier operation with the same key did it."""


def check_key(key: str) -> None:
    """Refuse a key that cannot be kept."""
    if not key or len(key) > MAX_KEY_LENGTH:
        raise InvalidPropertyError(f"a key has 1 to {MAX_KEY_LENGTH} characters")


class Outcomes:
    """Remembers what was done under which key."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._under_way: dict[str, asyncio.Task[Outcome]] = {}

    async def once(self, key: str, work: Callable[[], Awaitable[Outcome]]) -> Outcome:
        """Do the work unless it was done under this key; then give back what it came to.

        Two at a time with one key: the second waits for the first. If the first fails, the second tries.
        Cancelling the caller does not cancel the work: whoever comes next with the key learns how it ended.
        """
        check_key(key)
        while (earlier := self._under_way.get(key)) is not None:
            await asyncio.wait([earlier])
            if not earlier.cancelled() and earlier.exception() is None:
                return msgspec.structs.replace(earlier.result(), is_replay=True)
        task = self._core.begin(self._look_or_do(key, work))
        self._under_way[key] = task
        task.add_done_callback(lambda _: self._under_way.pop(key))
        return await asyncio.shield(task)

    async def _look_or_do(self, key: str, work: Callable[[], Awaitable[Outcome]]) -> Outcome:
        known = await self._core.store.outcome(key)
        if known is not None:
            return msgspec.structs.replace(_decoder.decode(known), is_replay=True)
        return await work()

    def remember(self, changes: Changes, key: str, outcome: Outcome) -> None:
        """Keep the outcome, in the same transaction as what it is about."""
        changes.outcomes.append((key, _encoder.encode(outcome), self._core.clock.time()))


def _decode(kind: type, value: str) -> object:
    assert kind is MessageId
    return MessageId.parse(value)


_encoder = msgspec.json.Encoder(enc_hook=str)
_decoder = msgspec.json.Decoder(Outcome, dec_hook=_decode)
