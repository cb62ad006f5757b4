"""Durable state: one SQLite file, one writer, group commit (docs/store-format.md)."""

from lanner.store.changes import Changes
from lanner.store.store import Store, StoreIdentity

__all__ = ["Changes", "Store", "StoreIdentity"]
