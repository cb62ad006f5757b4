"""Where the commands about routes and directories get their enterprise from, and whom a name means in it."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lanner.model.errors import InvalidNameError, LannerError

if TYPE_CHECKING:
    from uuid import UUID

    from lanner.cli.command import Session
    from lanner.directory.local_file import LoadedEnterprise
    from lanner.model.enterprise import EnterpriseMap, Machine, Site

__all__ = [
    "EnterpriseOption",
    "enterprise_of",
    "find_machine",
    "find_pair",
    "find_site",
    "load_enterprise_file",
    "read_from_ldap",
    "read_from_manager",
    "send_to_manager",
]

EnterpriseOption = Annotated[
    Path | None,
    typer.Option("--enterprise", help="A directory file; without it, a running manager is asked."),
]


def read_from_manager(session: Session) -> EnterpriseMap:
    """Ask a running manager for its enterprise."""
    from lanner.directory.local_file import load

    return load(session.client.directory().text.encode(), "the manager's directory").map


def send_to_manager(session: Session, data: bytes) -> None:
    """Give a running manager another enterprise, as the bytes of a directory file."""
    session.client.replace_directory(data.decode())


def read_from_ldap(url: str) -> EnterpriseMap:
    """Read an enterprise from the directory server at a URL, logging in as the settings' ``[ldap]`` says."""
    from msgspec.structs import replace

    from lanner.config import load_config
    from lanner.directory.ldap.once import read_once
    from lanner.directory.ldap.settings import parse_url

    known = load_config().config.ldap
    settings = parse_url(
        url,
        user=known.user,
        password_file=known.password_file,
        ca_file=known.ca_file,
        gssapi=known.gssapi,
        start_tls=known.start_tls,
    )
    return read_once(replace(settings, base=settings.base or known.base))


def load_enterprise_file(path: Path) -> LoadedEnterprise:
    """Read a directory file; whatever is wrong with it is an error of one line."""
    from lanner.directory.local_file import load_file

    try:
        return load_file(path)
    except OSError as error:
        raise LannerError(f"{path} cannot be read: {error.strerror or error}") from None


def enterprise_of(session: Session, file: Path | None) -> EnterpriseMap:
    """The enterprise that a command is about."""
    return load_enterprise_file(file).map if file is not None else read_from_manager(session)


def find_machine(source: EnterpriseMap, text: str) -> Machine:
    """The queue manager that was meant, or an error with the nearest name."""
    found = source.find_machine(text)
    if found is None:
        raise _unknown("manager", text, [machine.name for machine in source.machines])
    return found


def find_site(source: EnterpriseMap, text: str) -> Site:
    """The site that was meant, or an error with the nearest name."""
    found = source.find_site(text)
    if found is None:
        raise _unknown("site", text, [site.name for site in source.sites])
    return found


def find_pair(source: EnterpriseMap, text: str) -> frozenset[UUID]:
    """Two sites written as ``London-Paris``; the names may have hyphens themselves."""
    pieces = text.split("-")
    for number in range(1, len(pieces)):
        one = source.find_site("-".join(pieces[:number]).strip())
        other = source.find_site("-".join(pieces[number:]).strip())
        if one and other and one.id != other.id:
            return frozenset((one.id, other.id))
    names = {link.id: (source.site(link.site1), source.site(link.site2)) for link in source.links}
    known = [f"{one.name}-{other.name}" for one, other in names.values() if one and other]
    raise _unknown("link", text, known)


def _unknown(what: str, text: str, known: list[str]) -> InvalidNameError:
    by_key = {name.casefold(): name for name in known[:10_000]}
    found = difflib.get_close_matches(text.casefold(), by_key, n=1, cutoff=0.5)
    hint = f"did you mean {by_key[found[0]]}?" if found else ""
    if not hint and known:
        hint = f"there are {', '.join(known[:5])}" + (
            f" and {len(known) - 5:,} more" if len(known) > 5 else ""
        )
    return InvalidNameError(f"there is no {what} {text!r}", hint=hint)
