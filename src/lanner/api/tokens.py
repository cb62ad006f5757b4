"""Who may use the API: tokens with rights, kept as hashes in a file that only the owner can read."""

from __future__ import annotations

import fnmatch
import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

import msgspec

from lanner.model.errors import AccessDeniedError, InvalidPropertyError
from lanner.store.files import translate_file_error

__all__ = ["Caller", "Right", "Tokens"]

TOKEN_NAME = "token"  # noqa: S105  # the name of a file
TOKENS_NAME = "tokens.json"

MAX_TOKENS = 1000
"""Every request is compared with each of them."""

OWNER = "owner"
"""The token that is made at the first start."""


class Right(StrEnum):
    """What a token allows."""

    ADMIN = "admin"
    SEND = "send"
    RECEIVE = "receive"
    PEEK = "peek"


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """A token as it is kept, and so who makes a request."""

    name: str
    digest: str
    rights: tuple[Right, ...]
    queues: tuple[str, ...] = ("*",)

    def check(self, right: Right, queue: str | None = None) -> None:
        """Refuse what this token does not allow."""
        granted = Right.ADMIN in self.rights or right in self.rights
        if granted and queue is not None and Right.ADMIN not in self.rights:
            granted = any(
                fnmatch.fnmatchcase(queue.casefold(), pattern.casefold()) for pattern in self.queues
            )
        if not granted:
            raise AccessDeniedError(
                f"the token {self.name!r} does not allow to {right.value}{f' on {queue}' if queue else ''}",
                hint="use a token with that right",
            )


class Tokens:
    """The tokens of one data directory."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / TOKENS_NAME
        self._owner_path = directory / TOKEN_NAME
        self._callers: dict[str, Caller] = {}

    @classmethod
    def open(cls, directory: Path) -> Tokens:
        """Read the tokens, and make the owner's at the first start."""
        tokens = cls(directory)
        tokens.reload()
        if OWNER not in tokens._callers:
            token = tokens.create(OWNER, (Right.ADMIN,), ("*",))
            _write_private(tokens._owner_path, token.encode() + b"\n")
        return tokens

    def reload(self) -> None:
        """Read the file again."""
        if not self._path.exists():
            return
        try:
            callers = msgspec.json.decode(self._path.read_bytes(), type=list[Caller])
        except (msgspec.DecodeError, OSError) as error:
            raise InvalidPropertyError(f"{self._path.name} cannot be read: {error}") from error
        self._callers = {caller.name: caller for caller in callers}

    def authenticate(self, token: str) -> Caller | None:
        """Find whose token it is. Takes as long for a wrong one as for a right one."""
        digest = _digest(token)
        found = None
        for caller in self._callers.values():
            if hmac.compare_digest(caller.digest, digest):
                found = caller
        return found

    def create(self, name: str, rights: tuple[Right, ...], queues: tuple[str, ...]) -> str:
        """Make a token. It is given out this once and kept as a hash."""
        if name in self._callers:
            raise InvalidPropertyError(f"there is a token {name!r} already", hint="remove it first")
        if len(self._callers) >= MAX_TOKENS:
            raise InvalidPropertyError(f"there are {MAX_TOKENS} tokens already", hint="remove some")
        token = secrets.token_urlsafe(32)
        caller = Caller(name=name, digest=_digest(token), rights=rights, queues=queues)
        self._replace({**self._callers, name: caller})
        return token

    def remove(self, name: str) -> None:
        """Let a token open nothing any more."""
        if name == OWNER:
            raise InvalidPropertyError(
                "the owner's token cannot be removed", hint="delete its file and restart"
            )
        if name not in self._callers:
            raise InvalidPropertyError(f"there is no token {name!r}")
        self._replace({known: caller for known, caller in self._callers.items() if known != name})

    def list(self) -> list[Caller]:
        """All tokens, by name."""
        return sorted(self._callers.values(), key=lambda caller: caller.name)

    def _replace(self, callers: dict[str, Caller]) -> None:
        # What is not in the file would be true until the next start alone.
        _write_private(self._path, msgspec.json.encode(list(callers.values())))
        self._callers = callers


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _write_private(path: Path, data: bytes) -> None:
    unfinished = path.with_name(path.name + ".unfinished")
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)  # all of it, or an error: a nearly full disk may take a part
            file.flush()
            os.fsync(descriptor)
        unfinished.rename(path)
    except OSError as error:
        with suppress(OSError):
            unfinished.unlink()
        raise translate_file_error(error, f"cannot write {path}") from error
