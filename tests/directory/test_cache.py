from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.directory.test_export import contents
from tests.directory.test_local_file import CONTOSO

from lanner.directory.base import DirectoryOffline, InvalidDirectoryError
from lanner.directory.cache import KnownDirectory, decode, encode
from lanner.directory.local import LocalDirectory
from lanner.directory.local_file import load

SOURCE = load(CONTOSO.encode()).map


def test_bytes_out_and_in() -> None:
    assert contents(decode(encode(SOURCE))) == contents(SOURCE)


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_damaged_bytes_are_refused(data: st.DataObject) -> None:
    whole = encode(SOURCE)
    where = data.draw(st.integers(0, len(whole) - 1))
    if data.draw(st.booleans()):
        damaged = whole[:where]
    else:
        damaged = whole[:where] + bytes([whole[where] ^ data.draw(st.integers(1, 255))]) + whole[where + 1 :]
    with pytest.raises(InvalidDirectoryError):
        decode(damaged)


class Shelf:
    """Where the bytes go."""

    def __init__(self) -> None:
        self.kept: list[bytes] = []
        self.is_broken = False

    async def save(self, data: bytes) -> None:
        if self.is_broken:
            raise OSError("no room")
        self.kept.append(data)


async def test_the_last_good_directory_is_kept_and_used(tmp_path: Path) -> None:
    path = tmp_path / "enterprise.toml"
    path.write_text(CONTOSO)
    shelf = Shelf()
    known = KnownDirectory(LocalDirectory(path), save=shelf.save)
    assert await known.refresh() is True
    assert await known.refresh() is False
    assert len(shelf.kept) == 1

    path.unlink()
    assert not await known.refresh()
    assert known.offline
    assert isinstance(known.problem, DirectoryOffline)
    assert known.current is not None

    restarted = KnownDirectory(LocalDirectory(path), cached=shelf.kept[0], save=shelf.save)
    assert not await restarted.refresh()
    assert restarted.offline
    assert restarted.current is not None
    assert contents(restarted.current) == contents(SOURCE)

    path.write_text(CONTOSO)
    assert await restarted.refresh()
    assert (restarted.offline, restarted.problem) == (False, None)
    assert len(shelf.kept) == 1  # it is what was kept already


async def test_a_file_that_became_nonsense_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "enterprise.toml"
    path.write_text(CONTOSO)
    known = KnownDirectory(LocalDirectory(path))
    await known.refresh()
    good = known.current
    path.write_text("nonsense")
    assert not await known.refresh()
    assert known.current is good
    assert "nonsense" not in str(known.problem)
    assert str(path) in str(known.problem)


async def test_a_damaged_cache_is_no_obstacle(tmp_path: Path) -> None:
    path = tmp_path / "enterprise.toml"
    path.write_text(CONTOSO)
    known = KnownDirectory(LocalDirectory(path), cached=b"junk")
    assert known.current is None
    assert known.problem is not None
    assert await known.refresh()
    assert known.problem is None


async def test_what_could_not_be_kept_is_kept_the_next_time(tmp_path: Path) -> None:
    path = tmp_path / "enterprise.toml"
    path.write_text(CONTOSO)
    shelf = Shelf()
    shelf.is_broken = True
    known = KnownDirectory(LocalDirectory(path), save=shelf.save)
    with pytest.raises(OSError, match="no room"):
        await known.refresh()
    assert known.current is not None
    shelf.is_broken = False
    await known.refresh()
    assert len(shelf.kept) == 1
