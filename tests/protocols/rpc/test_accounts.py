"""Users in a file, and administrators."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from lanner.model.errors import InvalidPropertyError
from lanner.protocols.rpc.accounts import Accounts, UserFile
from lanner.protocols.rpc.ntlm import nt_hash


def test_the_hash_is_that_of_nt() -> None:
    """The well-known vector of MS-NLMP 4.2.2.1.1 and 4.2.1: NTOWFv1 of "Password"."""
    assert nt_hash("Password").hex() == "a4f49c406510bdcab6824ee7c30fd852"


def test_users_are_added_changed_listed_and_removed(tmp_path: Path) -> None:
    users = UserFile(tmp_path / "users")
    assert users.names() == []
    assert users.set("Alice", nt_hash("one"))
    assert users.set("bob", nt_hash("two"))
    assert not users.set("ALICE", nt_hash("three"))
    assert users.names() == ["ALICE", "bob"]
    assert stat.S_IMODE(users.path.stat().st_mode) == 0o600
    accounts = Accounts(users.path)
    assert accounts.nt_hash("alice") == nt_hash("three")
    assert accounts.nt_hash("carol") is None
    assert users.remove("Bob")
    assert not users.remove("bob")
    assert len(accounts) == 2
    accounts.reload()
    assert len(accounts) == 1
    assert "one" not in users.path.read_text()


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_a_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    users = UserFile(tmp_path / "users")
    users.set("alice", nt_hash("x"))
    users.path.chmod(mode)
    with pytest.raises(InvalidPropertyError, match="others than its owner"):
        Accounts(users.path)


@pytest.mark.parametrize("line", ["alice", ":" + "0" * 32, "alice:xyz", "alice:00", "alice:" + "0" * 34])
def test_lines_that_are_none(tmp_path: Path, line: str) -> None:
    path = tmp_path / "users"
    path.touch(mode=0o600)
    path.write_text(f"# users\n\n{line}\n")
    with pytest.raises(InvalidPropertyError, match="line 3"):
        Accounts(path)


@pytest.mark.parametrize("name", ["", "a:b", "a\\b", "a@b", "a\nb", "#a", "x" * 257, "a\0"])
def test_names_that_are_none(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidPropertyError, match="no name"):
        UserFile(tmp_path / "users").set(name, nt_hash("x"))


def test_administrators() -> None:
    accounts = Accounts(administrators=["Alice", "bob@EXAMPLE.ORG"])
    assert accounts.is_administrator("alice")
    assert accounts.is_administrator("BOB", "example.org")
    # A name of the file and one of a realm are two.
    assert not accounts.is_administrator("alice", "EXAMPLE.ORG")
    assert not accounts.is_administrator("bob")
    assert not Accounts().is_administrator("")
