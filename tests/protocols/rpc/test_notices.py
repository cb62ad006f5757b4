"""What is said in the log, and how often."""

from __future__ import annotations

import logging

import pytest

from lanner.protocols.rpc.notices import Notices


def test_one_line_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    notices = Notices(logging.getLogger("test"), logging.WARNING)
    with caplog.at_level(logging.WARNING):
        for number in range(10):
            notices.note(number / 100, "%s failed", "it")
        notices.note(1.5, "%s failed again", "it")
    assert [record.getMessage() for record in caplog.records] == [
        "it failed",
        "it failed again; and 9 more before",
    ]
    assert notices.count == 11
