"""``lanner srmp redirect`` and ``lanner srmp reset``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cli.test_commands import done, failed, lines
from tests.client.conftest import ServiceThread
from typer.testing import CliRunner, Result

from lanner.cli.app import app

FAR = "DIRECT=HTTP://127.0.0.1:9/msmq/private$/far"

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
        return CliRunner().invoke(app, ["srmp", *arguments, "--data", str(service.data)], input=stdin)

    return run_command


def words(result: Result) -> list[list[str]]:
    """The rows of a table, taken apart."""
    return [line.split() for line in done(result).splitlines() if "://" in line]


def test_redirections_of_every_kind_are_added_listed_and_removed(run: Run) -> None:
    assert done(run("redirect", "list")) == "nothing is redirected\n"
    done(run("redirect", "add", "inbound", "http://us/msmq/old", "http://us/msmq/new"))
    done(run("redirect", "add", "outbound", "http://paris/*", "http://proxy/"))
    done(run("redirect", "add", "outbound", "http://paris/msmq/a*", "http://other/", "--first"))
    done(run("redirect", "add", "receipts", "http://paris/*", "http://us:8080/receipts"))
    done(run("redirect", "add", "exception", "http://paris/msmq/b"))
    shown = words(run("redirect", "set", "default-receipts", "http://us/receipts"))
    expected = [
        ["inbound", "http://us/msmq/old", "http://us/msmq/new"],
        ["outbound", "http://paris/msmq/a*", "http://other/"],
        ["outbound", "http://paris/*", "http://proxy/"],
        ["receipts", "http://paris/*", "http://us:8080/receipts"],
        ["exception", "http://paris/msmq/b"],
        ["default-receipts", "http://us/receipts"],
    ]
    assert shown == words(run("redirect", "list")) == expected
    for row in expected:
        done(run("redirect", "remove", row[0], *([row[1]] if row[0] != "default-receipts" else [])))
    assert done(run("redirect", "list")) == "nothing is redirected\n"


def test_all_are_replaced_by_what_was_listed_before(run: Run, tmp_path: Path) -> None:
    done(run("redirect", "add", "inbound", "http://us/msmq/old", "http://us/msmq/new"))
    kept = done(run("redirect", "list", "--json"))
    done(run("redirect", "add", "exception", "http://paris/*"))
    assert lines(run("redirect", "replace", "-", "--json", stdin=kept)) == [json.loads(kept)]
    (tmp_path / "none.json").write_text("{}")
    assert done(run("redirect", "replace", str(tmp_path / "none.json"))) == "nothing is redirected\n"
    assert "unknown" in failed(run("redirect", "replace", "-", stdin='{"inbond": []}'))
    assert "cannot read" in failed(run("redirect", "replace", str(tmp_path / "nowhere.json")))


def test_redirections_are_there_after_a_restart(run: Run, service: ServiceThread) -> None:
    done(run("redirect", "add", "exception", "http://paris/*"))
    service.stop()
    service.start()
    assert words(run("redirect", "list")) == [["exception", "http://paris/*"]]


def test_a_wrong_redirection_is_refused_in_one_line(run: Run) -> None:
    assert "is not a URL" in failed(run("redirect", "add", "outbound", "paris", "http://proxy/"))
    assert "to which" in failed(run("redirect", "add", "outbound", "http://paris/"))
    assert "nothing is redirected" in failed(run("redirect", "remove", "inbound", "http://paris/"))
    assert run("redirect", "add", "sideways", "http://a/", "http://b/").exit_code == 2


def test_a_reset_is_confirmed(run: Run, service: ServiceThread) -> None:
    sending = ["send", FAR, "--body", "x", "--transactional", "--data", str(service.data)]
    for _ in range(2):
        done(CliRunner().invoke(app, sending))
    for answer in ("n\n", ""):
        refused = run("reset", FAR, stdin=answer)
        assert refused.exit_code == 1
        assert "2 messages wait" in refused.stderr
        assert "second time" in refused.stderr
        assert refused.stderr.splitlines()[-1].endswith("nothing was reset (say --yes if it is meant)")
    assert done(run("reset", FAR, stdin="y\n")).endswith("a new stream begins with 2 messages\n")
    assert lines(run("reset", FAR, "--yes", "--json")) == [{"queue": FAR, "messages": 2}]


def test_a_reset_of_what_is_no_stream(run: Run, service: ServiceThread) -> None:
    done(CliRunner().invoke(app, ["send", FAR, "--body", "x", "--data", str(service.data)]))
    assert "nothing was reset" in done(run("reset", FAR, "--yes"))
    assert "no outgoing queue over HTTP" in failed(run("reset", r".\system$;deadletter", "--yes"))


def test_the_help_of_a_reset_warns() -> None:
    text = " ".join(done(CliRunner().invoke(app, ["srmp", "reset", "--help"])).split())
    assert "WARNING" in text
    assert "half an hour" in text
