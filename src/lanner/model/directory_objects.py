"""What a directory holds: enterprise, sites, routing links, networks, queue managers, public queues.

These are the directory objects of MS-MQDMPR 3.1.1 with the attributes that routing, discovery and
the directories themselves need. Each refers to others by identifier alone, so that an object can be
read, compared and written without its neighbours.
"""

from __future__ import annotations

from enum import Enum
from uuid import UUID, uuid5

import msgspec

from lanner.model.message import INFINITE
from lanner.model.queue import NULL_GUID, QueueProperties

__all__ = [
    "MAX_LINK_COST",
    "MIN_LINK_COST",
    "ConnectedNetwork",
    "DirectoryObject",
    "DirectoryServerType",
    "Enterprise",
    "Machine",
    "OperatingSystemType",
    "PublicQueue",
    "RoutingLink",
    "Site",
    "derived_id",
]

# MS-MQDMPR 3.1.1.8. With no cost of zero the distance falls at every hop, so routes cannot loop.
MIN_LINK_COST = 1
MAX_LINK_COST = 999_999

_NAMESPACE = UUID("6b1f5b0e-5d0a-5c0e-9d8e-1a4e6e7c0b5d")
"""Under this lie the derived identifiers of enterprises; under each enterprise's own lie all others."""


def derived_id(kind: str, *names: str, enterprise: UUID | None = None) -> UUID:
    """The identifier of an object that was given none: the same for the same names, whatever their case."""
    # No name has a null character, so no two lists of names give the same text.
    return uuid5(enterprise or _NAMESPACE, "\0".join((kind, *(name.casefold() for name in names))))


class OperatingSystemType(Enum):
    """What a queue manager runs on (MS-MQDMPR 3.1.1.1)."""

    FOREIGN = "foreign"
    WIN95 = "win95"
    WIN_CLIENT = "win-client"
    WIN_SERVER = "win-server"
    WIN_ENT = "win-ent"
    OTHER = "other"


class DirectoryServerType(Enum):
    """Which part a directory server plays (MS-MQDMPR 3.1.1.1)."""

    STANDALONE = "standalone"
    BACKUP_SITE_CONTROLLER = "backup-site-controller"
    PRIMARY_SITE_CONTROLLER = "primary-site-controller"
    PRIMARY_ENTERPRISE_CONTROLLER = "primary-enterprise-controller"


class _Object(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True):
    """A DirectoryObject (MS-MQDMPR 3.1.1): all it has is an identifier that never changes."""

    id: UUID


class Enterprise(_Object, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True):
    """The whole: one directory, its sites and networks (MS-MQDMPR 3.1.1.6)."""

    name: str
    weakened_security: bool = False
    change_notification: bool = False
    """NonLDAPCapableQueueManagerNotification."""
    default_time_to_live: int = INFINITE
    """Seconds that a message has to reach its queue."""
    old_directory: bool = False
    security: bytes = b""


class Site(_Object, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True):
    """Queue managers that are well connected with each other (MS-MQDMPR 3.1.1.7).

    Its gates are not part of it: they follow from its links. ``EnterpriseMap.gates_of`` has them.
    """

    name: str
    foreign: bool = False
    """Its messaging systems are not MSMQ; a connector server that belongs to it speaks for them."""
    primary_site_controller: str = ""
    full_path: str = ""
    """Its distinguished name, from a directory that has them."""
    migrated: bool = False
    """MigratedFromMsmq10."""
    security: bytes = b""


class RoutingLink(_Object, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True):
    """A way between two sites, in both directions, and what it costs (MS-MQDMPR 3.1.1.8)."""

    site1: UUID
    site2: UUID
    cost: int
    gates: tuple[UUID, ...] = ()
    """SiteGateIdentifierList: queue managers that are gates of the two sites."""
    description: str = ""
    full_path: str = ""

    @property
    def has_right_cost(self) -> bool:
        """Whether the cost is one that a link can have."""
        return MIN_LINK_COST <= self.cost <= MAX_LINK_COST

    def other(self, site: UUID) -> UUID:
        """The site at the other end."""
        return self.site2 if site == self.site1 else self.site1


class ConnectedNetwork(_Object, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True):
    """A network in which any two computers reach each other (MS-MQDMPR 3.1.1.9)."""

    name: str
    security: bytes = b""


class Machine(_Object, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True):
    """A queue manager as the directory knows it (MS-MQDMPR 3.1.1.1, its directory attributes).

    MS-MQBR calls it a machine too; ``QueueManager`` is the one that runs here.
    """

    name: str
    """ComputerName."""
    sites: tuple[UUID, ...] = ()
    networks: tuple[UUID, ...] = ()
    """Connected networks; none named means that it is on all of them."""
    routing: bool = False
    in_routing: tuple[UUID, ...] = ()
    out_routing: tuple[UUID, ...] = ()
    directory_server: bool = False
    directory_server_type: DirectoryServerType = DirectoryServerType.STANDALONE
    foreign: bool = False
    supporting_server: bool = False
    remote_access_server: bool = False
    clustered: bool = False
    address: str = ""
    """Where to connect, if not at the name. Not MSMQ's: a directory without it leaves that to DNS."""
    qualified_name: str = ""
    """QualifiedComputerName."""
    version: str = ""
    os_version: str = ""
    os_type: OperatingSystemType = OperatingSystemType.OTHER
    quota: int = 0x00100000
    journal_quota: int = INFINITE
    full_path: str = ""
    create_time: int = 0
    modify_time: int = 0
    encryption_keys: bytes = b""
    signing_keys: bytes = b""
    security: bytes = b""

    @property
    def routes(self) -> bool:
        """Whether it passes messages on: a foreign system, which is not MSMQ, cannot."""
        return self.routing and not self.foreign


class PublicQueue(_Object, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True):
    """A queue that everybody can find in the directory (MS-MQDMPR 3.1.1.2, its directory attributes)."""

    path: str
    """Pathname: computer, backslash, queue."""
    manager: UUID = NULL_GUID
    """Who hosts it; left out, it is whoever has the computer's name."""
    properties: QueueProperties = QueueProperties()
    qualified_path: str = ""
    full_path: str = ""
    create_time: int = 0
    modify_time: int = 0
    security: bytes = b""

    @property
    def computer(self) -> str:
        """The computer's part of the path."""
        return self.path.partition("\\")[0]

    @property
    def name(self) -> str:
        """The queue's part of the path."""
        return self.path.partition("\\")[2]


DirectoryObject = Enterprise | Site | RoutingLink | ConnectedNetwork | Machine | PublicQueue
