"""Redirections: what matches, what is refused, adding and removing."""

from __future__ import annotations

import pytest

from lanner.model.errors import InvalidPropertyError
from lanner.protocols.srmp.redirection import (
    MAX_REDIRECTIONS,
    Redirection,
    RedirectionKind,
    Redirections,
    matches,
)

INBOUND, OUTBOUND, RECEIPTS, EXCEPTION, DEFAULT_RECEIPTS = RedirectionKind


def entries(*pairs: tuple[str, str]) -> tuple[Redirection, ...]:
    return tuple(Redirection(from_=from_, to=to) for from_, to in pairs)


@pytest.mark.parametrize(
    ("pattern", "url", "is_meant"),
    [
        ("http://paris/msmq/q", "HTTP://PARIS/MSMQ/Q", True),
        ("http://paris/msmq/q", "http://paris:80/msmq/q", True),
        ("https://paris:443/msmq/q", "https://paris/msmq/q", True),
        ("http://paris/msmq/q", "http://paris/msmq/q2", False),
        ("http://paris/msmq/q*", "http://paris/msmq/q2", True),
        ("http://paris/*", "http://paris:8080/msmq/q", False),
        ("http://paris/*", "https://paris/msmq/q", False),
    ],
)
def test_a_pattern_means_urls(pattern: str, url: str, is_meant: bool) -> None:
    assert matches(pattern, url) is is_meant


def test_the_first_that_matches_counts() -> None:
    both = entries(("http://paris/msmq/a*", "http://one/"), ("http://paris/*", "http://two/"))
    redirections = Redirections(inbound=both, outbound=both, receipts=both, default_receipts="http://else/")
    assert redirections.inbound_target("http://paris/msmq/abc") == "http://one/"
    assert redirections.outbound_host("http://paris/msmq/b") == "http://two/"
    assert redirections.outbound_host("http://rome/msmq/b") == "http://rome/msmq/b"
    assert redirections.receipts_url("http://rome/msmq/b", "http://own/") == "http://else/"
    assert Redirections().receipts_url("http://rome/msmq/b", "http://own/") == "http://own/"


def test_an_exception_is_reached_directly() -> None:
    redirections = Redirections(
        outbound=entries(("http://paris/*", "http://proxy/")), outbound_exceptions=("http://paris/msmq/a*",)
    )
    assert redirections.outbound_host("http://paris/msmq/abc") == "http://paris/msmq/abc"
    assert redirections.outbound_host("http://paris/msmq/b") == "http://proxy/"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "*",
        "paris",
        "ftp://paris/",
        "http://",
        "http:///msmq/q",
        "http://paris/a b",
        "http://paris:port/",
        "http://paris:99999/",
        "http://paris:0/",
        "http://:80/",
        "http://[::1/",
        "http://user:secret@paris/",
        "http://paris/" + "x" * 2_048,
    ],
)
def test_what_no_connection_could_be_made_to_is_refused(url: str) -> None:
    right = "http://paris/msmq/q"
    for redirections in (
        Redirections(inbound=entries((url, right))),
        Redirections(outbound=entries((right, url))),
        Redirections(receipts=entries((right, url))),
        Redirections(outbound_exceptions=(url,)),
    ):
        with pytest.raises(InvalidPropertyError, match="is not a URL"):
            redirections.check()
    if url:
        with pytest.raises(InvalidPropertyError, match="is not a URL"):
            Redirections(default_receipts=url).check()


def test_there_is_a_limit_to_each_list() -> None:
    url = "http://paris/msmq/q"
    Redirections(outbound_exceptions=(url,) * MAX_REDIRECTIONS).check()
    for redirections in (
        Redirections(outbound_exceptions=(url,) * (MAX_REDIRECTIONS + 1)),
        Redirections(inbound=entries((url, url)) * (MAX_REDIRECTIONS + 1)),
    ):
        with pytest.raises(InvalidPropertyError, match="more than 1,000"):
            redirections.check()


@pytest.mark.parametrize("kind", [INBOUND, OUTBOUND, RECEIPTS])
def test_one_is_added_behind_before_or_in_the_place_of_another(kind: RedirectionKind) -> None:
    redirections = Redirections()
    for from_, to in (("http://a/", "http://1/"), ("http://b/", "http://2/"), ("HTTP://A:80/", "http://3/")):
        redirections = redirections.adding(kind, from_, to)
    assert getattr(redirections, kind) == entries(("HTTP://A:80/", "http://3/"), ("http://b/", "http://2/"))
    redirections = redirections.adding(kind, "http://b/", "http://4/", is_first=True)
    assert getattr(redirections, kind) == entries(("http://b/", "http://4/"), ("HTTP://A:80/", "http://3/"))
    redirections = redirections.removing(kind, "http://a/").removing(kind, "http://B/")
    assert redirections == Redirections()
    with pytest.raises(InvalidPropertyError, match="nothing is redirected from http://a/"):
        redirections.removing(kind, "http://a/")


def test_exceptions_and_the_default_for_receipts() -> None:
    redirections = Redirections().adding(EXCEPTION, "http://a/*", "").adding(EXCEPTION, "http://A/*", "")
    assert redirections.outbound_exceptions == ("http://A/*",)
    redirections = redirections.adding(DEFAULT_RECEIPTS, "", "http://us/")
    assert redirections.default_receipts == "http://us/"
    assert redirections.removing(EXCEPTION, "http://a/*").removing(DEFAULT_RECEIPTS) == Redirections()
    with pytest.raises(InvalidPropertyError, match="nothing is redirected"):
        Redirections().removing(DEFAULT_RECEIPTS)


@pytest.mark.parametrize(
    ("kind", "from_", "to", "said"),
    [
        (INBOUND, "", "http://a/", "from which"),
        (OUTBOUND, "http://a/", "", "to which"),
        (EXCEPTION, "", "", "from which"),
        (EXCEPTION, "http://a/", "http://b/", "takes one URL"),
        (DEFAULT_RECEIPTS, "", "", "to which"),
        (DEFAULT_RECEIPTS, "http://a/", "http://b/", "takes one URL"),
    ],
)
def test_each_kind_takes_what_it_needs(kind: RedirectionKind, from_: str, to: str, said: str) -> None:
    with pytest.raises(InvalidPropertyError, match=said):
        Redirections().adding(kind, from_, to)
