"""XML as a small tree, from a parser that does nothing but read (SOAP 1.1 section 3).

A document type, and with it every entity that a message could define, is refused where it begins; so is a
processing instruction. Nothing outside the bytes is ever looked at. Namespaces are resolved: prefixes mean
nothing. Sizes are bounded by :mod:`lanner.protocols.srmp.wire.limits`.
"""

from __future__ import annotations

from xml.parsers import expat

from lanner.protocols.srmp.wire.faults import WireFault
from lanner.protocols.srmp.wire.limits import (
    MAX_ATTRIBUTES,
    MAX_DEPTH,
    MAX_ELEMENTS,
    MAX_ENVELOPE_BYTES,
    MAX_TEXT_LENGTH,
)

__all__ = ["Node", "parse_xml"]

_SECTION = "2.2"
_SEPARATOR = "\n"
"""Between namespace and name. It can stand in neither: expat refuses a namespace that holds it."""

_ENCODINGS = ("utf-8", "utf8", "us-ascii", "ascii")


class Node:
    """One element. ``start`` and ``end`` are where its bytes lie in what was parsed."""

    __slots__ = ("attributes", "children", "end", "name", "namespace", "pieces", "start")

    def __init__(self, namespace: str, name: str, attributes: dict[str, str], start: int) -> None:
        self.namespace = namespace
        self.name = name
        self.attributes = attributes
        self.children: list[Node] = []
        self.pieces: list[str] = []
        self.start = start
        self.end = start

    @property
    def text(self) -> str:
        """The characters directly inside the element."""
        return "".join(self.pieces)

    def attribute(self, name: str, namespace: str = "") -> str | None:
        """Return an attribute's value, or None."""
        return self.attributes.get(f"{namespace}{_SEPARATOR}{name}" if namespace else name)


class _TreeBuilder:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.root: Node | None = None
        self.open: list[Node] = []
        self.count = 0
        self.length = 0
        # UTF-8 whatever a declaration says: expat would follow it to other encodings.
        parser = expat.ParserCreate("utf-8", _SEPARATOR)
        parser.buffer_text = True
        parser.XmlDeclHandler = self.on_declaration
        parser.StartDoctypeDeclHandler = self.on_doctype
        parser.ProcessingInstructionHandler = self.on_instruction
        parser.StartElementHandler = self.on_start
        parser.EndElementHandler = self.on_end
        parser.CharacterDataHandler = self.on_text
        self.parser = parser

    def on_declaration(self, _version: str, encoding: str | None, _standalone: int) -> None:
        if encoding is not None and encoding.lower() not in _ENCODINGS:
            raise WireFault(_SECTION, "?xml", f"the encoding is {encoding[:40]!r}, not UTF-8")

    def on_doctype(self, name: str, *_ids: object) -> None:
        raise WireFault(_SECTION, "!DOCTYPE", f"a message has no document type; this one has {name[:40]!r}")

    def on_instruction(self, target: str, _data: str) -> None:
        raise WireFault(_SECTION, "?" + target[:40], "a message has no processing instructions")

    def on_start(self, name: str, attributes: dict[str, str]) -> None:
        namespace, _, local = name.rpartition(_SEPARATOR)
        self.count += 1
        if self.count > MAX_ELEMENTS:
            raise WireFault(_SECTION, local, f"there are more than {MAX_ELEMENTS} elements")
        if len(attributes) > MAX_ATTRIBUTES:
            raise WireFault(_SECTION, local, f"the element has more than {MAX_ATTRIBUTES} attributes")
        node = Node(namespace, local, attributes, self.parser.CurrentByteIndex)
        if self.open:
            if len(self.open) >= MAX_DEPTH:
                raise WireFault(_SECTION, local, f"elements are nested more than {MAX_DEPTH} deep")
            self.open[-1].children.append(node)
        else:
            self.root = node
        self.open.append(node)
        self.length = 0

    def on_end(self, _name: str) -> None:
        node = self.open.pop()
        here = self.parser.CurrentByteIndex
        if not node.children and not node.pieces and self.data[here - 2 : here] == b"/>":
            # An element of one tag: expat stands behind it already, and not before an end tag.
            node.end = here
        else:
            node.end = self.data.index(b">", here) + 1
        self.length = 0

    def on_text(self, text: str) -> None:
        self.length += len(text)
        if self.length > MAX_TEXT_LENGTH:
            name = self.open[-1].name
            raise WireFault(_SECTION, name, f"the text is longer than {MAX_TEXT_LENGTH:,} characters")
        self.open[-1].pieces.append(text)


def parse_xml(data: bytes) -> Node:
    """Read a document into a tree. Raises WireFault."""
    if len(data) > MAX_ENVELOPE_BYTES:
        raise WireFault(
            _SECTION, "Envelope", f"it has {len(data):,} bytes; the limit is {MAX_ENVELOPE_BYTES:,}"
        )
    _check_encoding(data)
    builder = _TreeBuilder(data)
    try:
        builder.parser.Parse(data, True)
    except expat.ExpatError as error:
        reason = expat.errors.messages.get(error.code, str(error.code))
        where = f"line {error.lineno}, column {error.offset + 1}"
        element = builder.open[-1].name if builder.open else "Envelope"
        raise WireFault(_SECTION, element, f"the XML is broken at {where}: {reason}") from None
    finally:
        # The builder and the parser hold each other; part them now and not when the collector comes.
        del builder.parser
    if builder.root is None:
        raise WireFault(_SECTION, "Envelope", "there is no element")
    return builder.root


def _check_encoding(data: bytes) -> None:
    """Refuse what is not UTF-8: expat reads what looks like UTF-16 as such, whatever it was told."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise WireFault(_SECTION, "Envelope", f"byte {error.start + 1} is not UTF-8") from None
    if 0 in data:
        raise WireFault(_SECTION, "Envelope", "there is a zero byte in it")
