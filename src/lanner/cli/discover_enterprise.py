"""Which enterprise ``lanner discover`` asks for.

EnterpriseID MUST be that of the enterprise to which the client belongs (MS-MQSD 2.2.2). No reply has it, so
that it cannot be found out by asking, and servers may be silent for strangers. It is told by whoever asks, or
known here: by a running manager, or in the directory that the settings name.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from lanner.model.errors import ConnectionFailedError, InvalidPropertyError, LannerError, QueueNotFoundError

if TYPE_CHECKING:
    from lanner.cli.command import Session
    from lanner.config import Config

__all__ = ["Asked", "enterprise_to_ask_for"]


class Asked(NamedTuple):
    """An enterprise, and who says that it is ours."""

    id: UUID
    origin: str


def enterprise_to_ask_for(session: Session, config: Config, given: str | None) -> Asked:
    """The enterprise that was given, or else the one that this machine belongs to."""
    if given is not None:
        return _given(given)
    found = _of_manager(session, config) or _of_settings(config)
    if found is None:
        raise InvalidPropertyError(
            "no manager that runs here knows an enterprise, and the settings name no directory",
            hint="say which one to look for: --enterprise ID, or --enterprise FILE with its directory file",
        )
    return found


def _given(text: str) -> Asked:
    try:
        return Asked(UUID(text), "")
    except ValueError as error:
        path = Path(text)
        if not path.is_file():
            raise InvalidPropertyError(
                f"--enterprise {text!r} is no identifier and no directory file",
                hint="an identifier looks like e6eaba61-d1c6-11db-baac-0003ff4e2d22",
            ) from error
    return _of_file(path)


def _of_manager(session: Session, config: Config) -> Asked | None:
    """What a running manager knows. One that was named must answer; one that may be there need not."""
    from lanner.cli.enterprise import read_from_manager

    is_named = bool(session.data or session.api or os.environ.get("LANNER_API"))
    if not is_named:
        session.data = config.manager.data
    try:
        return Asked(read_from_manager(session).enterprise.id, "of the running manager")
    except QueueNotFoundError:
        return None  # it has no directory
    except ConnectionFailedError:
        if is_named:
            raise
        return None


def _of_settings(config: Config) -> Asked | None:
    if config.directory.file:
        return _of_file(Path(config.directory.file))
    if not config.ldap.servers:
        return None
    from lanner.directory.ldap.once import read_once

    try:
        return Asked(read_once(config.ldap).enterprise.id, "of the directory over LDAP")
    except LannerError as error:
        error.hint = error.hint or "or say which enterprise: --enterprise ID"
        raise


def _of_file(path: Path) -> Asked:
    from lanner.cli.enterprise import load_enterprise_file

    return Asked(load_enterprise_file(path).map.enterprise.id, f"of {path}")
