"""Where the manager is, and the token that it takes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from lanner.model.errors import ConnectionFailedError

__all__ = ["Address", "find_address"]

ADDRESS_NAME = "api.address"
TOKEN_NAME = "token"  # noqa: S105  # the name of a file
DEFAULT_DATA = "lanner-data"


class Address(NamedTuple):
    """An API and a token for it."""

    url: str
    token: str


def find_address(
    *,
    data: str | Path | None = None,
    api: str | None = None,
    token: str | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Address:
    """Find the manager: by its address and token, by its data directory, or by the environment.

    Without anything, ``LANNER_API`` and ``LANNER_TOKEN``, then the data directory ``lanner-data`` here.
    """
    url = api or (None if data else environment.get("LANNER_API"))
    if url:
        found = token or environment.get("LANNER_TOKEN")
        if not found:
            raise ConnectionFailedError(
                "there is an address but no token", hint="give --token, or set LANNER_TOKEN"
            )
        return Address(url.rstrip("/"), found)
    directory = Path(data or environment.get("LANNER_MANAGER_DATA") or DEFAULT_DATA)
    return Address(_read(directory, ADDRESS_NAME), token or _read(directory, TOKEN_NAME))


def _read(directory: Path, name: str) -> str:
    try:
        return (directory / name).read_text().strip()
    except FileNotFoundError:
        raise ConnectionFailedError(
            f"no queue manager is running on {directory}",
            hint="start one with 'lanner serve --data DIR', or say where it is with --data or --api",
        ) from None
    except OSError as error:
        raise ConnectionFailedError(f"cannot read {directory / name}: {error.strerror}") from error
