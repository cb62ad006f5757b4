from __future__ import annotations

import pytest
from hypothesis import given
from tests.protocols.srmp.wire import strategies

from lanner.protocols.srmp.wire import WireFault
from lanner.protocols.srmp.wire.escaping import escape
from lanner.protocols.srmp.wire.xml_reader import parse_xml


@given(strategies.xml_text)
def test_a_reader_gets_it_back(text: str) -> None:
    assert parse_xml(f"<a>{escape(text, '2.2', 'a')}</a>".encode()).text == text


@given(strategies.xml_text.filter(lambda text: not set(text) & set("\t\n")))
def test_in_attributes_too(text: str) -> None:
    assert parse_xml(f'<a b="{escape(text, "2.2", "a")}"/>'.encode()).attribute("b") == text


@pytest.mark.parametrize("character", ["\x00", "\x01", "\x0b", "\x1f", "\ud800", "\ufffe", "\uffff"])
def test_what_xml_cannot_hold(character: str) -> None:
    with pytest.raises(WireFault, match=f"U\\+{ord(character):04X}") as caught:
        escape(f"a{character}", "2.2.4.1", "action")
    assert (caught.value.section, caught.value.element) == ("2.2.4.1", "action")
