"""``lanner srmp lint``: what it prints of captured requests, and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.test_commands import done, failed
from typer.testing import CliRunner, Result

from lanner.cli import input as cli_input
from lanner.cli.app import app

VECTORS = Path(__file__).parent.parent / "vectors" / "srmp"
STREAM = VECTORS / "4.4-stream-1.http"


def lint(*arguments: str, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(app, ["srmp", "lint", *arguments], input=stdin)


@pytest.mark.parametrize("vector", sorted(VECTORS.glob("*.http")), ids=lambda path: path.stem)
def test_every_sample_is_shown_and_judged_alike_for_people_and_programs(vector: Path) -> None:
    shown, told = lint(str(vector)), lint(str(vector), "--json")
    answer = json.loads(told.stdout)
    assert shown.exit_code == told.exit_code == (0 if answer["acceptable"] else 1)
    for fault in answer["faults"]:
        assert f"MC-MQSRM {fault['section']}" in shown.stdout
        assert fault["message"] in shown.stdout
    for field in answer["fields"]:
        assert field["name"] in shown.stdout


def test_values_have_their_meaning_beside_them() -> None:
    shown = done(lint(str(STREAM)))
    [sent] = [line for line in shown.splitlines() if "properties/sentAt" in line]
    assert sent.split()[1:] == ["20070619T165959", "2007-06-19", "16:59:59", "UTC"]
    [named] = [line for line in shown.splitlines() if "MC-MQSRM 2.2.5.2.1" in line]
    assert "accepted" in named
    assert shown.endswith("a receiver takes it all the same\n")


def test_a_fault_names_its_section_and_the_exit_code_says_refused() -> None:
    broken = STREAM.read_bytes().replace(b"<current>1<", b"<current>x<")
    shown = lint("-", stdin=broken)
    assert shown.exit_code == 1
    [line] = [line for line in shown.stdout.splitlines() if "refused" in line]
    assert "MC-MQSRM 2.2.5.3.2" in line
    assert "current" in line
    assert shown.stdout.endswith("a receiver refuses it\n")
    told = json.loads(lint("-", "--json", stdin=broken).stdout)
    assert told["acceptable"] is False
    assert [fault["element"] for fault in told["faults"] if not fault["is_accepted"]] == ["current"]


def test_a_body_and_a_bare_envelope_can_be_given() -> None:
    body = STREAM.read_bytes().partition(b"\r\n\r\n")[2]
    assert done(lint("-", stdin=body)).startswith("a MIME body of ")
    envelope = body[body.index(b"<se:Envelope") : body.index(b"</se:Envelope>") + len(b"</se:Envelope>")]
    assert done(lint("-", stdin=envelope)).startswith("an envelope of ")


def test_nothing_is_refused_too() -> None:
    shown = lint("-", stdin=b"")
    assert shown.exit_code == 1
    assert "it says nothing that can be read" in shown.stdout


def test_a_capture_with_very_much_in_it_is_cut_short_for_people() -> None:
    request = b"POST / HTTP/1.1\r\n" + b"X: y\r\n" * 100_000 + b"\r\n"
    shown = lint("-", stdin=request)
    assert "and 99,502 more fields; --json prints them all" in shown.stdout
    assert len(shown.stdout.splitlines()) < 600
    assert len(json.loads(lint("-", "--json", stdin=request).stdout)["fields"]) == 100_002


def test_a_capture_cannot_talk_to_the_terminal() -> None:
    request = b"POST /\x1b[2J HTTP/1.1\r\nX: \x1b]0;title\x07\r\n\r\n<a/>"
    shown = lint("-", stdin=request)
    assert "\x1b" not in shown.stdout
    assert "\x07" not in shown.stdout


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "cannot read" in failed(lint(str(tmp_path / "none")))
    assert "cannot read" in failed(lint(str(tmp_path)))
    monkeypatch.setattr(cli_input, "MAX_INPUT_BYTES", 10)
    (tmp_path / "large").write_bytes(bytes(11))
    assert "larger than 10 bytes" in failed(lint(str(tmp_path / "large")))
    assert "standard input is larger than 10 bytes" in failed(lint("-", stdin=bytes(11)))


def test_the_command_line_loads_nothing_heavy_before_it_is_needed() -> None:
    heavy = ("lanner.protocols", "lanner.client", "lanner.manager", "aiohttp", "cryptography", "ssl")
    script = f"import sys, lanner.cli.app; print([name for name in {heavy} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert loaded.stdout == "[]\n"
