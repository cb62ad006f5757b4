"""The other brokers that Lanner is measured against, each started privately for one measurement."""

from __future__ import annotations

__all__ = ["PeerMissingError"]


class PeerMissingError(RuntimeError):
    """A peer's program is not installed; the message names the package that brings it."""

    def __init__(self, program: str, package: str) -> None:
        super().__init__(f"{program} is not installed; install the package {package!r}")
        self.package = package
