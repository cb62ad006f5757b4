"""Whatever the fast path accepts, the full parser reads the same."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.protocols.srmp.wire.samples import DURABLE
from tests.protocols.srmp.wire.strategies import envelopes, plain_envelopes

from lanner.protocols.srmp.wire import Envelope, WireFault
from lanner.protocols.srmp.wire.envelope_expression import match_envelope
from lanner.protocols.srmp.wire.envelope_reader import read_envelope
from lanner.protocols.srmp.wire.envelope_writer import write_envelope
from lanner.protocols.srmp.wire.faults import RAISE

WRITTEN = write_envelope(DURABLE.envelope).encode()

FRAGMENTS = [
    b"&amp;", b"&lt;", b"&#65;", b"&#x0;", b"&undefined;", b"<!-- -->", b"<![CDATA[x]]>", b"]]>", b"<?pi?>",
    b" ", b"\t", b"\n", b"\r", b"\r\n", b"\x00", b"\x01", b"\x0b", b"\x1f", b"\x7f",
    b"\xc2\x85", b"\xe2\x80\xa8",
    "\u00e9\u4e2d\U0001f600\ufeff".encode(), b"\xef\xbf\xbe", b"\xef\xbf\xbf", b"\xed\xa0\x80",
    b"\xff", b"\xc0\x80",
    b"\xf4\x90\x80\x80", b"0", b"1", b"99999999999999999999", b"18446744073709551616", b"\xd9\xa1", b"-",
    b"+", b"_",
    b"<", b">", b'"', b"'", b"/", b"T", b"g", b"<durable/>", b"<Journal/>", b"<rev><via>http://a</via></rev>",
    b"<App>4294967296</App>", b"</action>", b"MSMQ:", b"20071340T256199",
]  # fmt: skip


def _agrees(data: bytes) -> bool:
    """Check that both read the same, and tell whether the fast path read anything."""
    fast = match_envelope(data)
    if fast is None:
        return False
    assert read_envelope(data, RAISE) == fast
    return True


@given(envelopes)
@settings(max_examples=150, deadline=None)
def test_agrees_on_what_the_writer_writes(envelope: Envelope) -> None:
    data = write_envelope(envelope).encode()
    assert read_envelope(data, RAISE) == envelope
    _agrees(data)


@given(plain_envelopes)
@settings(max_examples=150, deadline=None)
def test_takes_every_message_without_anything_special(envelope: Envelope) -> None:
    data = write_envelope(envelope).encode()
    assert match_envelope(data) == envelope
    assert _agrees(data)


@given(
    envelopes | plain_envelopes,
    st.lists(
        st.tuples(st.floats(0, 1), st.integers(0, 4), st.sampled_from(FRAGMENTS) | st.binary(max_size=3)),
        min_size=1,
        max_size=3,
    ),
)
@settings(max_examples=300, deadline=None)
def test_agrees_on_what_was_damaged(envelope: Envelope, changes: list[tuple[float, int, bytes]]) -> None:
    data = write_envelope(envelope).encode()
    for where, removed, inserted in changes:
        position = int(where * len(data))
        data = data[:position] + inserted + data[position + removed :]
    _agrees(data)


TEXTS = re.compile(rb"(?<=>)[^<>]+(?=</)")


@given(plain_envelopes, st.data())
@settings(max_examples=300, deadline=None)
def test_agrees_on_other_texts_in_elements(envelope: Envelope, draw: st.DataObject) -> None:
    """Change one text and leave the markup whole: here the fast path is most likely to take it."""
    data = write_envelope(envelope).encode()
    place = draw.draw(st.sampled_from(list(TEXTS.finditer(data))))
    old = place[0]
    fragment = draw.draw(
        st.sampled_from(FRAGMENTS) | st.text(max_size=4).map(str.encode) | st.binary(max_size=3)
    )
    position = draw.draw(st.integers(0, len(old)))
    removed = draw.draw(st.integers(0, 2))
    changed = old[:position] + fragment + old[position + removed :]
    _agrees(data[: place.start()] + changed + data[place.end() :])


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_agrees_on_odd_texts_everywhere(fragment: bytes) -> None:
    """Put each odd text at every place of a message, before and instead of what is there."""
    for position in range(len(WRITTEN)):
        _agrees(WRITTEN[:position] + fragment + WRITTEN[position:])
        _agrees(WRITTEN[:position] + fragment + WRITTEN[position + 1 :])


def test_the_usual_message_takes_the_fast_path() -> None:
    assert match_envelope(WRITTEN) == DURABLE.envelope


@pytest.mark.parametrize("text", ["\u00e9\u4e2d\U0001f600", "a \u2028b", "\x7f\x85", "quote'"])
def test_text_that_needs_no_escape_takes_the_fast_path(text: str) -> None:
    assert _agrees(WRITTEN.replace(b"order 17", text.encode()))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"order 17", b"a &amp; b"),
        (b"order 17", b"line\nbreak"),
        (b"<Class>0<", b"<Class>65536<"),
        (b"<BodyType>0<", b"<BodyType>4294967296<"),
        (b"20380119T031407", b"20381319T031407"),
        (b"uuid:20503@", b"uuid:4294967296@"),
        (b"caf195ea-615c", b"caf195ea6-15c"),
        (b"<path ", b"<path  "),
        (b"</se:Envelope>", b"</se:Envelope>\n"),
    ],
)
def test_everything_else_is_left_to_the_full_parser(old: bytes, new: bytes) -> None:
    data = WRITTEN.replace(old, new)
    assert data != WRITTEN
    assert match_envelope(data) is None


def test_two_response_queues_are_left_to_the_full_parser() -> None:
    rev = b"<rev><via>http://a/msmq/b</via></rev>"
    data = WRITTEN.replace(b"<id>", rev + b"<id>").replace(b"</id>", b"</id>" + rev)
    assert match_envelope(data) is None
    with pytest.raises(WireFault, match="more than once"):
        read_envelope(data, RAISE)
