"""SRMP's redirections and streams as they go over the API."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from lanner.schema.base import In, Out

__all__ = [
    "AddRedirectionRequest",
    "Kind",
    "RedirectionIn",
    "RedirectionOut",
    "RedirectionsAnswer",
    "RedirectionsRequest",
    "RemoveRedirectionRequest",
    "ResetAnswer",
]

MAX_LIST = 1_000
"""Redirections of a kind: every message is compared with all of them."""

Url = Annotated[str, Meta(max_length=2_048)]
Kind = Literal["inbound", "outbound", "receipts", "exception", "default-receipts"]


class RedirectionIn(In, frozen=True, kw_only=True):
    """From one URL to another; the first may end in an asterisk."""

    from_: Url = field(name="from")
    to: Url


class RedirectionOut(Out, frozen=True, kw_only=True):
    """From one URL to another."""

    from_: str = field(name="from")
    to: str


class RedirectionsRequest(In, frozen=True, kw_only=True):
    """All redirections, in place of those that there are."""

    inbound: Annotated[tuple[RedirectionIn, ...], Meta(max_length=MAX_LIST)] = ()
    outbound: Annotated[tuple[RedirectionIn, ...], Meta(max_length=MAX_LIST)] = ()
    outbound_exceptions: Annotated[tuple[Url, ...], Meta(max_length=MAX_LIST)] = ()
    receipts: Annotated[tuple[RedirectionIn, ...], Meta(max_length=MAX_LIST)] = ()
    default_receipts: Url = ""


class RedirectionsAnswer(Out, frozen=True, kw_only=True):
    """All redirections; in each list the first that matches counts."""

    inbound: tuple[RedirectionOut, ...]
    outbound: tuple[RedirectionOut, ...]
    outbound_exceptions: tuple[str, ...]
    receipts: tuple[RedirectionOut, ...]
    default_receipts: str


class AddRedirectionRequest(In, frozen=True, kw_only=True):
    """One redirection more. An exception has no ``to``, the default for receipts no ``from``."""

    kind: Kind
    from_: Url = field(name="from", default="")
    to: Url = ""
    first: bool = False
    """Before the others, instead of behind them."""


class RemoveRedirectionRequest(In, frozen=True, kw_only=True):
    """One redirection less."""

    kind: Kind
    from_: Url = field(name="from", default="")


class ResetAnswer(Out, frozen=True, kw_only=True):
    """How many messages the new stream begins with."""

    messages: int
