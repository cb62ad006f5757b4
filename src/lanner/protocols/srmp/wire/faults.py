"""What is wrong with bytes that should have been an SRMP message."""

from __future__ import annotations

from lanner.model.codes import StatusCode
from lanner.model.errors import LannerError

__all__ = ["WireFault"]


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
