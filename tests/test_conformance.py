"""Every test that the pages on conformance name is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SRMP = "tests/protocols/srmp/"

_NAME = re.compile(r"`([\w/.-]+\.py(?:::\w+)?)`")

# The page of SRMP leaves its folder away; the other pages have short names of their own for theirs.
NAMED = sorted(
    {
        name
        for page in (ROOT / "docs").glob("conformance*.md")
        for name in _NAME.findall(page.read_text())
        if page.name == "conformance.md" or name.startswith("tests/")
    }
)


@pytest.mark.parametrize("named", NAMED)
def test_it_is_there(named: str) -> None:
    file, _, name = named.partition("::")
    path = ROOT / (file if file.startswith("tests/") else SRMP + file)
    assert path.is_file(), named
    if name:
        text = path.read_text()
        assert re.search(rf"^(async )?def {name}\(|^{name} = ", text, re.MULTILINE), named
