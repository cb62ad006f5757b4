"""``lanner serve`` as a process: SIGHUP takes other log settings and tokens, SIGTERM ends it cleanly."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import msgspec
import pytest

START_SECONDS = 20.0
STOP_SECONDS = 10.0


class ServedProcess:
    """The service with a settings' file, and everything that it logs."""

    def __init__(self, directory: Path) -> None:
        self.data = directory / "data"
        self.settings = directory / "lanner.toml"
        self.log = directory / "log"

    def set_log(self, **settings: str) -> None:
        log = "".join(f"{name} = '{value}'\n" for name, value in settings.items())
        self.settings.write_text(f"[manager]\ndata = '{self.data}'\n[api]\nport = 0\n[log]\n{log}")

    def start(self) -> None:
        command = [sys.executable, "-m", "lanner", "serve", "--config", str(self.settings)]
        clean = {name: value for name, value in os.environ.items() if not name.startswith("LANNER_")}
        with self.log.open("w") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log, env=clean)
        self.wait_until(self._is_ready)

    def _is_ready(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        try:
            return httpx.get(f"{self.url}/health/ready").status_code == 200
        except (httpx.TransportError, FileNotFoundError):
            return False

    @property
    def url(self) -> str:
        return (self.data / "api.address").read_text().strip()

    @property
    def lines(self) -> list[str]:
        return self.log.read_text().splitlines()

    def status_of(self, token: str) -> int:
        """How a request with this token is answered."""
        headers = {"authorization": f"Bearer {token}"}
        return httpx.get(f"{self.url}/v1/queues", headers=headers).status_code

    def wait_until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not condition():
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.02)

    def reload(self, word: str) -> list[str]:
        """Send SIGHUP; the lines that were logged then, up to one with this word."""
        before = len(self.lines)
        self.process.send_signal(signal.SIGHUP)
        self.wait_until(lambda: any(word in line for line in self.lines[before:]))
        return self.lines[before:]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedProcess]:
    served = ServedProcess(tmp_path)
    served.set_log(format="human", level="info")
    served.start()
    yield served
    if served.process.poll() is None:
        served.process.kill()
    served.process.wait(STOP_SECONDS)


def stop(served: ServedProcess) -> None:
    began = time.monotonic()
    served.process.send_signal(signal.SIGTERM)
    assert served.process.wait(STOP_SECONDS) == 0
    assert time.monotonic() - began < STOP_SECONDS
    assert not (served.data / "api.address").exists()
    assert "Traceback" not in served.log.read_text()


def make_token(served: ServedProcess) -> str:
    owner = (served.data / "token").read_text().strip()
    headers = {"authorization": f"Bearer {owner}"}
    request = {"name": "shop", "rights": ["admin"]}
    answer = httpx.post(f"{served.url}/v1/tokens", json=request, headers=headers)
    return str(answer.json()["token"])


def forget_token(served: ServedProcess) -> None:
    """Take the token out of the file, as a person with an editor does."""
    file = served.data / "tokens.json"
    kept = [one for one in msgspec.json.decode(file.read_bytes()) if one["name"] != "shop"]
    file.write_bytes(msgspec.json.encode(kept))


def test_a_reload_takes_another_format_and_other_tokens(served: ServedProcess) -> None:
    owner, made = (served.data / "token").read_text().strip(), make_token(served)
    assert (served.status_of(owner), served.status_of(made)) == (200, 200)
    served.set_log(format="json", level="info")
    forget_token(served)
    assert served.status_of(made) == 200  # until it is told to look
    records = [json.loads(line) for line in served.reload("tokens read again")]
    assert [record["message"] for record in records] == [
        "reload: log settings changed",
        "reload: tokens read again",
    ]
    assert (served.status_of(owner), served.status_of(made)) == (200, 401)
    stop(served)
    assert json.loads(served.lines[-1])["message"].endswith("is closed")


def test_a_reload_takes_another_level(served: ServedProcess) -> None:
    made = make_token(served)
    before = served.lines
    served.set_log(format="human", level="error")
    forget_token(served)
    served.process.send_signal(signal.SIGHUP)
    served.wait_until(lambda: served.status_of(made) == 401)
    stop(served)
    assert served.lines == before  # neither the reload nor the stop is worth a word now


@pytest.mark.parametrize("mistake", ["settings", "tokens", "tokens that are no file"])
def test_a_mistake_changes_nothing(served: ServedProcess, mistake: str) -> None:
    made = make_token(served)
    served.set_log(format="json", level="error")
    tokens = served.data / "tokens.json"
    if mistake == "settings":
        served.set_log(format="json", level="loud")
        forget_token(served)
    elif mistake == "tokens":
        tokens.write_text("not tokens")
    else:
        tokens.unlink()
        tokens.mkdir()
    [line] = served.reload("the settings are as they were")
    assert " error   reload: " in line  # for people, as before
    assert served.status_of(made) == 200
    stop(served)
    assert served.lines[-1].endswith("is closed")  # the level is as before too
