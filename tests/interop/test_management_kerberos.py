"""``lanner mgmt --kerberos`` in a domain: both commands as processes, tickets of a real Kerberos server."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.interop.samba import PASSWORD, REALM, DomainController

from lanner.protocols.rpc.kerberos import has_kerberos

pytestmark = pytest.mark.interop

ADMINISTRATOR, OTHER = f"administrator@{REALM}", f"bob@{REALM}"
NAME = "lanner.msmq.test"
PATIENCE = 60.0
AN_HOUR, A_DAY = 3_600, 86_400
CLOCK_SHIFT = Path(__file__).parent / "clock_shift.c"


class Served:
    """A manager that offers Kerberos, and a user's commands."""

    def __init__(self, domain: DomainController, folder: Path) -> None:
        self._folder = folder
        self._log = folder / "log"
        self.domain = domain
        self.environment = {**os.environ, **domain.kerberos}
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, keytab: Path) -> None:
        (self._folder / "lanner.toml").write_text(
            "[api]\nport = 0\n[srmp]\nenabled = false\n[network]\nrpc_port = 0\n"
            "[management]\nenabled = true\nendpoint_mapper = false\nkerberos = true\n"
            f'administrators = ["{ADMINISTRATOR}"]\n'
        )
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "lanner", "serve"],
                cwd=self._folder,
                env={**self.environment, "KRB5_KTNAME": str(keytab)},
                stdout=subprocess.PIPE,
                stderr=log,
            )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            found = re.search(rb"Management on 127\.0\.0\.1:(\d+)", line)
            if found:
                self.port = int(found[1])
                return
        pytest.fail(f"the manager does not start: {self.log}")

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.communicate(timeout=PATIENCE)

    @property
    def log(self) -> str:
        return self._log.read_text()

    def run(
        self, *arguments: str, given: str = "", target: str = NAME, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """``lanner mgmt 127.0.0.1 ... --kerberos``."""
        command = ["mgmt", "127.0.0.1", *(arguments or ("get", "machine", "connected"))]
        options = ["--port", str(self.port), "--kerberos", "--target", target]
        return subprocess.run(
            [sys.executable, "-m", "lanner", *command, *options],
            env={**self.environment, **environment},
            input=given,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    def refused(self, *arguments: str, given: str = "", target: str = NAME, **environment: str) -> str:
        """What a command says that fails: one line."""
        done = self.run(*arguments, given=given, target=target, **environment)
        assert done.returncode == 1, done.stdout
        assert done.stdout == ""
        [line] = done.stderr.splitlines()
        assert line.startswith("lanner: "), line
        return line

    def tickets(self, name: str, *, of_service: bool) -> str:
        """A cache of the administrator's tickets, with or without one for the server; says where it is."""
        cache = str(self._folder / name)
        environment = {**self.environment, "KRB5CCNAME": cache}
        subprocess.run(
            ["kinit", ADMINISTRATOR], input=f"{PASSWORD}\n", env=environment, text=True, check=True,
            capture_output=True,
        )  # fmt: skip
        if of_service:
            assert self.run(KRB5CCNAME=cache).returncode == 0
        return cache


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    if not has_kerberos():
        pytest.skip("gssapi and krb5 are not installed")
    with DomainController(tmp_path_factory.mktemp("domain")) as controller:
        keytab = controller.export_keytab(NAME)
        controller.add_user("bob", PASSWORD)
        controller.log_in()
        running = Served(controller, tmp_path_factory.mktemp("manager"))
        try:
            running.start(keytab)
            yield running
        finally:
            running.stop()
    assert "Traceback" not in running.log


@pytest.fixture(scope="module")
def shifted(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What to load into a program to set its clock."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    library = tmp_path_factory.mktemp("clock") / "clock_shift.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, CLOCK_SHIFT, "-ldl"], check=True)
    return str(library)


LOGGED_ON = ("get", "machine", "connected", "--user", ADMINISTRATOR, "--password-stdin")


def test_with_the_ticket_that_is_there(served: Served) -> None:
    done = served.run()
    assert (done.stdout, done.stderr) == ("connected  CONNECTED\n", "")
    assert served.run(target=f"host/{NAME}").stdout == "connected  CONNECTED\n"


def test_with_a_password(served: Served) -> None:
    done = served.run(*LOGGED_ON, given=f"{PASSWORD}\n", KRB5CCNAME="/nonexistent/cache")
    assert (done.stdout, done.stderr) == ("connected  CONNECTED\n", "")


def test_every_command(served: Served) -> None:
    assert json.loads(served.run("get", "machine", "--json").stdout)["connected"] == "CONNECTED"
    assert served.run("action", "machine", "disconnect").stdout == "DISCONNECT of 127.0.0.1 is done\n"
    assert served.run().stdout == "connected  DISCONNECTED\n"
    assert served.run("action", "machine", "connect").returncode == 0
    assert json.loads(served.run("watch", "--rounds", "1", "--json").stdout)["connected"] == "CONNECTED"
    assert rf"DISCONNECT of the machine by {REALM}\administrator from 127.0.0.1:" in served.log


def test_a_ticket_of_nobody_who_administers(served: Served) -> None:
    said = served.refused("get", "machine", "--user", OTHER, "--password-stdin", given=f"{PASSWORD}\n")
    assert said == "lanner: access denied (is it the right user, and an administrator there?)"


def test_no_ticket(served: Served, tmp_path: Path) -> None:
    said = served.refused(KRB5CCNAME=str(tmp_path / "none"))
    assert said.startswith("lanner: there is no Kerberos ticket: ")
    assert "kinit" in said
    assert "there is no Kerberos ticket" in served.refused("get", "machine", "--user", OTHER)


def test_a_wrong_realm(served: Served) -> None:
    user = ("get", "machine", "--password-stdin", "--user", "administrator@OTHER.TEST")
    said = served.refused(*user, given=f"{PASSWORD}\n")
    assert said.startswith("lanner: Kerberos does not know the realm: ")
    assert "OTHER.TEST" in said


def test_a_wrong_user_and_a_wrong_password(served: Served) -> None:
    unknown = ("get", "machine", "--password-stdin", "--user", f"nobody@{REALM}")
    assert "Kerberos does not know the user: " in served.refused(*unknown, given=f"{PASSWORD}\n")
    assert "Kerberos does not take the password: " in served.refused(*LOGGED_ON, given="guessed\n")


def test_a_server_by_another_name(served: Served) -> None:
    said = served.refused(target="nowhere.msmq.test")
    assert said.startswith("lanner: Kerberos does not know the server by this name: ")
    assert "--target" in said


def test_no_kerberos_server(served: Served, tmp_path: Path) -> None:
    config = tmp_path / "krb5.conf"
    text = Path(served.domain.kerberos["KRB5_CONFIG"]).read_text()
    # An address of loopback that nobody listens on.
    config.write_text(text.replace(f"kdc = {served.domain.address}", "kdc = 127.0.0.254"))
    cache = served.tickets("without", of_service=False)
    said = served.refused(KRB5_CONFIG=str(config), KRB5CCNAME=cache)
    assert said.startswith("lanner: no Kerberos server can be reached: ")


def test_a_clock_that_is_wrong_for_the_kerberos_server(served: Served, shifted: str) -> None:
    cache = served.tickets("skewed", of_service=False)
    said = served.refused(KRB5CCNAME=cache, LD_PRELOAD=shifted, CLOCK_SHIFT=str(AN_HOUR))
    assert said.startswith("lanner: the clocks differ by more than Kerberos allows: ")
    said = served.refused(KRB5CCNAME=cache, LD_PRELOAD=shifted, CLOCK_SHIFT=str(A_DAY))
    assert said.startswith("lanner: the Kerberos ticket has expired: ")


def test_a_clock_that_is_wrong_for_the_manager(served: Served, shifted: str) -> None:
    cache = served.tickets("complete", of_service=True)
    said = served.refused(KRB5CCNAME=cache, LD_PRELOAD=shifted, CLOCK_SHIFT=str(AN_HOUR))
    assert said.startswith("lanner: the server refuses the association: the log-on failed (its log says why")
    assert "the clocks differ by more than Kerberos allows" in served.log


def test_a_keytab_that_is_missing(served: Served, tmp_path: Path) -> None:
    (tmp_path / "lanner.toml").write_text(
        "[api]\nport = 0\n[srmp]\nenabled = false\n"
        "[management]\nenabled = true\nendpoint_mapper = false\nkerberos = true\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "lanner", "serve"],
        cwd=tmp_path,
        env={**served.environment, "KRB5_KTNAME": str(tmp_path / "none")},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 1
    assert "Kerberos has no keytab for this machine" in done.stderr
    assert "KRB5_KTNAME" in done.stderr
    assert "Traceback" not in done.stderr
