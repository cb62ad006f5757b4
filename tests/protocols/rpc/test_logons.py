"""How often a log-on may fail."""

from __future__ import annotations

import logging
import tracemalloc

import pytest

from lanner.protocols.rpc.accounts import Accounts
from lanner.protocols.rpc.errors import SecurityError
from lanner.protocols.rpc.logons import LogonLimits, Logons, source_of


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def make(**limits: float) -> tuple[Logons, Clock]:
    clock = Clock()
    return Logons(Accounts(), clock, LogonLimits(**limits)), clock  # type: ignore[arg-type]


def test_one_user_of_one_source() -> None:
    logons, clock = make(per_user=3, per_source=100, seconds=30)
    for _ in range(3):
        logons.find("alice", "192.0.2.1")
        logons.failed("alice", "192.0.2.1", "wrong")
    with pytest.raises(SecurityError, match="too many"):
        logons.find("ALICE", "192.0.2.1")
    # Nobody else is locked out, least of all the real Alice.
    logons.find("bob", "192.0.2.1")
    logons.find("alice", "192.0.2.2")
    clock.now += 31
    logons.find("alice", "192.0.2.1")


def test_one_source() -> None:
    logons, _ = make(per_user=3, per_source=10)
    for number in range(10):
        logons.find(f"user{number}", "192.0.2.1")
        logons.failed(f"user{number}", "192.0.2.1", "wrong")
    with pytest.raises(SecurityError):
        logons.find("other", "192.0.2.1")
    logons.find("other", "192.0.2.2")


def test_memory_is_bounded() -> None:
    logons, _ = make()
    tracemalloc.start()
    try:
        for number in range(20_000):
            logons.failed(
                f"user{number}" * 5, f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", "wrong"
            )
        assert tracemalloc.get_traced_memory()[0] < 100_000
    finally:
        tracemalloc.stop()


def test_failures_are_logged_and_a_flood_fills_no_disk(caplog: pytest.LogCaptureFixture) -> None:
    logons, clock = make()
    with caplog.at_level(logging.WARNING):
        for _ in range(100):
            logons.failed("x" * 1000 + "\n", "192.0.2.1", "wrong password")
        clock.now += 2
        logons.failed("mallory", "192.0.2.1", "wrong password")
    first, second = (record.getMessage() for record in caplog.records)
    assert "192.0.2.1" in first
    assert "wrong password" in first
    assert len(first) < 200
    assert "'mallory'" in second
    assert "99 more" in second
    assert logons.failures == 101


@pytest.mark.parametrize(
    ("host", "source"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("odd", "odd"),
    ],
)
def test_whose_failures_these_are(host: str, source: str) -> None:
    assert source_of(host) == source
