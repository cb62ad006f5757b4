"""What happens often is counted, and said now and then."""

from __future__ import annotations

import logging

import pytest

from lanner.protocols.discovery.incidents import LOG_SECONDS, Incidents


def test_one_line_in_a_while_with_the_number_of_the_others(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    incidents = Incidents(logging.getLogger("test"), logging.WARNING, "something odd")
    for number in range(1000):
        incidents.note("because", "10.0.0.1", number / 1000)
    incidents.note("again", "10.0.0.2", LOG_SECONDS)
    assert incidents.count == 1001
    assert [record.getMessage() for record in caplog.records] == [
        "discovery: something odd (10.0.0.1): because",
        "discovery: something odd (10.0.0.2): again; and 999 more before",
    ]
