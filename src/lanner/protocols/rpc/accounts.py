"""Who may log on: users as NT hashes in a file that only its owner can read, and who of them administers.

The file has a line per user, ``name:hash``; ``#`` begins a comment. Whoever has a hash can log on with it:
the file is as secret as the passwords, and one that others can read is refused.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path

from lanner.model.errors import InvalidPropertyError

__all__ = ["MAX_USERS", "Accounts", "UserFile"]

MAX_USERS = 10_000
"""Users in the file: it holds administrators, not a company."""

MAX_NAME = 256
"""Characters of a user's name; Windows has 20 for a local account, 256 for user@domain."""

HASH_SIZE = 16


class UserFile:
    """The file of users: read whole, written whole."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[str, tuple[str, bytes]]:
        """Name without case -> name and hash. No file means no users."""
        try:
            with self.path.open(encoding="utf-8") as file:
                self._check_owner(file.fileno())
                lines = file.read().splitlines()
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidPropertyError(f"{self.path} cannot be read: {error}") from error
        users = {}
        for number, line in enumerate(lines, 1):
            if line.strip() and not line.startswith("#"):
                name, digest = self._parse(line, number)
                users[name.casefold()] = (name, digest)
        if len(users) > MAX_USERS:
            raise InvalidPropertyError(f"{self.path} has more than {MAX_USERS} users")
        return users

    def set(self, name: str, digest: bytes) -> bool:
        """Add a user, or change the hash of one; says whether it is new."""
        check_name(name)
        if len(digest) != HASH_SIZE:
            raise InvalidPropertyError("an NT hash has 16 octets")
        users = self.read()
        is_new = name.casefold() not in users
        users[name.casefold()] = (name, digest)
        self._write(users)
        return is_new

    def remove(self, name: str) -> bool:
        """Remove a user; says whether there was one."""
        users = self.read()
        found = users.pop(name.casefold(), None) is not None
        if found:
            self._write(users)
        return found

    def names(self) -> list[str]:
        """Everybody's name."""
        return sorted(name for name, _ in self.read().values())

    def _check_owner(self, descriptor: int) -> None:
        status = os.fstat(descriptor)
        if stat.S_IMODE(status.st_mode) & 0o077:
            raise InvalidPropertyError(
                f"{self.path} can be read by others than its owner", hint=f"chmod 600 {self.path}"
            )
        if status.st_uid not in (os.geteuid(), 0):
            raise InvalidPropertyError(f"{self.path} belongs to somebody else")

    def _parse(self, line: str, number: int) -> tuple[str, bytes]:
        name, separator, text = line.rpartition(":")
        try:
            digest = bytes.fromhex(text.strip())
        except ValueError:
            digest = b""
        if not separator or not name or len(digest) != HASH_SIZE:
            raise InvalidPropertyError(f"{self.path}, line {number}: not name:hash")
        return name, digest

    def _write(self, users: dict[str, tuple[str, bytes]]) -> None:
        text = "".join(f"{name}:{digest.hex()}\n" for name, digest in sorted(users.values()))
        descriptor, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:  # mkstemp: 0600 from the beginning
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(self.path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise


def check_name(name: str) -> None:
    """Refuse a name that the file or NTLM cannot carry."""
    if not 0 < len(name) <= MAX_NAME or any(char in ":#\\@\r\n\0" or not char.isprintable() for char in name):
        raise InvalidPropertyError(
            f"{name!r} is no name for a user", hint="letters, digits, blanks, -, _ and . go"
        )


class Accounts:
    """Users and administrators, in memory."""

    def __init__(self, path: Path | None = None, administrators: Iterable[str] = ()) -> None:
        self._file = UserFile(path) if path is not None else None
        self._administrators = frozenset(name.casefold() for name in administrators)
        self._users = self._file.read() if self._file is not None else {}

    def __len__(self) -> int:
        return len(self._users)

    def check(self) -> None:
        """Refuse a file that cannot be used."""
        if self._file is not None:
            self._file.read()

    def reload(self) -> None:
        """Read the file again."""
        if self._file is not None:
            self._users = self._file.read()

    def nt_hash(self, user: str) -> bytes | None:
        """The hash of a user, if there is one."""
        found = self._users.get(user.casefold())
        return found[1] if found is not None else None

    def is_administrator(self, user: str, realm: str = "") -> bool:
        """Whether a user administers: one of the file by name, one of a Kerberos realm as user@REALM."""
        name = f"{user}@{realm}" if realm else user
        return name.casefold() in self._administrators
