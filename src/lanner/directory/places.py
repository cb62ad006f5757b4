"""Where in a TOML file something stands.

The parser gives values without places. They are wanted only when something is wrong or is to be changed,
so the text is searched then: for the table's header, and in the table for the key.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import NamedTuple

__all__ = ["Block", "Places"]

_HEADER = re.compile(r"\s*\[(\[?)\s*(?:\"([^\"]*)\"|'([^']*)'|([A-Za-z0-9_-]+))\s*\](\]?)\s*(?:#.*)?$")


class Block(NamedTuple):
    """The lines of one table: from its header to the line before the next, counted from 0."""

    first: int
    end: int


class Places:
    """The places in one text."""

    def __init__(self, text: str, source: str = "") -> None:
        self.text = text
        self.source = source

    def block(self, table: str, index: int) -> Block | None:
        """The lines of the table with this number among those of its name."""
        blocks = self._blocks.get(table, [])
        return blocks[index] if index < len(blocks) else None

    def line(self, table: str, index: int = 0, key: str = "") -> int:
        """The line of a table, or of a key in it, counted from 1; 0 if it cannot be found."""
        block = self.block(table, index)
        if block is None:
            return 0
        if key:
            wanted = re.compile(rf"\s*(?:{re.escape(key)}|\"{re.escape(key)}\"|'{re.escape(key)}')\s*=")
            for number in range(block.first + 1, block.end):
                if wanted.match(self.lines[number]):
                    return number + 1
        return block.first + 1

    def shown(self, table: str, index: int = 0, key: str = "") -> str:
        """A place as people read it: file, line, table."""
        number = self.line(table, index, key)
        inside = f"[[{table}]] {index + 1}" if table != "enterprise" else "[enterprise]"
        named = f"{self.source}:{number}" if number else self.source
        return f"{named} ({inside})" if named else inside

    @cached_property
    def lines(self) -> list[str]:
        """The text's lines, as TOML has them: other line separators are part of a line."""
        return self.text.split("\n")

    @cached_property
    def _blocks(self) -> dict[str, list[Block]]:
        headers: list[tuple[int, str]] = []
        for number, line in enumerate(self.lines):
            found = _HEADER.match(line) if "[" in line else None
            if found and len(found[1]) == len(found[5]):
                headers.append((number, found[2] or found[3] or found[4]))
        ends = [*(number for number, _ in headers[1:]), len(self.lines)]
        blocks: dict[str, list[Block]] = {}
        for (first, name), end in zip(headers, ends, strict=False):
            blocks.setdefault(name, []).append(Block(first, end))
        return blocks
