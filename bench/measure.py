"""What every benchmark needs: rounds, medians, ratios, and a place on a real disk."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Rounds", "Target", "disk_directory"]


@dataclass
class Rounds:
    """The same thing measured several times."""

    name: str
    unit: str
    values: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def __str__(self) -> str:
        low, high = min(self.values), max(self.values)
        spread = f"{low:,.1f} to {high:,.1f}, {len(self.values)} rounds"
        return f"{self.name}: {self.median:,.1f} {self.unit} ({spread})"


@dataclass(frozen=True)
class Target:
    """A ratio, what it should be, and whether it is."""

    name: str
    value: float
    bound: float
    at_least: bool = True
    unit: str = "x"

    @property
    def is_met(self) -> bool:
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    def __str__(self) -> str:
        word = "at least" if self.at_least else "at most"
        verdict = "met" if self.is_met else "MISSED"
        return f"{verdict}: {self.name}: {self.value:,.2f} {self.unit} (target: {word} {self.bound:,g})"


def print_report(title: str, lines: Sequence[object]) -> None:
    """Print one benchmark's findings."""
    print(f"\n{title}")
    for line in lines:
        print(f"  {line}")


@contextmanager
def disk_directory() -> Iterator[Path]:
    """A temporary directory beside the project, which is on a disk where /tmp may not be."""
    parent = Path(__file__).resolve().parent
    with tempfile.TemporaryDirectory(prefix=".bench-", dir=parent) as name:
        yield Path(name)
