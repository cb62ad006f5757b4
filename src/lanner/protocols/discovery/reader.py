"""The one reader of packets: it knows where the data ends."""

from __future__ import annotations

from uuid import UUID

from lanner.model.errors import LannerError

__all__ = ["PacketFault", "PacketReader"]


class PacketFault(LannerError):  # noqa: N818 - a fault of the peer, not of ours
    """A packet that does not follow its section; nothing is sent back."""

    def __init__(self, message: str, section: str) -> None:
        super().__init__(f"{message} (MS-MQSD {section})")
        self.section = section


class PacketReader:
    """Reads little-endian fields one after the other, and never past the end."""

    def __init__(self, data: bytes, section: str) -> None:
        self._data = data
        self._position = 0
        self.section = section

    @property
    def remaining(self) -> int:
        """Bytes that nobody has read."""
        return len(self._data) - self._position

    def take(self, size: int, field: str) -> bytes:
        """Read so many bytes."""
        end = self._position + size
        if end > len(self._data):
            raise self.fault(f"{field} needs {size} bytes, {self.remaining} are left")
        taken = self._data[self._position : end]
        self._position = end
        return taken

    def number(self, size: int, field: str) -> int:
        """Read an unsigned integer of so many bytes."""
        return int.from_bytes(self.take(size, field), "little")

    def guid(self, field: str) -> UUID:
        """Read a GUID (MS-DTYP 2.3.4)."""
        return UUID(bytes_le=self.take(16, field))

    def finish(self) -> None:
        """Refuse what is left over."""
        if self.remaining:
            raise self.fault(f"{self.remaining} bytes follow the last field")

    def fault(self, message: str) -> PacketFault:
        """Say what is wrong in this packet."""
        return PacketFault(message, self.section)
