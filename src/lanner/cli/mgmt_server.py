"""What all commands of ``lanner mgmt HOST`` share: how they reach the server, and as whom."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lanner.cli.command import failing_clearly
from lanner.model.errors import InvalidPropertyError

if TYPE_CHECKING:
    from lanner.protocols.management.client import ManagementClient
    from lanner.protocols.rpc.credentials import Credentials

__all__ = ["PasswordOption", "Server", "read_password", "talks_to_server"]

TIMEOUT = 10.0
"""Seconds for a call: a person is waiting."""

MAPPER_PORT = 135

_Port = Annotated[
    int | None,
    typer.Option("--port", min=1, max=65_535, help="The server's port; else its endpoint mapper is asked."),
]
_MapperPort = Annotated[
    int, typer.Option("--mapper-port", min=1, max=65_535, help="The port of the endpoint mapper.")
]
_User = Annotated[
    str | None, typer.Option("--user", help=r"Log on as this user: ada, DOMAIN\ada or ada@REALM.")
]
PasswordOption = Annotated[
    bool, typer.Option("--password-stdin", help="Read the password from standard input.")
]
_Kerberos = Annotated[
    bool,
    typer.Option("--kerberos", help="Log on with Kerberos; without a password, with the ticket there is."),
]
_Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="NAME",
        help="Kerberos: the server's name in its principal, if it is not HOST; or SERVICE/NAME.",
    ),
]
_Timeout = Annotated[float, typer.Option("--timeout", min=0.1, max=600, help="Seconds that a call may take.")]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")]

_COMMON = {
    "port": (_Port, None),
    "mapper_port": (_MapperPort, MAPPER_PORT),
    "user": (_User, None),
    "password_stdin": (PasswordOption, False),
    "kerberos": (_Kerberos, False),
    "target": (_Target, None),
    "timeout": (_Timeout, TIMEOUT),
    "as_json": (_Json, False),
}


@dataclass(frozen=True)
class Server:
    """A server, who talks to it, and how the answer is printed."""

    host: str
    port: int | None
    mapper_port: int
    user: str | None
    password_stdin: bool
    kerberos: bool
    target: str | None
    timeout: float
    as_json: bool

    def run(self, work: Callable[[ManagementClient], Awaitable[None]]) -> None:
        """Connect, do something there, and hang up."""
        credentials = self._credentials()
        import asyncio

        from lanner.protocols.management.client import ManagementClient
        from lanner.protocols.rpc.errors import RpcConnectionError

        async def connected() -> None:
            try:
                client = await ManagementClient.connect(
                    self.host,
                    port=self.port,
                    credentials=credentials,
                    timeout=self.timeout,
                    mapper_port=self.mapper_port,
                )
            except RpcConnectionError as error:
                error.hint = error.hint or self._advice()
                raise
            async with client:
                await work(client)

        asyncio.run(connected())

    def _advice(self) -> str:
        if self.port is None:
            return "that is its endpoint mapper; if you know the server's port, say --port"
        return "is management enabled there, and the port right?"

    def _credentials(self) -> Credentials | None:
        if self.target is not None and not self.kerberos:
            raise InvalidPropertyError("--target is for Kerberos", hint="say --kerberos too")
        if self.user is None and not self.kerberos:
            if self.password_stdin:
                raise InvalidPropertyError("a password is for somebody", hint="say --user NAME")
            return None
        from lanner.protocols.rpc.credentials import Credentials, Mechanism

        user = self.user or ""
        if self.kerberos:
            password = read_password(user, self.password_stdin) if self.password_stdin else ""
            service, _, target = (self.target or "").rpartition("/")
            return Credentials(user, password, Mechanism.KERBEROS, service or "host", target)
        return Credentials(user, read_password(user, self.password_stdin))


def read_password(user: str, from_stdin: bool) -> str:
    """The password of a user: a line of standard input, or what a person types."""
    if from_stdin:
        text = sys.stdin.readline().rstrip("\r\n")
        if not text:
            raise InvalidPropertyError(
                f"standard input has no password for {user}", hint="write it there as one line"
            )
        return text
    try:
        return str(typer.prompt(f"password of {user}", hide_input=True, err=True))
    except typer.Abort:
        raise InvalidPropertyError(
            f"nobody is there to type the password of {user}", hint="say --password-stdin"
        ) from None


def talks_to_server(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command ``--port``, ``--user`` and what else it takes, and its first argument, the server."""
    signature = inspect.signature(function, eval_str=True)
    own = list(signature.parameters.values())[1:]

    @functools.wraps(function)
    def command(context: typer.Context, **arguments: Any) -> None:
        with failing_clearly():
            host = context.find_object(str)
            if host is None:
                raise InvalidPropertyError("no host is named", hint="lanner mgmt HOST get machine")
            server = Server(host, **{name: arguments.pop(name) for name in _COMMON})
            function(server, **arguments)

    first = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    common = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in _COMMON.items()
    ]
    own = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
    everything = [first, *own, *common]
    command.__signature__ = signature.replace(parameters=everything)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in everything}
    del command.__wrapped__  # or typer would look at its signature
    return command
