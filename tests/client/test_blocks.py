"""Blocks of the history, however the network cuts them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from lanner.client.asynchronous import _blocks
from lanner.model.errors import LannerError
from lanner.schema.history import BLOCK_LENGTH, MAX_BLOCK


def framed(*blocks: bytes) -> bytes:
    return b"".join(BLOCK_LENGTH.pack(len(block)) + block for block in blocks)


async def read(data: bytes, size: int) -> list[bytes]:
    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(data), size):
            yield data[start : start + size]

    return [block async for block in _blocks(pieces())]


@pytest.mark.parametrize("size", [1, 3, 4, 5, 100])
async def test_pieces_of_any_size(size: int) -> None:
    blocks = [b"one", b"", b"x" * 50, b"four"]
    assert await read(framed(*blocks), size) == blocks
    assert await read(b"", size) == []


@pytest.mark.parametrize("cut", [1, 3, 4, 6])
async def test_what_breaks_off_is_told(cut: int) -> None:
    with pytest.raises(LannerError, match="in the middle of a block"):
        await read(framed(b"one", b"two")[:-cut], 4)


async def test_a_length_that_cannot_be_meant() -> None:
    with pytest.raises(LannerError, match="the limit is"):
        await read(BLOCK_LENGTH.pack(MAX_BLOCK + 1) + b"x", 100)
