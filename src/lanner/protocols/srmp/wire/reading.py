"""The children of one element, looked up by name: missing, doubled and malformed ones are reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from lanner.protocols.srmp.wire.faults import FaultSink
from lanner.protocols.srmp.wire.values import XML_SPACE
from lanner.protocols.srmp.wire.xml_reader import Node

__all__ = ["Children", "read_children"]

_T = TypeVar("_T")


class Children:
    """The children of one element that are of one namespace. Others are ignored (MC-MQSRM 2.2.4.5)."""

    __slots__ = ("_nodes", "_sink")

    def __init__(self, nodes: dict[str, Node], sink: FaultSink) -> None:
        self._nodes = nodes
        self._sink = sink

    def __contains__(self, name: str) -> bool:
        return name in self._nodes

    def get(self, name: str) -> Node | None:
        """Return the child of this name, or None."""
        return self._nodes.get(name)

    def text(self, name: str, section: str) -> str:
        """Return the text of a child that must be there, white space and all."""
        node = self._nodes.get(name)
        if node is None:
            self._sink.fault(section, name, "the element is missing")
            return ""
        return node.text

    def value(self, name: str, section: str, read: Callable[[str], _T], instead: _T) -> _T:
        """Return the value of a child that must be there; ``instead`` if it is missing or malformed."""
        if name not in self._nodes:
            self._sink.fault(section, name, "the element is missing")
            return instead
        value = self.maybe(name, section, read)
        return instead if value is None else value

    def maybe(self, name: str, section: str, read: Callable[[str], _T]) -> _T | None:
        """Return the value of a child, or None if it is missing or malformed."""
        node = self._nodes.get(name)
        if node is None:
            return None
        try:
            return read(node.text.strip(XML_SPACE))
        except ValueError as error:
            self._sink.fault(section, name, str(error))
            return None


def read_children(
    node: Node, namespace: str, section: str, sink: FaultSink, *, repeatable: str = ""
) -> Children:
    """Look up the children of ``node`` that are of ``namespace``.

    One that is there twice is a fault, unless it is the ``repeatable`` one.
    """
    nodes: dict[str, Node] = {}
    for child in node.children:
        if child.namespace != namespace:
            continue
        if child.name in nodes and child.name != repeatable:
            sink.fault(section, child.name, f"the element is there more than once in {node.name}")
        nodes[child.name] = child
    return Children(nodes, sink)
