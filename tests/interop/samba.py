"""A Samba domain controller of its own: provisioned into a folder, on a loopback address of its own.

Samba's LDAP ports are fixed, so it is the address that differs. Nothing outside of the folder is changed.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

__all__ = ["DOMAIN", "PASSWORD", "REALM", "USER", "DomainController", "authority"]

REALM = "MSMQ.TEST"
DOMAIN = "DC=msmq,DC=test"
USER = "administrator@msmq.test"
PASSWORD = "Passw0rd!23"

PATIENCE = 60.0
_NEEDED = (
    ("sbin/samba", "samba"),
    ("bin/samba-tool", "samba-common-bin"),
    ("share/samba/setup/provision.ldif", "samba-ad-provision"),
    ("lib/python3/dist-packages/samba/__init__.py", "python3-samba"),
    ("lib/*/samba/ldb/acl.so", "samba-dsdb-modules"),
    ("lib/*/samba/vfs/xattr_tdb.so", "samba-vfs-modules"),
)


class DomainController:
    """One that runs while the block does."""

    def __init__(self, folder: Path) -> None:
        for pattern, package in _NEEDED:
            if not any(Path("/usr").glob(pattern)):
                pytest.skip(f"/usr/{pattern} is missing (package {package})")
        if os.geteuid() != 0:
            pytest.skip("only root may listen on LDAP's ports")
        pid = os.getpid()
        self.address = f"127.{100 + pid // 250 % 100}.{1 + pid % 250}.1"
        self.folder = folder
        self.ca_file = folder / "ca.pem"
        self.password_file = folder / "password"
        self.password_file.write_text(PASSWORD + "\n")
        self.kerberos = {"KRB5_CONFIG": str(folder / "krb5.conf"), "KRB5CCNAME": str(folder / "tickets")}
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> DomainController:
        self._certify()
        self._provision()
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        with (self.folder / "samba.log").open("ab") as log:
            self._process = subprocess.Popen(
                ["/usr/sbin/samba", "-s", self._config, "-i", "-M", "single", "--debug-stdout"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        end = time.monotonic() + PATIENCE
        while True:
            try:
                socket.create_connection((self.address, 636), 1).close()
                return
            except OSError:
                if time.monotonic() > end or self._process.poll() is not None:
                    self.stop()
                    pytest.fail("Samba does not start: " + (self.folder / "samba.log").read_text()[-2000:])
                time.sleep(0.1)

    def stop(self) -> None:
        """End it, and what it started: they are a group of their own."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGTERM)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
            self._process = None

    def log_in(self) -> None:
        """Get a Kerberos ticket, for whoever has ``kerberos`` in the environment."""
        if shutil.which("kinit") is None:
            pytest.skip("the program kinit is missing (package krb5-user)")
        (self.folder / "krb5.conf").write_text(
            f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n rdns = false\n"
            " dns_canonicalize_hostname = false\n"
            f"[realms]\n {REALM} = {{\n  kdc = {self.address}\n }}\n"
            f"[domain_realm]\n {self.address} = {REALM}\n"
        )
        environment = {**os.environ, **self.kerberos}
        _run("kinit", f"administrator@{REALM}", stdin=PASSWORD + "\n", environment=environment)

    def export_keytab(self, name: str) -> Path:
        """Make a service ``host/name`` and write down its keys, as a server needs them."""
        keytab = self.folder / "keytab"
        self.add_user("service", PASSWORD)
        self.tool("spn", "add", f"host/{name}", "service")
        self.tool("domain", "exportkeytab", str(keytab), f"--principal=host/{name}")
        return keytab

    def tool(self, *arguments: str) -> None:
        """Run samba-tool on the domain."""
        _run("samba-tool", *arguments, "-s", self._config)

    def add_user(self, name: str, password: str) -> None:
        """Make an ordinary user."""
        self.tool("user", "create", name, password)

    @property
    def _config(self) -> str:
        return str(self.folder / "dc" / "etc" / "smb.conf")

    def _certify(self) -> None:
        certificate, key = authority("A test's authority")
        self.ca_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        own = ec.generate_private_key(ec.SECP256R1())
        names = [
            x509.DNSName("dc1.msmq.test"),
            x509.IPAddress(ipaddress.ip_address(self.address)),
        ]
        shown = _certificate("dc1.msmq.test", certificate.subject, own.public_key()).add_extension(
            x509.SubjectAlternativeName(names), critical=False
        )
        signed = shown.sign(key, hashes.SHA256())
        (self.folder / "cert.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        (self.folder / "key.pem").touch(0o600)
        (self.folder / "key.pem").write_bytes(
            own.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.TraditionalOpenSSL,
                serialization.NoEncryption(),
            )
        )

    def _provision(self) -> None:
        target = self.folder / "dc"
        for name in ("etc", "run"):
            (target / name).mkdir(parents=True)
        Path(self._config).touch()  # so that the machine's own is not looked at
        options = {
            "interfaces": f"{self.address}/8",
            "bind interfaces only": "yes",
            "posix:eadb": f"{target}/private/eadb.tdb",
            "vfs objects": "dfs_samba4 acl_xattr xattr_tdb",
            "server services": "ldap,cldap,kdc,rpc",
            "dcerpc endpoint servers": "epmapper,netlogon,samr,lsarpc,drsuapi,unixinfo,backupkey,dssetup",
            "tls keyfile": f"{self.folder}/key.pem",
            "tls certfile": f"{self.folder}/cert.pem",
            "tls cafile": str(self.ca_file),
            "pid directory": f"{target}/run",
            "ncalrpc dir": f"{target}/ncalrpc",
            "ntp signd socket directory": f"{target}/ntp",
            "winbindd socket directory": f"{target}/winbindd",
            "log file": f"{target}/log.%m",
            # Kerberos inside of TLS, which Active Directory allows by itself.
            "ldap server require strong auth": "allow_sasl_over_tls",
        }
        _run(
            *("samba-tool", "domain", "provision", "-s", self._config, f"--targetdir={target}"),
            *(f"--realm={REALM}", "--domain=MSMQTEST", "--server-role=dc", "--host-name=dc1"),
            *(f"--host-ip={self.address}", f"--adminpass={PASSWORD}", "--dns-backend=NONE"),
            *("--base-schema=2012_R2", *(f"--option={name}={value}" for name, value in options.items())),
        )
        # There is no name for the address: Kerberos knows the server by the address, then.
        self.tool("spn", "add", f"ldap/{self.address}", "DC1$")


def authority(name: str) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """A certificate authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    shown = _certificate(name, subject, key.public_key())
    shown = shown.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return shown.sign(key, hashes.SHA256()), key


def _certificate(name: str, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=7))
    )


def _run(*command: str, stdin: str = "", environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        command, input=stdin, text=True, capture_output=True, timeout=300, check=False, env=environment
    )
    assert done.returncode == 0, f"{command[0]} {command[1]}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
