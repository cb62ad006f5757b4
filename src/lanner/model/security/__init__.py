"""Security descriptors: who may do what with a queue (MS-DTYP 2.4 and 2.5, MS-MQMQ 2.2.24).

``SecurityDescriptor`` reads and writes the binary and the text form; ``access_check`` answers
whether a ``Token`` gets a set of ``QueueRight``; ``describe`` says it to people.
"""

from lanner.model.security.access import (
    QueueRight,
    Token,
    access_check,
    default_queue_descriptor,
    describe,
    granted_access,
)
from lanner.model.security.ace import AccessMask, Ace, AceFlag, AceType, OpaqueAce
from lanner.model.security.descriptor import Acl, AclRevision, Control, SecurityDescriptor
from lanner.model.security.sid import (
    ADMINISTRATORS,
    ANONYMOUS,
    AUTHENTICATED_USERS,
    EVERYONE,
    LOCAL_SYSTEM,
    OWNER_RIGHTS,
    Sid,
)

__all__ = [
    "SecurityDescriptor",
    "Control",
    "Acl",
    "AclRevision",
    "Ace",
    "AceFlag",
    "AceType",
    "OpaqueAce",
    "AccessMask",
    "Sid",
    "ADMINISTRATORS",
    "ANONYMOUS",
    "AUTHENTICATED_USERS",
    "EVERYONE",
    "LOCAL_SYSTEM",
    "OWNER_RIGHTS",
    "QueueRight",
    "Token",
    "access_check",
    "granted_access",
    "default_queue_descriptor",
    "describe",
]
