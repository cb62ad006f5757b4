"""What the audit can find, and what that means for the verdict."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from lanner.pipeline.columns import list_of, struct

__all__ = ["FINDINGS", "Audit", "Kind", "Severity", "Verdict"]


class Kind(StrEnum):
    """What is wrong with a message or a stream."""

    LOST = "lost"
    """Sent, and nobody has it: it is in no queue, not on its way, and was not given up."""
    DUPLICATED = "duplicated"
    """Put into its queue more often than it was sent, or received more often than it was there."""
    OUT_OF_ORDER = "out of order"
    """It came into the queue behind one with a higher number in the same stream."""
    GAP = "gap"
    """A number of a stream did not arrive although a higher one did; the detail says why."""
    UNACKNOWLEDGED = "unacknowledged"
    """It arrived, and its sender does not know."""
    UNSENT = "unsent"
    """It arrived, and the manager that it names as its sender did not send it."""
    HISTORY = "history"
    """Part of a manager's history is missing, so that nothing can be proved about it."""


class Severity(StrEnum):
    """What a finding means."""

    VIOLATION = "violation"
    """Exactly-once-in-order is refuted."""
    DOUBT = "doubt"
    """It may be one; what is known does not say."""
    EXPLAINED = "explained"
    """It has a cause that its sender or an administrator asked for."""


class Verdict(StrEnum):
    """What the audit says as a whole."""

    PROVED = "proved"
    DOUBTED = "doubted"
    REFUTED = "refuted"


EXIT_CODES = {Verdict.PROVED: 0, Verdict.DOUBTED: 3, Verdict.REFUTED: 4}
"""What a job ends with; 1 and 2 are those of a command that failed, or was not understood."""

FINDINGS = struct(
    "kind string, severity string, message_id string, sender string, destination string, stream bigint, "
    "sequence bigint, detail string",
    events=list_of(
        "manager string, lsn bigint, time timestamp, event string, queue string, message_class int, "
        "stream bigint, sequence bigint, reason string, peer string"
    ),
)
"""The columns of the audit's findings."""


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict, for programs."""

    verdict: Verdict
    messages: int
    streams: int
    waiting: int
    """Messages that are on their way still."""
    unobserved: int
    """Messages to machines whose history is not here."""
    counts: dict[str, int]
    """How many findings of each kind and severity, as ``lost (violation)``."""
    managers: list[dict[str, Any]]
    until: float
    """What came later was not judged, in seconds since 1970."""
    findings: list[dict[str, Any]]
    """The first of them; all are in the table."""

    @property
    def exit_code(self) -> int:
        """What a job ends with."""
        return EXIT_CODES[self.verdict]
