"""Full disks and full queues: every command that writes fails in one line, and nothing is lost."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.client.conftest import ServiceThread
from tests.manager.conftest import full_disk
from typer.testing import CliRunner, Result

from lanner.cli.app import app
from lanner.model.message import Delivery, Message
from lanner.store import database

ORDERS = r".\private$\orders"
SMALL = r".\private$\small"
FAR = r"DIRECT=OS:elsewhere\private$\far"
FULL_FILE = "/dev/full"
"""Whatever is written there finds no room."""

Run = Callable[..., Result]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ServiceThread]:
    thread = ServiceThread(tmp_path / "data")
    thread.start()
    yield thread
    thread.stop()


@pytest.fixture
def run(service: ServiceThread) -> Run:
    def run_command(*arguments: str) -> Result:
        return CliRunner().invoke(app, [*arguments, "--data", str(service.data)])

    return run_command


@contextmanager
def full_store(service: ServiceThread) -> Iterator[None]:
    """Have no room in the store for a while."""
    full = full_disk(service.service.manager)
    service.run(_enter(full))
    try:
        yield
    finally:
        service.run(_leave(full))


async def _enter(scope: AbstractAsyncContextManager[None]) -> None:
    await scope.__aenter__()


async def _leave(scope: AbstractAsyncContextManager[None]) -> None:
    await scope.__aexit__(None, None, None)


def no_room() -> sqlite3.OperationalError:
    """What SQLite says on a full disk."""
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL
    return error


def done(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]


def failed(result: Result, *, may_have_printed: bool = False) -> str:
    assert result.exit_code == 1, result.output
    assert may_have_printed or result.stdout == ""
    [line] = result.stderr.splitlines()
    return line


def labels(run: Run, queue: str) -> list[str]:
    return [message["label"] for message in done(run("peek", queue, "--count", "10", "--json"))]


def queues(run: Run) -> dict[str, Any]:
    return {queue["path"]: queue for queue in done(run("queue", "list", "--json"))}


def place(run: Run, queue: str) -> str:
    return str(done(run("peek", queue, "--json"))[0]["lookup_id"])


def dead(run: Run) -> list[str]:
    return [str(letter["message"]["lookup_id"]) for letter in done(run("deadletter", "list", "--json"))]


def make_everything(run: Run) -> None:
    """A queue with a message, and a dead letter from it."""
    done(run("queue", "create", ORDERS, "--journal", "--label", "Orders"))
    done(run("send", ORDERS, "--body", "x", "--label", "doomed", "--ttbr", "0", "--deadletter", "--durable"))
    done(run("send", ORDERS, "--body", "x", "--label", "kept", "--durable"))


WRITING = [
    ("queue", "create", SMALL),
    ("queue", "set", ORDERS, "--label", "x" * 100),
    ("queue", "delete", ORDERS),
    ("queue", "purge", ORDERS),
    ("send", ORDERS, "--body", "x", "--durable"),
    ("send", ORDERS, "--body", "x", "--durable", "--key", "k"),
    ("receive", ORDERS),
    ("receive", ORDERS, "--count", "5", "--json"),
    ("move", ORDERS, "PLACE", ORDERS + ";later"),
    ("deadletter", "replay", "DEAD"),
    ("deadletter", "replay", "--all"),
]


@pytest.mark.parametrize("command", WRITING, ids=" ".join)
def test_on_a_full_disk_a_command_fails_and_changes_nothing(
    run: Run, service: ServiceThread, command: tuple[str, ...]
) -> None:
    make_everything(run)
    before = queues(run)
    known = {"PLACE": place(run, ORDERS), "DEAD": dead(run)[0]}
    command = tuple(known.get(word, word) for word in command)
    # What is received is printed before it is taken: it is told twice rather than lost.
    is_receive = command[0] == "receive"
    with full_store(service):
        assert "is full (free some space" in failed(run(*command), may_have_printed=is_receive)
        assert queues(run) == before
        assert (labels(run, ORDERS), dead(run)) == (["kept"], [known["DEAD"]])
    assert queues(run) == before
    done(run(*command))  # there is room again


def test_on_a_full_disk_no_queue_is_paused_or_resumed(
    run: Run, service: ServiceThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So little is written that it may find room even on a full disk: the writer itself says no.
    def refuse(_: object) -> None:
        raise no_room()

    done(run("send", FAR, "--body", "x", "--durable"))
    for command in ("pause", "resume"):
        before = queues(run)
        with monkeypatch.context() as patch:
            patch.setattr(service.service.manager.store._writer, "_write", refuse)
            assert "the disk is full" in failed(run("queue", command, FAR))
            assert queues(run) == before
        done(run("queue", command, FAR))
        assert queues(run) != before


def test_on_a_full_disk_no_set_is_applied(run: Run, service: ServiceThread, tmp_path: Path) -> None:
    file = tmp_path / "queues.toml"
    file.write_text(f"[[queue]]\npath = '{ORDERS}'\n[[queue]]\npath = '{SMALL}'\n")
    with full_store(service):
        assert "is full" in failed(run("queue", "apply", str(file)))
        assert not {ORDERS, SMALL} & queues(run).keys()
    done(run("queue", "apply", str(file)))
    assert {ORDERS, SMALL} <= queues(run).keys()


def test_on_a_full_disk_a_store_is_not_compacted(run: Run, service: ServiceThread) -> None:
    done(run("queue", "create", ORDERS))
    messages = [
        Message(body=bytes(30_000), label=str(number), delivery=Delivery.RECOVERABLE) for number in range(8)
    ]
    service.run(service.service.manager.send_many(ORDERS, messages))
    done(run("receive", ORDERS, "--count", "6"))  # what is left has to be copied out of a sparse segment
    with full_store(service):
        assert "is full" in failed(run("compact"))
        assert labels(run, ORDERS) == ["6", "7"]
    done(run("compact"))
    assert [message["label"] for message in done(run("receive", ORDERS, "--count", "9", "--json"))] == [
        "6",
        "7",
    ]


def test_on_a_full_disk_no_half_backup_is_left(
    run: Run, service: ServiceThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    class FullConnection(sqlite3.Connection):
        def execute(self, statement: str, parameters: Any = (), /) -> sqlite3.Cursor:
            if statement.startswith("VACUUM INTO"):
                Path(parameters[0]).write_bytes(b"half a backup")
                raise no_room()
            return super().execute(statement, parameters)

    with monkeypatch.context() as patch:
        patch.setattr(database, "open_read_only", lambda path: FullConnection(path))
        assert "the disk is full" in failed(run("backup", "copy.db"))
    assert list((service.data / "backups").iterdir()) == []
    done(run("backup", "copy.db"))


def test_a_backup_that_has_no_place_to_go(run: Run, service: ServiceThread) -> None:
    (service.data / "backups").write_text("a file where the directory should be")
    assert "the store failed; see the log" in failed(run("backup", "copy.db"))


def test_on_a_full_disk_tokens_stay_as_they_were(
    run: Run, service: ServiceThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: int) -> None:
        raise OSError(28, "No space left on device")

    done(run("token", "add", "shop", "--right", "send"))
    before = done(run("token", "list", "--json"))
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", refuse)
        assert "the disk is full" in failed(run("token", "add", "stock", "--right", "send"))
        assert "the disk is full" in failed(run("token", "remove", "shop"))
    assert done(run("token", "list", "--json")) == before
    assert not list(service.data.glob("*.unfinished"))
    done(run("token", "add", "stock", "--right", "send"))
    done(run("token", "remove", "shop"))


@pytest.mark.parametrize("form", ["jsonl", "parquet", "arrow"])
def test_an_export_to_a_full_disk(run: Run, form: str) -> None:
    make_everything(run)
    line = failed(run("history", "export", FULL_FILE, "--format", form))
    assert line.startswith(f"lanner: cannot write {FULL_FILE}: ")
    assert "No space left on device" in line


@pytest.mark.parametrize(
    "command",
    [("history", "export", "-"), ("queue", "list"), ("peek", ORDERS, "--json"), ("status",)],
    ids=" ".join,
)
def test_output_to_a_full_disk(run: Run, service: ServiceThread, command: tuple[str, ...]) -> None:
    make_everything(run)
    with Path(FULL_FILE).open("w") as out:
        ended = subprocess.run(
            [sys.executable, "-m", "lanner", *command, "--data", str(service.data)],
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            timeout=30,
            check=False,
        )
    assert ended.returncode == 1
    [line] = ended.stderr.splitlines()
    assert line.startswith("lanner: ")
    assert "No space left on device" in line


def test_a_message_that_could_not_be_printed_is_not_taken(run: Run, service: ServiceThread) -> None:
    make_everything(run)
    with Path(FULL_FILE).open("w") as out:
        ended = subprocess.run(
            [sys.executable, "-m", "lanner", "receive", ORDERS, "--json", "--data", str(service.data)],
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            timeout=30,
            check=False,
        )
    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) == 1
    assert labels(run, ORDERS) == ["kept"]


def test_output_to_a_pipe_that_nobody_reads(run: Run, service: ServiceThread) -> None:
    make_everything(run)
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(
        [sys.executable, "-m", "lanner", "history", "export", "-", "--data", str(service.data)],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        timeout=30,
        check=False,
    )
    os.close(writing)
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert len(ended.stderr.splitlines()) <= 1


# Quotas.


def test_what_a_full_queue_refuses_stays_where_it_was(run: Run) -> None:
    make_everything(run)
    done(run("queue", "create", SMALL, "--quota", "0"))
    [letter] = dead(run)
    for command in (
        ("send", SMALL, "--body", "x"),
        ("send", SMALL, "--body", "x", "--durable", "--key", "k"),
        ("deadletter", "replay", letter, "--to", SMALL),
    ):
        assert "quota is 0 KB" in failed(run(*command))
    assert labels(run, SMALL) == []
    assert labels(run, ORDERS) == ["kept"]
    assert dead(run) == [letter]


def test_a_full_journal_keeps_no_message_from_its_receiver(run: Run) -> None:
    done(run("queue", "create", ORDERS, "--journal", "--journal-quota", "0"))
    done(run("send", ORDERS, "--body", "x", "--label", "kept", "--durable"))
    assert [message["label"] for message in done(run("receive", ORDERS, "--json"))] == ["kept"]
    assert "discarded" in [row["event"] for row in done(run("history", "tail", "--json"))]


def test_a_quota_that_is_lowered_below_what_is_there_loses_nothing(run: Run) -> None:
    make_everything(run)
    done(run("queue", "set", ORDERS, "--quota", "0"))
    assert "quota is 0 KB" in failed(run("send", ORDERS, "--body", "x"))
    done(run("move", ORDERS, place(run, ORDERS), ORDERS + ";later"))
    assert [message["label"] for message in done(run("receive", ORDERS + ";later", "--json"))] == ["kept"]
