"""What all commands that talk to a manager share: how they find it, and how they fail."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lanner.model.errors import LannerError

if TYPE_CHECKING:
    from lanner.client import Client

__all__ = ["Session", "fail", "talks_to_manager"]

EXIT_FAILED = 1
EXIT_INTERRUPTED = 130

PATIENCE = 2.0
"""Seconds that a command waits for a manager that is away: a person is waiting too."""

_DataOption = Annotated[str | None, typer.Option("--data", help="The manager's data directory.")]
_ApiOption = Annotated[str | None, typer.Option("--api", help="The manager's API, with --token.")]
_TokenOption = Annotated[str | None, typer.Option("--token", help="A token for --api.")]
_JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")]

_COMMON = {
    "data": (_DataOption, None),
    "api": (_ApiOption, None),
    "token": (_TokenOption, None),
    "as_json": (_JsonOption, False),
}


@dataclass
class Session:
    """How one command reaches its manager, and how it prints."""

    data: str | None
    api: str | None
    token: str | None
    as_json: bool
    _client: Client | None = field(default=None, init=False)

    @property
    def client(self) -> Client:
        """The manager, connected at first use."""
        if self._client is None:
            from lanner.client import Client

            self._client = Client.connect(data=self.data, api=self.api, token=self.token, patience=PATIENCE)
        return self._client

    def close(self) -> None:
        """Hang up."""
        if self._client is not None:
            self._client.close()


def talks_to_manager(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command ``--data``, ``--api``, ``--token`` and ``--json``, and its first argument, a session."""
    signature = inspect.signature(function, eval_str=True)
    own = list(signature.parameters.values())[1:]

    @functools.wraps(function)
    def command(**arguments: Any) -> None:
        session = Session(**{name: arguments.pop(name) for name in _COMMON})
        with failing_clearly():
            try:
                function(session, **arguments)
            finally:
                session.close()

    common = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in _COMMON.items()
    ]
    own = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
    command.__signature__ = signature.replace(parameters=[*own, *common])  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *common)}
    del command.__wrapped__  # or typer would look at its signature
    return command


class failing_clearly:  # noqa: N801  # used as a statement
    """Turn an error into one line and an exit code."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None or isinstance(error, typer.Exit):
            error = _flushed()
        if isinstance(error, LannerError):
            fail(str(error))
        if isinstance(error, KeyboardInterrupt):
            raise typer.Exit(EXIT_INTERRUPTED)
        if isinstance(error, OSError):
            _give_up_output()
            if isinstance(error, BrokenPipeError):  # whoever read it has had enough, and needs no word
                raise typer.Exit(EXIT_FAILED)
            fail(f"cannot write the output: {error.strerror or error}")


def _flushed() -> OSError | None:
    """Write the rest now: at the interpreter's end it could not be said in one line that it failed."""
    try:
        sys.stdout.flush()
    except OSError as error:
        return error
    return None


def _give_up_output() -> None:
    """Let the interpreter flush the rest into nothing."""
    with contextlib.suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)


def fail(message: str) -> None:
    """Say in one line what is wrong, and exit."""
    typer.echo(f"lanner: {' '.join(message.split())}", err=True)
    raise typer.Exit(EXIT_FAILED)
