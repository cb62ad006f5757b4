"""The README's example runs, and prints what the README says it prints."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parent.parent / "README.md").read_text()


def test_the_example_prints_what_the_readme_says(tmp_path: Path) -> None:
    program = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[0]
    promised = re.search(r"It prints:\n\n```\n(.*?)```", README, re.DOTALL)
    assert promised is not None
    finished = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert finished.stderr == ""
    assert finished.stdout == promised[1]
