"""The command line as a person and a script use it: what it prints, and how it fails."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.client.conftest import ServiceThread
from typer.testing import CliRunner, Result

from lanner.cli.app import app

QUEUE = r".\private$\orders"

Run = Callable[..., Result]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ServiceThread]:
    thread = ServiceThread(tmp_path / "data")
    thread.start()
    yield thread
    thread.stop()


@pytest.fixture
def run(service: ServiceThread) -> Run:
    def run_command(*arguments: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(app, [*arguments, "--data", str(service.data)], input=stdin)

    return run_command


def done(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return result.stdout


def failed(result: Result) -> str:
    assert result.exit_code == 1
    [line] = result.stderr.splitlines()
    assert line.startswith("lanner: ")
    return line


def lines(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done(result).splitlines()]


def test_a_queue_is_created_listed_shown_changed_and_deleted(run: Run) -> None:
    assert (
        done(run("queue", "create", QUEUE, "--journal", "--label", "Orders", "--quota", "100"))
        == f"created {QUEUE}\n"
    )
    [queue] = [one for one in lines(run("queue", "list", "--json")) if one["path"] == QUEUE]
    assert {"messages": 0, "bytes": 0, "journal_messages": 0, "transactional": False}.items() <= queue.items()
    assert QUEUE in done(run("queue", "list"))
    shown = done(run("queue", "show", QUEUE))
    assert "100 KB" in shown
    assert "- Everyone may do everything" in shown
    done(run("queue", "set", QUEUE, "--no-journal", "--max-aborts", "3"))
    assert lines(run("queue", "show", QUEUE, "--json"))[0]["max_aborts"] == 3
    done(run("queue", "delete", QUEUE))
    assert "there is no queue" in failed(run("queue", "show", QUEUE))


def test_messages_are_sent_peeked_received_and_moved(run: Run, tmp_path: Path) -> None:
    done(run("queue", "create", QUEUE))
    (tmp_path / "body.bin").write_bytes(b"\x00from a file")
    done(run("send", QUEUE, "--body", "text", "--label", "a", "--durable", "--priority", "1"))
    done(run("send", QUEUE, "--file", str(tmp_path / "body.bin"), "--label", "b", "--durable"))
    done(run("send", QUEUE, "--file", "-", "--label", "c", stdin="from a pipe"))
    peeked = lines(run("peek", QUEUE, "--count", "10", "--json"))
    assert [message["label"] for message in peeked] == ["b", "c", "a"]
    assert base64.b64decode(peeked[0]["body"]) == b"\x00from a file"
    assert {"id", "lookup_id", "label", "priority", "class", "body"} <= peeked[0].keys()
    done(run("move", QUEUE, str(peeked[0]["lookup_id"]), QUEUE + ";checked"))
    assert [message["label"] for message in lines(run("receive", QUEUE + ";checked", "--json"))] == ["b"]
    assert "from a pipe" in done(run("receive", QUEUE))
    assert [message["label"] for message in lines(run("receive", QUEUE, "--count", "5", "--json"))] == ["a"]
    assert done(run("receive", QUEUE)) == "no message\n"


def test_a_transactional_send_and_a_key(run: Run) -> None:
    done(run("queue", "create", QUEUE, "--transactional"))
    assert "transaction" in failed(run("send", QUEUE, "--body", "x"))
    first = lines(run("send", QUEUE, "--body", "x", "--transactional", "--key", "k", "--json"))[0]
    second = lines(run("send", QUEUE, "--body", "x", "--transactional", "--key", "k", "--json"))[0]
    assert (first["replayed"], second["replayed"], first["id"]) == (False, True, second["id"])
    assert lines(run("queue", "show", QUEUE, "--json"))[0]["messages"] == 1


def test_acknowledgments_go_to_the_administration_queue(run: Run) -> None:
    done(run("queue", "create", QUEUE))
    done(run("queue", "create", r".\private$\admin"))
    done(
        run(
            "send",
            QUEUE,
            "--body",
            "x",
            "--admin-queue",
            r".\private$\admin",
            "--ack",
            "arrival",
            "--ack",
            "receive",
        )
    )
    done(run("receive", QUEUE))
    classes = [
        message["class"] for message in lines(run("receive", r".\private$\admin", "--count", "5", "--json"))
    ]
    assert classes == [0x0002, 0x4000]
    assert "full-receive" in failed(run("send", QUEUE, "--body", "x", "--ack", "everything"))


def test_a_dead_letter_is_listed_explained_and_replayed(run: Run) -> None:
    done(run("queue", "create", QUEUE))
    done(run("send", QUEUE, "--body", "x", "--label", "doomed", "--ttbr", "0", "--deadletter", "--durable"))
    assert "the time to be received ran out" in done(run("deadletter", "list"))
    [letter] = lines(run("deadletter", "list", "--class", "received", "--queue", QUEUE, "--json"))
    assert lines(run("deadletter", "list", "--class", "0x8000", "--json")) == []
    lookup_id = str(letter["message"]["lookup_id"])
    explained = done(run("deadletter", "explain", lookup_id))
    assert f"lanner deadletter replay {lookup_id}" in explained
    assert "nothing is chosen" in failed(run("deadletter", "replay"))
    assert "would go to" in done(run("deadletter", "replay", lookup_id, "--dry-run"))
    result = run("deadletter", "replay", "--all", "--to", r".\private$\nowhere")
    assert result.exit_code == 1
    assert "not replayed: there is no queue" in result.stderr
    done(run("queue", "create", r".\private$\second"))
    done(run("deadletter", "replay", "--all", "--to", r".\private$\second"))
    assert [row["event"] for row in lines(run("history", "tail", "--json"))][-2:] == ["sent", "received"]


def test_why_tells_about_a_queue_and_a_message(run: Run) -> None:
    done(run("queue", "create", QUEUE))
    sent = lines(run("send", QUEUE, "--body", "x", "--durable", "--json"))[0]
    assert "waits in" in done(run("why", sent["id"]))
    assert "1 messages wait" in done(run("why", QUEUE))
    done(run("receive", QUEUE))
    assert "it is done" in done(run("why", sent["id"]))
    assert "nothing is known" in done(run("why", sent["id"].rpartition("\\")[0] + "\\4000"))
    assert "did you mean" in failed(run("why", QUEUE + "x"))


def test_the_history_is_exported(run: Run, tmp_path: Path) -> None:
    import pyarrow.parquet

    done(run("queue", "create", QUEUE))
    for label in ("a", "b", "c"):
        done(run("send", QUEUE, "--body", "x", "--label", label))
    done(run("history", "export", str(tmp_path / "h.jsonl"), "--first", "2"))
    rows = [json.loads(line) for line in (tmp_path / "h.jsonl").read_text().splitlines()]
    assert [row["label"] for row in rows] == ["b", "c"]
    done(run("history", "export", str(tmp_path / "h.parquet"), "--format", "parquet"))
    table = pyarrow.parquet.read_table(tmp_path / "h.parquet")
    assert table.column("label").to_pylist() == ["a", "b", "c"]
    assert "cannot write" in failed(run("history", "export", str(tmp_path / "none" / "h.jsonl")))


def test_the_history_is_exported_as_the_name_of_the_file_says(run: Run, tmp_path: Path) -> None:
    import pyarrow.feather

    done(run("queue", "create", QUEUE))
    done(run("send", QUEUE, "--body", "x", "--label", "a"))
    status = json.loads(done(run("status", "--json")))
    for name, read in (("h.arrow", pyarrow.feather.read_table), ("h.parquet", pyarrow.parquet.read_table)):
        assert "wrote 1 rows" in done(run("history", "export", str(tmp_path / name)))
        table = read(tmp_path / name)
        assert table.column("label").to_pylist() == ["a"]
        assert table.schema.metadata[b"lanner.manager"].decode() == status["name"]
        assert table.schema.metadata[b"lanner.manager_id"].decode() == status["id"]
        failed(run("history", "export", str(tmp_path / "none" / name)))
    assert "to a file" in failed(run("history", "export", "-", "--format", "arrow"))
    assert sorted(file.name for file in tmp_path.glob("h.*")) == ["h.arrow", "h.parquet"]


def test_a_set_of_queues_is_applied(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "queues.toml"
    file.write_text(f"[[queue]]\npath = '{QUEUE}'\nlabel = 'Orders'\n")
    assert done(run("queue", "apply", str(file), "--dry-run")) == f"would create {QUEUE}\n"
    assert done(run("queue", "apply", str(file))) == f"create {QUEUE}\n"
    assert done(run("queue", "apply", str(file))) == "nothing to do\n"
    file.write_text("[[queue]]\npth = 'x'\n")
    assert "pth" in failed(run("queue", "apply", str(file)))
    assert "cannot read" in failed(run("queue", "apply", str(tmp_path / "none.toml")))


def test_tokens_status_backup_and_compact(run: Run, service: ServiceThread) -> None:
    token = done(run("token", "add", "shop", "--right", "send")).strip()
    assert "shop" in done(run("token", "list"))
    api = ("--api", f"http://127.0.0.1:{service.port}", "--token", token)
    result = CliRunner().invoke(app, ["queue", "list", *api])
    assert "does not allow" in failed(result)
    done(run("token", "remove", "shop"))
    assert "LON-1" in done(run("status"))
    done(run("backup", "copy.db"))
    assert (service.data / "backups" / "copy.db").exists()
    failed(run("backup", "copy.db"))
    done(run("compact"))
    assert done(run("offline")) == "offline\n"
    assert done(run("online")) == "online\n"


def test_a_full_queue_and_a_message_that_is_too_large(run: Run, tmp_path: Path) -> None:
    done(run("queue", "create", QUEUE, "--quota", "1"))
    (tmp_path / "big").write_bytes(bytes(2000))
    assert "quota" in failed(run("send", QUEUE, "--file", str(tmp_path / "big")))
    (tmp_path / "huge").write_bytes(bytes(4_194_305))
    assert "4,194,304" in failed(run("send", QUEUE, "--file", str(tmp_path / "huge")))


def test_a_manager_that_is_away_and_a_token_that_is_wrong(service: ServiceThread, tmp_path: Path) -> None:
    away = CliRunner().invoke(app, ["status", "--data", str(tmp_path / "none")])
    assert "lanner serve" in failed(away)
    silent = CliRunner().invoke(app, ["status", "--api", "http://127.0.0.1:9", "--token", "x"])
    assert "does not answer" in failed(silent)
    wrong = CliRunner().invoke(app, ["status", "--api", f"http://127.0.0.1:{service.port}", "--token", "x"])
    assert "does not know this token" in failed(wrong)


def test_config_is_checked_and_shown(tmp_path: Path) -> None:
    file = tmp_path / "lanner.toml"
    file.write_text("[api]\nport = 1234\n")
    runner = CliRunner()
    assert "right" in done(runner.invoke(app, ["config", "check", "--config", str(file)]))
    shown = [
        json.loads(line)
        for line in done(runner.invoke(app, ["config", "show", "--config", str(file), "--json"])).splitlines()
    ]
    assert {"setting": "api.port", "value": 1234, "source": f"file {file}"} in shown
    file.write_text("[api]\nprt = 1234\n")
    assert "did you mean api.port" in failed(runner.invoke(app, ["config", "check", "--config", str(file)]))


def test_every_command_has_help() -> None:
    runner = CliRunner()
    top = done(runner.invoke(app, ["--help"]))
    for name in (
        "serve",
        "queue",
        "send",
        "receive",
        "peek",
        "move",
        "deadletter",
        "why",
        "history",
        "config",
        "srmp",
    ):
        assert name in top
        assert "Usage" in done(runner.invoke(app, [name, "--help"]))


def test_a_full_disk(run: Run, service: ServiceThread) -> None:
    done(run("queue", "create", QUEUE))
    service.run(_limit_pages(service, full=True))
    assert "the disk is full" in failed(run("send", QUEUE, "--body", "x" * 100_000, "--durable"))
    service.run(_limit_pages(service, full=False))
    done(run("send", QUEUE, "--body", "x" * 100_000, "--durable"))
    assert lines(run("queue", "show", QUEUE, "--json"))[0]["messages"] == 1


async def _limit_pages(service: ServiceThread, *, full: bool) -> None:
    """Make SQLite believe that the disk is full, or that there is room again."""
    pages = 1 if full else 1_000_000
    writer = service.service.manager.store._writer
    await writer.call(lambda connection: connection.execute(f"PRAGMA max_page_count = {pages}").fetchall())


EVERY_COMMAND = [
    ("queue", "create", QUEUE),
    ("queue", "set", QUEUE, "--label", "x"),
    ("queue", "list"),
    ("queue", "show", QUEUE),
    ("queue", "delete", QUEUE),
    ("queue", "purge", QUEUE),
    ("queue", "pause", QUEUE),
    ("queue", "resume", QUEUE),
    ("send", QUEUE, "--body", "x"),
    ("receive", QUEUE),
    ("peek", QUEUE),
    ("move", QUEUE, "1", QUEUE + ";x"),
    ("deadletter", "list"),
    ("deadletter", "explain", "1"),
    ("deadletter", "replay", "1"),
    ("why", QUEUE),
    ("history", "tail"),
    ("history", "export", "-"),
    ("token", "add", "x", "--right", "send"),
    ("token", "list"),
    ("token", "remove", "x"),
    ("status",),
    ("backup",),
    ("compact",),
    ("offline",),
    ("online",),
    ("srmp", "redirect", "list"),
    ("srmp", "redirect", "add", "exception", "http://paris/*"),
    ("srmp", "redirect", "set", "default-receipts", "http://paris/"),
    ("srmp", "redirect", "remove", "inbound", "http://paris/*"),
    ("srmp", "reset", QUEUE),
    ("srmp", "reset", QUEUE, "--yes"),
]


@pytest.mark.parametrize("command", EVERY_COMMAND, ids=" ".join)
def test_every_command_fails_in_one_line(
    service: ServiceThread, tmp_path: Path, command: tuple[str, ...]
) -> None:
    runner = CliRunner()
    assert "lanner serve" in failed(runner.invoke(app, [*command, "--data", str(tmp_path / "none")]))
    wrong = ["--api", f"http://127.0.0.1:{service.port}", "--token", "wrong"]
    assert "does not know this token" in failed(runner.invoke(app, [*command, *wrong]))
    names = [argument for argument in command if argument.startswith(QUEUE)]
    if names and command[:2] != ("queue", "create"):
        result = runner.invoke(app, [*command, "--data", str(service.data)])
        assert "there is no queue" in failed(result)
