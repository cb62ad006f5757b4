"""``lanner mgmt user``: who can log on to manage a manager of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lanner.cli.command import failing_clearly
from lanner.cli.mgmt_server import PasswordOption, read_password
from lanner.cli.output import print_json
from lanner.model.errors import InvalidPropertyError

if TYPE_CHECKING:
    from lanner.protocols.rpc.accounts import UserFile

__all__ = ["app"]

app = typer.Typer(help="Who can log on to manage a manager of this machine.", no_args_is_help=True)

_Data = Annotated[str | None, typer.Option("--data", help="The manager's data directory.")]
_File = Annotated[
    str | None, typer.Option("--file", help="The file of users, if management.users names one.")
]
_Name = Annotated[str, typer.Argument(help="The user.")]

TELL_IT = "a running manager takes that when it is sent SIGHUP"


def _users(data: str | None, file: str | None) -> UserFile:
    from lanner.config import load_config
    from lanner.protocols.management.settings import USERS_NAME
    from lanner.protocols.rpc.accounts import UserFile

    if file is None and data is None:
        config = load_config().config
        file = config.management.users or None
        data = str(config.data)
    if file is not None:
        return UserFile(Path(file))
    directory = Path(data or "")
    if not directory.is_dir():
        raise InvalidPropertyError(
            f"there is no directory {directory}", hint="start the manager once, or say --data or --file"
        )
    return UserFile(directory / USERS_NAME)


@app.command()
def add(name: _Name, password_stdin: PasswordOption = False, data: _Data = None, file: _File = None) -> None:
    """Let a user log on, or give one another password. The NT hash is kept, for the owner alone to read."""
    with failing_clearly():
        users = _users(data, file)
        password = read_password(name, password_stdin)
        from lanner.protocols.rpc.ntlm import nt_hash

        if users.set(name, nt_hash(password)):
            typer.echo(f"{name} was added to {users.path}")
            typer.echo(
                f"to manage, {name} must be one of management.administrators in lanner.toml; {TELL_IT}"
            )
        else:
            typer.echo(f"{name} has another password in {users.path}; {TELL_IT}")


@app.command("list")
def list_users(
    data: _Data = None,
    file: _File = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")] = False,
) -> None:
    """List the users that can log on."""
    with failing_clearly():
        names = _users(data, file).names()
        for name in names:
            if as_json:
                print_json({"name": name})
            else:
                typer.echo(name)
        if not names and not as_json:
            typer.echo("no users")


@app.command()
def remove(name: _Name, data: _Data = None, file: _File = None) -> None:
    """Let a user log on no more."""
    with failing_clearly():
        users = _users(data, file)
        if not users.remove(name):
            raise InvalidPropertyError(f"there is no user {name}", hint="list them: lanner mgmt user list")
        typer.echo(f"{name} was removed from {users.path}; {TELL_IT}")
