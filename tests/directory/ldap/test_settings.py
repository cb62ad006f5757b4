"""Settings and URLs of LDAP directories."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lanner.directory.ldap.errors import InvalidLdapSettingsError
from lanner.directory.ldap.settings import LdapServer, LdapSettings, parse_url

LOGIN = {"user": "u@d", "password_file": "p"}


@pytest.mark.parametrize(
    ("url", "servers", "base"),
    [
        ("ldaps://dc1", [("dc1", 636)], ""),
        ("LDAPS://dc1,dc2:6636/", [("dc1", 6636), ("dc2", 6636)], ""),
        ("ldaps://dc1:1,dc2:2/?DC=a,DC=b", [("dc1", 1), ("dc2", 2)], "DC=a,DC=b"),
        ("ldaps://[::1]:7,10.0.0.1/DC=a%20b", [("::1", 7), ("10.0.0.1", 636)], "DC=a b"),
    ],
)
def test_urls(url: str, servers: list[tuple[str, int]], base: str) -> None:
    found = parse_url(url, **LOGIN)
    assert found.listed == tuple(LdapServer(*one) for one in servers)
    assert found.base == base


def test_plain_ports() -> None:
    assert parse_url("ldap://dc1", start_tls=True, **LOGIN).listed == (LdapServer("dc1", 389),)
    found = parse_url("ldap://dc1", gssapi=True)
    assert (found.listed, found.plain) == ((LdapServer("dc1", 389),), True)
    assert str(LdapServer("::1", 389)) == "[::1]:389"


@pytest.mark.parametrize(
    ("url", "others", "words"),
    [
        ("http://dc1", LOGIN, "no LDAP URL"),
        ("dc1", LOGIN, "no LDAP URL"),
        ("ldaps://", LOGIN, "no LDAP server is named"),
        ("ldaps://a b", LOGIN, "'a b' is no LDAP server"),
        ("ldaps://dc1:0", LOGIN, "no LDAP server"),
        ("ldaps://dc1:99999", LOGIN, "no LDAP server"),
        ("ldap://dc1", LOGIN, "never sent without TLS"),
        ("ldaps://dc1", {}, "nobody to log in as"),
        ("ldaps://dc1", {"user": "u"}, "nobody to log in as"),
        ("ldaps://dc1", {"gssapi": True, **LOGIN}, "ticket says who we are"),
        ("ldaps://dc1", {"page_size": 0, **LOGIN}, "1 to 1000"),
        ("ldaps://dc1", {"connect_seconds": 0.0, **LOGIN}, "above zero"),
    ],
)
def test_what_would_not_work_or_not_be_safe(url: str, others: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidLdapSettingsError, match=words):
        parse_url(url, **others)


def test_plain_and_start_tls_exclude_each_other() -> None:
    with pytest.raises(InvalidLdapSettingsError, match="exclude"):
        LdapSettings(servers=("a",), plain=True, start_tls=True, gssapi=True).check()


def test_the_password_is_the_file_without_its_line_end(tmp_path: Path) -> None:
    file = tmp_path / "password"
    settings = LdapSettings(servers=("a",), user="u", password_file=str(file))
    with pytest.raises(InvalidLdapSettingsError, match="No such file"):
        settings.password()
    file.write_bytes(b" pass w\xc3\xb6rd \r\n")
    assert settings.password() == " pass wörd ".encode()
    for content, words in ((b"\n", "empty"), (b"x" * 5000, "too long")):
        file.write_bytes(content)
        with pytest.raises(InvalidLdapSettingsError, match=words):
            settings.password()
