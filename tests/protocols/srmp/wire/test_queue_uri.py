from __future__ import annotations

import pytest

from lanner.model.format_name import parse_format_name
from lanner.protocols.srmp.wire import format_name_of, uri_of
from lanner.protocols.srmp.wire.queue_uri import is_destination


@pytest.mark.parametrize(
    ("uri", "format_name"),
    [
        ("http://host/msmq/private$/q", "DIRECT=http://host/msmq/private$/q"),
        ("https://host/msmq/q", "DIRECT=https://host/msmq/q"),
        ("MSMQ:MULTICAST=234.1.1.1:8001", "MULTICAST=234.1.1.1:8001"),
        ("MSMQ:DIRECT=OS:host\\private$\\q", "DIRECT=OS:host\\private$\\q"),
        ("MSMQ:PUBLIC=caf195ea-615c-4264-ae08-11a4e60194c0", "PUBLIC=caf195ea-615c-4264-ae08-11a4e60194c0"),
    ],
)
def test_both_ways(uri: str, format_name: str) -> None:
    assert format_name_of(uri) == format_name
    assert uri_of(format_name) == uri
    parse_format_name(format_name)


def test_the_scheme_goes_out_in_small_letters() -> None:
    assert uri_of("DIRECT=HTTP://Host/msmq/Q") == "http://Host/msmq/Q"
    assert uri_of("direct=Https://Host/msmq/Q") == "https://Host/msmq/Q"
    assert format_name_of("HTTP://Host/Q") == "DIRECT=HTTP://Host/Q"


def test_what_stands_for_no_queue() -> None:
    assert format_name_of("") is None
    assert format_name_of("ftp://host/q") is None


def test_destinations() -> None:
    assert is_destination("http://host/q")
    assert is_destination("msmq:multicast=234.1.1.1:8001")
    assert not is_destination("MSMQ:DIRECT=OS:host\\q")
    assert not is_destination("http:/host")
    assert not is_destination("")
