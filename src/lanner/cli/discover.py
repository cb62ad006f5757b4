"""``lanner discover``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from lanner.cli.command import Session, fail, talks_to_manager
from lanner.cli.output import print_json, print_table, printable
from lanner.model.errors import InvalidPropertyError

if TYPE_CHECKING:
    from lanner.cli.discover_enterprise import Asked
    from lanner.protocols.discovery.client import Network
    from lanner.protocols.discovery.survey import Answer, Survey

__all__ = ["discover"]

NOBODY = UUID(int=0)

TIMEOUT = 3.0
"""Seconds to listen: an answer takes milliseconds, a person is waiting."""


@talks_to_manager
def discover(
    session: Session,
    enterprise: Annotated[
        str | None,
        typer.Option(
            metavar="ID|FILE", help="The enterprise to look for; else the one that this machine belongs to."
        ),
    ] = None,
    site: Annotated[
        str | None, typer.Option(help="Your site's identifier: its servers then send no list of names.")
    ] = None,
    interface: Annotated[
        list[str] | None, typer.Option(help="Ask on the network of this address of yours; may be repeated.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=1, max=65_535, help="The servers' UDP port; else the settings'.")
    ] = None,
    timeout: Annotated[float, typer.Option(min=0.05, max=600, help="How many seconds to listen.")] = TIMEOUT,
) -> None:
    """Ask the network once which directory servers there are.

    Ends with 1 if none answers. Needs no running manager, but asks one for the enterprise if it is there.
    """
    from lanner.cli.discover_enterprise import enterprise_to_ask_for
    from lanner.config import load_config

    config = load_config().config
    site_id = _identifier(site, "--site")
    networks = _networks(interface or [])
    asked = enterprise_to_ask_for(session, config, enterprise)
    import asyncio

    from lanner.protocols.discovery.survey import survey

    port = port or config.network.discovery_port
    heard = asyncio.run(survey(networks, asked.id, site_id, port=port, timeout=timeout))
    if not heard.answers:
        fail(_advice(heard, networks, port, timeout, asked))
    if session.as_json:
        for answer in heard.answers:
            print_json(_as_json(answer, site))
    else:
        _print_for_people(heard)


def _identifier(text: str | None, option: str) -> UUID:
    if text is None:
        return NOBODY
    try:
        return UUID(text)
    except ValueError as error:
        raise InvalidPropertyError(
            f"{option} {text!r} is no identifier",
            hint="it looks like e6eaba61-d1c6-11db-baac-0003ff4e2d22",
        ) from error


def _networks(addresses: list[str]) -> tuple[Network, ...]:
    from lanner.protocols.discovery.interfaces import machine_networks, networks_at

    try:
        networks = networks_at(addresses)
    except OSError as error:
        raise InvalidPropertyError(str(error), hint="may this user see them?") from error
    missing = set(addresses) - {network.address for network in networks}
    ours = ", ".join(network.address for network in machine_networks(with_loopback=True))
    if missing:
        raise InvalidPropertyError(
            f"--interface {' '.join(sorted(missing))} is no address of this machine", hint=f"it has {ours}"
        )
    if not networks:
        raise InvalidPropertyError(
            "this machine is on no network that takes broadcasts", hint="name one: --interface ADDRESS"
        )
    return networks


def _advice(heard: Survey, networks: tuple[Network, ...], port: int, timeout: float, asked: Asked) -> str:
    where = ", ".join(network.address for network in networks)
    whose = f" {asked.origin}" if asked.origin else ""
    advice = [
        f"no directory server of the enterprise {asked.id}{whose} answered on {where} (UDP port {port}) "
        f"within {timeout:g} s"
    ]
    advice += (f"cannot ask on {failure}" for failure in heard.failures)
    if heard.unreadable:
        advice.append(f"{heard.unreadable} packets came that are no answers")
    advice.append(
        f"broadcasts stay in their network: run it in the server's, or choose one with --interface; "
        f"let UDP port {port} through the firewall; a packet may have been lost: try again"
    )
    return "; ".join(advice)


def _as_json(answer: Answer, site: str | None) -> dict[str, object]:
    reply = answer.reply
    return {
        "address": answer.address,
        "interface": answer.network,
        "is_own_site": reply.is_from_our_site,
        "site": str(reply.responding_site_id or (UUID(site) if site else NOBODY)),
        "servers": [
            {"name": each.name, "ip": each.supports_ip, "ipx": each.supports_ipx} for each in reply.servers
        ],
        "connected_networks": [str(network) for network in reply.connected_networks],
    }


def _print_for_people(heard: Survey) -> None:
    rows = [
        (
            answer.address,
            answer.network,
            str(answer.reply.responding_site_id or "your own"),
            printable(", ".join(server.name for server in answer.reply.servers))
            or "sent to other sites alone",
            "\n".join(map(str, answer.reply.connected_networks)),
        )
        for answer in heard.answers
    ]
    columns = ("address", "asked on", "site", "directory servers", "connected networks")
    print_table(columns, rows, empty="nobody answered")
    for failure in heard.failures:
        typer.echo(f"could not ask on {failure}", err=True)
