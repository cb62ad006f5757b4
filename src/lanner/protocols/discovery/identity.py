"""Who a queue manager is in its enterprise, as far as discovery is concerned."""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from lanner.protocols.discovery.server import Offer

__all__ = ["Identity"]


@dataclass(frozen=True)
class Identity:
    """Who we are in the enterprise. A change of the directory is a new identity."""

    enterprise_id: UUID
    computer_name: str
    site_ids: tuple[UUID, ...] = ()
    is_directory_server: bool = False
    connected_networks: tuple[UUID, ...] = ()
    directory_servers: tuple[str, ...] = ()
    """The others that are known: a server offers them after itself, a client begins with them."""

    def offer(self) -> Offer:
        """What a directory server says of itself; refused where it could not be said."""
        others = (name for name in self.directory_servers if name.casefold() != self.computer_name.casefold())
        return Offer(
            self.enterprise_id, self.site_ids, self.connected_networks, (self.computer_name, *others)
        )

    def asks_like(self, other: Identity) -> bool:
        """Whether both ask the same and begin with the same lists: then what was found stays good."""
        return replace(self, computer_name="") == replace(other, computer_name="")
