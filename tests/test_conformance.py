"""Every test that docs/conformance.md names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SRMP = "tests/protocols/srmp/"

NAMED = sorted(set(re.findall(r"`([\w/.-]+\.py(?:::\w+)?)`", (ROOT / "docs/conformance.md").read_text())))


@pytest.mark.parametrize("named", NAMED)
def test_it_is_there(named: str) -> None:
    file, _, name = named.partition("::")
    path = ROOT / (file if file.startswith("tests/") else SRMP + file)
    assert path.is_file(), named
    if name:
        text = path.read_text()
        assert re.search(rf"^(async )?def {name}\(|^{name} = ", text, re.MULTILINE), named
