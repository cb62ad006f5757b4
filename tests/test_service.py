"""The service: reloading, a port that is taken, logs."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from lanner.config import LoadedConfig, LogConfig, load_config
from lanner.logs import configure_logs
from lanner.model.errors import ListenError
from lanner.service import running


@pytest.fixture(autouse=True)
def logs_as_they_were() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def settings(data: Path, **flags: object) -> LoadedConfig:
    flags = {
        "manager.data": str(data),
        "api.port": 0,
        "network.srmp_port": 0,
        **{name.replace("_", ".", 1): value for name, value in flags.items()},
    }
    return load_config(environment={}, flags=flags)


async def test_a_reload_takes_what_it_can_and_says_what_it_cannot(tmp_path: Path) -> None:
    async with running(settings(tmp_path / "data")) as (service, _):
        said = service.reload(settings(tmp_path / "data", log_format="json", manager_quota=1000))
    assert said == [
        "log settings changed",
        "tokens read again",
        "changes in [manager] take effect at the next start",
    ]


async def test_a_port_that_is_taken_is_said_and_everything_is_let_go(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ListenError, match="another program has the port"):
            async with running(settings(tmp_path / "data", api_port=port)):
                pass
    async with running(settings(tmp_path / "data")) as (service, started):
        assert started[0] == f"API on {service.api.url}"
        assert started[1].startswith("SRMP on http://127.0.0.1:")
        assert (tmp_path / "data" / "api.address").read_text().strip() == service.api.url
    assert not (tmp_path / "data" / "api.address").exists()


def test_logs_for_programs_are_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(LogConfig(format="json", level="info"))
    logging.getLogger("lanner.test").warning("%s is full", "orders", extra={"queue": "orders"})
    logging.getLogger("lanner.test").debug("not this")
    [line] = capsys.readouterr().err.splitlines()
    record = json.loads(line)
    assert (record["level"], record["message"], record["queue"]) == ("warning", "orders is full", "orders")


def test_logs_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(LogConfig(format="human", level="debug"))
    logging.getLogger("lanner.test").debug("hello")
    assert capsys.readouterr().err.endswith("debug   hello\n")
