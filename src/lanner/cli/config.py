"""``lanner config``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lanner.cli.command import failing_clearly
from lanner.cli.output import print_json, print_table

__all__ = ["app"]

app = typer.Typer(help="The settings, and where each came from.", no_args_is_help=True)

FileOption = Annotated[Path | None, typer.Option("--config", help="The settings' file.")]


@app.command()
def check(config: FileOption = None) -> None:
    """Say whether the settings are right."""
    from lanner.config import load_config

    with failing_clearly():
        load_config(file=config)
        typer.echo("the settings are right")


@app.command()
def show(
    config: FileOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")] = False,
) -> None:
    """Show every setting and where it came from."""
    from lanner.config import load_config, setting_names

    with failing_clearly():
        loaded = load_config(file=config)
        rows = []
        for name in setting_names():
            section, _, key = name.partition(".")
            rows.append((name, getattr(getattr(loaded.config, section), key), loaded.source_of(name)))
        if as_json:
            for name, value, source in rows:
                print_json({"setting": name, "value": value, "source": source})
        else:
            print_table(("setting", "value", "from"), [(n, str(v), s) for n, v, s in rows], empty="")
