"""The manager itself: status, backup, compaction, offline and online, tokens."""

from __future__ import annotations

from lanner import __version__
from lanner.api.context import Api, Stream
from lanner.api.metrics import render
from lanner.api.tokens import Caller, Right
from lanner.model.errors import InvalidPropertyError
from lanner.schema.base import DoneAnswer, In
from lanner.schema.manager import (
    BackupAnswer,
    BackupRequest,
    CompactAnswer,
    FlowControlRequest,
    StatusAnswer,
    TokenAnswer,
    TokenNameRequest,
    TokenOut,
    TokenRequest,
    TokensAnswer,
)
from lanner.store.files import translate_file_error

__all__ = [
    "backup",
    "bring_online",
    "compact",
    "create_token",
    "flow_control",
    "list_tokens",
    "metrics",
    "remove_token",
    "status",
    "take_offline",
]

BACKUPS = "backups"


async def status(api: Api, caller: Caller, request: In) -> StatusAnswer:
    """Tell how the manager is."""
    manager = api.manager
    infos = [*manager.queues(), *manager.outgoing_queues()]
    return StatusAnswer(
        name=manager.name,
        id=manager.identifier,
        version=__version__,
        online=manager.is_online,
        messages=sum(info.messages + info.journal_messages for info in infos),
        bytes=manager.total_bytes,
        quota=manager.settings.quota,
        queues=len(infos),
        last_lsn=manager.history.last_lsn,
    )


async def backup(api: Api, caller: Caller, request: BackupRequest) -> BackupAnswer:
    """Write a consistent copy of the store into the data directory's ``backups``."""
    directory = api.data / BACKUPS
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise translate_file_error(error, f"cannot make the directory {directory}") from error
    if (directory / request.name).exists():
        raise InvalidPropertyError(f"there is a backup {request.name} already", hint="choose another name")
    size = await api.manager.store.backup(directory / request.name)
    return BackupAnswer(name=f"{BACKUPS}/{request.name}", bytes=size)


async def compact(api: Api, caller: Caller, request: In) -> CompactAnswer:
    """Give unused space back to the file system."""
    return CompactAnswer(freed_bytes=await api.manager.store.compact())


async def take_offline(api: Api, caller: Caller, request: In) -> DoneAnswer:
    """Exchange nothing with other machines."""
    api.manager.take_offline()
    return DoneAnswer()


async def bring_online(api: Api, caller: Caller, request: In) -> DoneAnswer:
    """Exchange messages with other machines again."""
    api.manager.bring_online()
    return DoneAnswer()


async def flow_control(api: Api, caller: Caller, request: FlowControlRequest) -> DoneAnswer:
    """Take in nothing for the moment, or messages again."""
    if request.throttled:
        api.manager.begin_flow_control()
    else:
        api.manager.end_flow_control()
    return DoneAnswer()


async def metrics(api: Api, caller: Caller, request: In) -> Stream:
    """Metrics for Prometheus."""
    return Stream("text/plain; version=0.0.4; charset=utf-8", render(api))


async def create_token(api: Api, caller: Caller, request: TokenRequest) -> TokenAnswer:
    """Make a token with rights."""
    rights = tuple([Right(right) for right in request.rights])
    token = api.tokens.create(request.name, rights, request.queues)
    return TokenAnswer(name=request.name, token=token)


async def list_tokens(api: Api, caller: Caller, request: In) -> TokensAnswer:
    """List the tokens, without the tokens."""
    return TokensAnswer(
        tokens=tuple(
            [
                TokenOut(name=known.name, rights=known.rights, queues=known.queues)
                for known in api.tokens.list()
            ]
        )
    )


async def remove_token(api: Api, caller: Caller, request: TokenNameRequest) -> DoneAnswer:
    """Remove a token."""
    api.tokens.remove(request.name)
    return DoneAnswer()
