from __future__ import annotations

import pytest
from tests.protocols.srmp.wire.samples import read_sample

from lanner.protocols.srmp.wire import WireFault, split_envelope

NAMESPACE = b'xmlns:a="http://schemas.xmlsoap.org/soap/envelope/"'


def test_they_are_as_they_came() -> None:
    header, body = split_envelope(read_sample("4.5-pgm").raw_envelope)
    assert header.startswith("<se:Header><path ")
    assert header.endswith("</Msmq></se:Header>")
    assert body == "<se:Body></se:Body>"


def test_other_prefixes_and_empty_elements() -> None:
    raw = "<a:Envelope %b><a:Header b='\u20ac>'/> <a:Body >x</a:Body></a:Envelope>".encode() % NAMESPACE
    assert split_envelope(raw) == ("<a:Header b='\u20ac>'/>", "<a:Body >x</a:Body>")


@pytest.mark.parametrize("inside", [b"", b"<a:Body/>", b"<a:Body/><a:Header/>", b"<Header/><Body/>"])
def test_what_is_no_envelope(inside: bytes) -> None:
    with pytest.raises(WireFault):
        split_envelope(b"<a:Envelope %b>%b</a:Envelope>" % (NAMESPACE, inside))
