"""Redirections: which URL is meant when another is said (MC-MQSRM 3.1.1.1.7 to 3.1.1.1.10)."""

from __future__ import annotations

import pytest

from lanner.model.errors import InvalidPropertyError
from lanner.protocols.srmp.redirection import MAX_REDIRECTIONS, Redirection, Redirections, matches

QUEUE = "http://host/msmq/private$/q"


@pytest.mark.parametrize(
    ("pattern", "url", "expected"),
    [
        (QUEUE, QUEUE, True),
        (QUEUE, "HTTP://Host/MSMQ/Private$/Q", True),
        (QUEUE, QUEUE + "2", False),
        (QUEUE + "*", QUEUE + "2", True),
        (QUEUE + "*", QUEUE, True),
        ("http://host/*", QUEUE, True),
        ("http://host/*", "http://host2/msmq/q", False),
        ("http://host*", "http://host2/msmq/q", True),
        ("http://*", QUEUE, True),
        ("http://*", "https://host/msmq/q", False),
        ("http://host:80/*", QUEUE, True),
        ("http://host/*", "http://host:80/msmq/q", True),
        ("https://host/*", "https://host:443/msmq/q", True),
        ("http://host/*", "http://host:8080/msmq/q", False),
        ("http://host/*", "http://host:443/msmq/q", False),
        ("http://ho*st/x", "http://ho*st/x", True),
        ("http://ho*st/x", "http://hoost/x", False),
    ],
)
def test_matching(pattern: str, url: str, expected: bool) -> None:
    assert matches(pattern, url) is expected


def test_the_first_that_matches_counts() -> None:
    redirections = Redirections(
        inbound=(
            Redirection(from_=QUEUE, to="http://host/msmq/a"),
            Redirection(from_="http://host/*", to="http://host/msmq/b"),
        )
    )
    assert redirections.inbound_target(QUEUE) == "http://host/msmq/a"
    assert redirections.inbound_target("http://host/msmq/x") == "http://host/msmq/b"
    assert redirections.inbound_target("http://other/msmq/x") == "http://other/msmq/x"


def test_outbound_with_exceptions() -> None:
    redirections = Redirections(
        outbound=(Redirection(from_="http://*", to="http://gate/"),),
        outbound_exceptions=("http://near/*", "http://far/msmq/one"),
    )
    redirections.check()
    assert redirections.outbound_host("http://far/msmq/two") == "http://gate/"
    assert redirections.outbound_host("http://far/msmq/one") == "http://far/msmq/one"
    assert redirections.outbound_host("http://NEAR/msmq/x") == "http://NEAR/msmq/x"
    assert redirections.outbound_host("https://far/msmq/two") == "https://far/msmq/two"


def test_where_receipts_go() -> None:
    own = "http://here/MSMQ/PRIVATE$/order_queue$"
    assert Redirections().receipts_url(QUEUE, own) == own
    default = Redirections(default_receipts="http://gate/msmq/receipts")
    assert default.receipts_url(QUEUE, own) == "http://gate/msmq/receipts"
    both = Redirections(
        receipts=(Redirection(from_="http://host/*", to="http://side/msmq/receipts"),),
        default_receipts="http://gate/msmq/receipts",
    )
    assert both.receipts_url(QUEUE, own) == "http://side/msmq/receipts"
    assert both.receipts_url("http://other/msmq/q", own) == "http://gate/msmq/receipts"


@pytest.mark.parametrize(
    "to", ["", "ftp://host/", "http://", "host", "http://host/a b", "http://h/" + "x" * 3000]
)
def test_what_is_no_url_is_refused(to: str) -> None:
    with pytest.raises(InvalidPropertyError):
        Redirections(outbound=(Redirection(from_="http://host/*", to=to),)).check()
    with pytest.raises(InvalidPropertyError):
        Redirections(receipts=(Redirection(from_="http://host/*", to=to),)).check()


@pytest.mark.parametrize("from_", ["", "*", "ftp://*", "host/*", "http:/*", "http://a b*"])
def test_what_is_no_pattern_is_refused(from_: str) -> None:
    with pytest.raises(InvalidPropertyError):
        Redirections(outbound=(Redirection(from_=from_, to="http://host/"),)).check()
    with pytest.raises(InvalidPropertyError):
        Redirections(outbound_exceptions=(from_,)).check()


@pytest.mark.parametrize("to", ["http://host/", "http://host/elsewhere/q", "http://host/msmq/"])
def test_an_inbound_redirection_leads_to_a_queue(to: str) -> None:
    with pytest.raises(InvalidPropertyError):
        Redirections(inbound=(Redirection(from_=QUEUE, to=to),)).check()


def test_too_many() -> None:
    entry = Redirection(from_=QUEUE, to=QUEUE)
    Redirections(outbound=(entry,) * MAX_REDIRECTIONS).check()
    with pytest.raises(InvalidPropertyError):
        Redirections(outbound=(entry,) * (MAX_REDIRECTIONS + 1)).check()
    with pytest.raises(InvalidPropertyError):
        Redirections(outbound_exceptions=(QUEUE,) * (MAX_REDIRECTIONS + 1)).check()
