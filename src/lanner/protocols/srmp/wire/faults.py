"""What is wrong with bytes that should have been an SRMP message, and who wants to know.

Everything that reads reports to a :class:`FaultSink`. The plain one raises at the first fault, which is what
a receiver needs; the :class:`FaultCollector` goes on and keeps them all, for whoever examines a request.
"""

from __future__ import annotations

import msgspec

from lanner.model.codes import StatusCode
from lanner.model.errors import LannerError

__all__ = ["RAISE", "Fault", "FaultCollector", "FaultSink", "WireFault"]


class WireFault(LannerError):  # noqa: N818 - a fault of the peer, not of ours
    """The bytes break the specification; the answer is 400 (MC-MQSRM 3.1.5.1.2).

    ``section`` is the section of MC-MQSRM that is broken, ``element`` the element or header it is about.
    """

    code = StatusCode.MQ_ERROR_ILLEGAL_PROPERTY_VALUE

    def __init__(self, section: str, element: str, message: str) -> None:
        super().__init__(message)
        self.section = section
        self.element = element

    def __str__(self) -> str:
        return f"{self.element}: {self.message} (MC-MQSRM {self.section})"


class Fault(msgspec.Struct, frozen=True, gc=False):
    """One thing that is not as the specification has it."""

    section: str
    element: str
    message: str
    is_accepted: bool = False
    """Whether a receiver takes the message all the same."""

    def __str__(self) -> str:
        return f"{self.element}: {self.message} (MC-MQSRM {self.section})"


class FaultSink:
    """Takes the first fault for the last one."""

    __slots__ = ()

    def fault(self, section: str, element: str, message: str) -> None:
        """Report what no receiver may accept."""
        raise WireFault(section, element, message)

    def deviation(self, section: str, element: str, message: str) -> None:
        """Report what breaks the text and is harmless, or stands in its own samples (section 4)."""


class FaultCollector(FaultSink):
    """Keeps every fault."""

    __slots__ = ("faults",)

    def __init__(self) -> None:
        self.faults: list[Fault] = []

    def fault(self, section: str, element: str, message: str) -> None:
        """Keep it and go on."""
        self.faults.append(Fault(section, element, message))

    def deviation(self, section: str, element: str, message: str) -> None:
        """Keep it, marked as accepted."""
        self.faults.append(Fault(section, element, message, is_accepted=True))

    @property
    def is_acceptable(self) -> bool:
        """Whether nothing was found that a receiver refuses."""
        return all(fault.is_accepted for fault in self.faults)


RAISE = FaultSink()
"""The sink that raises."""
