"""Transactions as they go over the API."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from lanner.schema.base import In, Key, Out

MAX_LEASE = 3600.0
"""Seconds that a client may be silent within a transaction."""


class BeginRequest(In, frozen=True, kw_only=True):
    """A transaction to begin."""

    lease: Annotated[float, Meta(gt=0, le=MAX_LEASE)] | None = None
    """Seconds after which it is aborted, unless something is done in it."""
    key: Key | None = None


class TransactionRequest(In, frozen=True, kw_only=True):
    """A transaction by its identifier."""

    transaction: str


class TransactionAnswer(Out, frozen=True, kw_only=True):
    """A transaction that has begun."""

    transaction: str
    lease: float
