"""What operators are told: every flag of ``lanner serve`` and every command of ``lanner srmp``."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer.main

from lanner.cli import redirections, srmp
from lanner.cli.app import app
from lanner.model.transfer import ConnectionStatus
from lanner.protocols.srmp import client

OPERATIONS = (Path(__file__).parent.parent.parent / "docs" / "operations.md").read_text()


def test_every_flag_of_serve_is_documented() -> None:
    serve = typer.main.get_command(app).commands["serve"]  # type: ignore[attr-defined]
    flags = [flag for option in serve.params for flag in option.opts if flag != "--help"]
    assert "--srmp-url" in flags
    for flag in flags:
        assert f"| `{flag}` |" in OPERATIONS, flag


@pytest.mark.parametrize(
    ("group", "prefix"), [(srmp.app, "lanner srmp"), (redirections.app, "lanner srmp redirect")]
)
def test_every_command_of_srmp_is_documented(group: typer.Typer, prefix: str) -> None:
    for name in typer.main.get_command(group).commands:  # type: ignore[attr-defined]
        assert f"`{prefix} {name}" in OPERATIONS, name


def test_every_failure_of_a_connection_is_documented() -> None:
    statuses = {
        *client._ERRORS.values(),
        ConnectionStatus.DNS_FAILURE,
        ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE,
        ConnectionStatus.CONNECTION_NOT_READY,
        ConnectionStatus.SOCKET_CONNECT_FAILURE,
        ConnectionStatus.SOCKET_SEND_FAILURE,
        ConnectionStatus.UNKNOWN_FAILURE,
    }
    for status in statuses:
        assert f"| `{status.value}` |" in OPERATIONS, status
