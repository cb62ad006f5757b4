"""Clients of a Samba domain controller: ours, and ldap3, which nobody here wrote."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import pytest
from tests.interop.ldap_enterprise import TEXT, build
from tests.interop.samba import DOMAIN, PASSWORD, USER, DomainController

from lanner.directory.ldap.directory import LdapDirectory
from lanner.directory.ldap.settings import parse_url
from lanner.directory.local_file import load

__all__ = ["connect", "filled", "independent"]

EXTRA_COMPUTERS = ("NEW-1", "NEW-2", "BULK-1")


def connect(running: DomainController, url: str = "", **others: Any) -> LdapDirectory:
    options: dict[str, Any] = {
        "user": USER,
        "password_file": str(running.password_file),
        "ca_file": str(running.ca_file),
        "connect_seconds": 5.0,
    } | others
    return LdapDirectory(parse_url(url or f"ldaps://{running.address}", **options))


def independent(running: DomainController) -> Any:
    ldap3 = pytest.importorskip("ldap3", reason="the package ldap3 is missing")
    tls = ldap3.Tls(
        validate=ssl.CERT_REQUIRED, ca_certs_file=str(running.ca_file), valid_names=["dc1.msmq.test"]
    )
    server = ldap3.Server(running.address, port=636, use_ssl=True, tls=tls, get_info=ldap3.NONE)
    return ldap3.Connection(server, USER, PASSWORD, auto_bind=True)


def filled(running: DomainController) -> None:
    """Put the enterprise of ``ldap_enterprise`` into a new domain."""
    with independent(running) as client:
        for name in (*(machine.name for machine in load(TEXT.encode()).map.machines), *EXTRA_COMPUTERS):
            attributes = {"sAMAccountName": f"{name}$", "userAccountControl": 4096}
            if name == "LON-1":
                attributes["dNSHostName"] = "lon-1.msmq.test"
                attributes["operatingSystemVersion"] = "12 (bookworm)"
            done = client.add(f"CN={name},CN=Computers,{DOMAIN}", ["computer"], attributes)
            assert done, client.result
    asyncio.run(_fill(running))


async def _fill(running: DomainController) -> None:
    opened = connect(running)
    await build(opened, load(TEXT.encode()).map)
    await opened.close()
