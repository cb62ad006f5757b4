"""Where the objects lie and which attributes are read (MS-MQDSSM 2.2.1, 2.2.2 and 3.1.6.10)."""

from __future__ import annotations

from dataclasses import dataclass

from lanner.directory.base import InvalidDirectoryError
from lanner.directory.ldap.dn import child
from lanner.directory.ldap.entry import Entry
from lanner.model.directory_query import ObjectType

__all__ = [
    "CLASSES",
    "COMPUTER",
    "CONFIGURATION",
    "ENTERPRISE",
    "READ",
    "ROOT",
    "SETTINGS",
    "Tree",
]

CONFIGURATION = "mSMQConfiguration"
ENTERPRISE = "mSMQEnterpriseSettings"

CLASSES = {
    ObjectType.ENTERPRISE: ENTERPRISE,
    ObjectType.SITE: "site",
    ObjectType.ROUTING_LINK: "mSMQSiteLink",
    ObjectType.QUEUE_MANAGER: CONFIGURATION,
    ObjectType.QUEUE: "mSMQQueue",
}
"""The class of each kind of object."""

ROOT = (
    "rootDomainNamingContext",
    "configurationNamingContext",
    "dsServiceName",
    "highestCommittedUSN",
)

COMPUTER = ("dNSHostName", "mSMQSignCertificates", "operatingSystemVersion", "servicePrincipalName")

SETTINGS = (
    "mSMQDependentClientService",
    "mSMQDsService",
    "mSMQQMID",
    "mSMQRoutingService",
    "mSMQServices",
)

READ = {
    ObjectType.ENTERPRISE: (
        *("objectGUID", "mSMQNameStyle", "mSMQCSPName", "mSMQLongLived", "mSMQVersion"),
        "nTSecurityDescriptor",
    ),
    ObjectType.SITE: (
        *("objectGUID", "cn", "mSMQSiteForeign", "mSMQNt4Stub", "nTSecurityDescriptor"),
    ),
    ObjectType.ROUTING_LINK: (
        *("objectGUID", "description", "mSMQCost", "mSMQSite1", "mSMQSite2", "mSMQSiteGates"),
    ),
    ObjectType.QUEUE_MANAGER: (
        *("objectGUID", "whenCreated", "whenChanged", "mSMQComputerTypeEx", "mSMQOSType", "mSMQServiceType"),
        *("mSMQQuota", "mSMQJournalQuota", "mSMQForeign", "mSMQSites", "mSMQOutRoutingServers"),
        *("mSMQInRoutingServers", "mSMQRoutingServices", "mSMQDsServices", "mSMQDependentClientServices"),
        *("mSMQEncryptKey", "nTSecurityDescriptor"),
    ),
    ObjectType.QUEUE: (
        *("objectGUID", "whenCreated", "whenChanged", "mSMQLabelEx", "mSMQQueueType", "mSMQJournal"),
        *("mSMQQueueQuota", "mSMQQueueJournalQuota", "mSMQAuthenticate", "mSMQPrivacyLevel"),
        *("mSMQTransactional", "MSMQ-MulticastAddress", "mSMQBasePriority", "mSMQQueueNameExt"),
        "nTSecurityDescriptor",
    ),
}  # fmt: skip
"""The attributes of each kind of object. The distinguished name comes with every entry."""


@dataclass(frozen=True, slots=True)
class Tree:
    """The places of one forest."""

    forest: str
    """The rootDomainNamingContext, which is the enterprise's name too (3.1.6.11.3.1)."""
    domain: str
    """Under this are computers, their queue managers and their queues."""
    configuration: str
    """CachedConfigurationNamingContext (3.1.1.5)."""
    stamp: tuple[str, int]
    """Which server answered, and the number of its newest change."""

    @classmethod
    def of(cls, root: Entry, base: str) -> Tree:
        """Read it from what a server says of itself (3.1.3)."""
        forest = root.text("rootDomainNamingContext")
        configuration = root.text("configurationNamingContext")
        if not forest or not configuration:
            raise InvalidDirectoryError(
                "the server is no domain controller: it names no rootDomainNamingContext",
                hint="name a server of Active Directory",
            )
        digits = root.text("highestCommittedUSN", "-1")
        changes = int(digits) if digits.isdecimal() and len(digits) < 20 else -1
        return cls(forest, base or forest, configuration, (root.text("dsServiceName"), changes))

    @property
    def services(self) -> str:
        """The enterprise's settings, with the routing links under them."""
        return child("MsmqServices", child("Services", self.configuration))

    @property
    def sites(self) -> str:
        """What holds the sites."""
        return child("Sites", self.configuration)
