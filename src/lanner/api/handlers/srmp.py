"""SRMP: redirections, and streams that begin anew."""

from __future__ import annotations

import msgspec

from lanner.api.context import Api
from lanner.api.tokens import Caller
from lanner.model.errors import UnsupportedOperationError
from lanner.protocols.srmp.endpoint import SrmpEndpoint
from lanner.protocols.srmp.redirection import RedirectionKind, Redirections
from lanner.schema.base import In
from lanner.schema.queues import QueueRequest
from lanner.schema.srmp import (
    AddRedirectionRequest,
    RedirectionsAnswer,
    RedirectionsRequest,
    RemoveRedirectionRequest,
    ResetAnswer,
)

__all__ = ["add", "list_redirections", "remove", "replace", "reset"]


async def list_redirections(api: Api, caller: Caller, request: In) -> RedirectionsAnswer:
    """Show everything that is redirected."""
    return _answer(_srmp(api).redirections)


async def replace(api: Api, caller: Caller, request: RedirectionsRequest) -> RedirectionsAnswer:
    """Put others in the place of all redirections."""
    wanted = msgspec.convert(msgspec.to_builtins(request), Redirections)
    return _answer(await _srmp(api).change_redirections(lambda _: wanted))


async def add(api: Api, caller: Caller, request: AddRedirectionRequest) -> RedirectionsAnswer:
    """Add one redirection; one with the same ``from`` is replaced."""
    kind = RedirectionKind(request.kind)
    changed = await _srmp(api).change_redirections(
        lambda known: known.adding(kind, request.from_, request.to, is_first=request.first)
    )
    return _answer(changed)


async def remove(api: Api, caller: Caller, request: RemoveRedirectionRequest) -> RedirectionsAnswer:
    """Remove one redirection."""
    kind = RedirectionKind(request.kind)
    return _answer(await _srmp(api).change_redirections(lambda known: known.removing(kind, request.from_)))


async def reset(api: Api, caller: Caller, request: QueueRequest) -> ResetAnswer:
    """Begin a new stream with what waits in an outgoing queue."""
    return ResetAnswer(messages=await _srmp(api).reset_stream(request.queue))


def _srmp(api: Api) -> SrmpEndpoint:
    if api.srmp is None:
        raise UnsupportedOperationError(
            "SRMP is not running here", hint="set srmp.enabled to true and start the manager again"
        )
    return api.srmp


def _answer(redirections: Redirections) -> RedirectionsAnswer:
    return msgspec.convert(msgspec.to_builtins(redirections), RedirectionsAnswer)
