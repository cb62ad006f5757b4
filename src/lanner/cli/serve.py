"""``lanner serve``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lanner.cli.command import failing_clearly

if TYPE_CHECKING:
    from lanner.config import LoadedConfig
    from lanner.service import Service

__all__ = ["serve"]


def serve(
    config: Annotated[
        Path | None, typer.Option(help="The settings' file; lanner.toml if it is there.")
    ] = None,
    data: Annotated[str | None, typer.Option(help="The data directory.")] = None,
    name: Annotated[str | None, typer.Option(help="The computer name of a new manager.")] = None,
    enterprise: Annotated[
        str | None, typer.Option(help="A file that describes the enterprise: sites, links, managers.")
    ] = None,
    listen: Annotated[str | None, typer.Option(help="The address that protocols listen on.")] = None,
    srmp_port: Annotated[int | None, typer.Option(help="SRMP over HTTP.")] = None,
    srmp_https_port: Annotated[
        int | None, typer.Option(help="SRMP over HTTPS, with srmp.certificate.")
    ] = None,
    srmp_url: Annotated[
        str | None, typer.Option(help="Where other queue managers reach this one, for receipts.")
    ] = None,
    api_port: Annotated[int | None, typer.Option(help="The API; 0 takes any free port.")] = None,
    binary_port: Annotated[int | None, typer.Option(help="The binary protocol.")] = None,
    discovery_port: Annotated[int | None, typer.Option(help="Directory discovery (UDP).")] = None,
    rpc_port: Annotated[int | None, typer.Option(help="Remote management.")] = None,
) -> None:
    """Run a queue manager until it is told to stop."""
    from lanner.config import load_config
    from lanner.service import run

    flags = {
        "manager.data": data,
        "manager.name": name,
        "directory.file": enterprise,
        "network.listen": listen,
        "network.srmp_port": srmp_port,
        "network.srmp_https_port": srmp_https_port,
        "srmp.url": srmp_url,
        "api.port": api_port,
        "network.binary_port": binary_port,
        "network.discovery_port": discovery_port,
        "network.rpc_port": rpc_port,
    }

    def load() -> LoadedConfig:
        return load_config(file=config, flags=flags)

    with failing_clearly():
        run(load, _announce)


def _announce(service: Service, started: list[str]) -> None:
    data = service.config.manager.data
    typer.echo(f"queue manager {service.manager.name}, data in {data}")
    for line in started:
        typer.echo(f"  {line}")
    option = "" if data == "lanner-data" else f" --data {data}"
    typer.echo("Try in another terminal:")
    typer.echo(f"  lanner queue create '.\\private$\\orders'{option}")
    typer.echo(f"  lanner send '.\\private$\\orders' --body hello --durable{option}")
