"""An LDAP server in memory, as far as a directory of queues needs one (``servers.Ldap``)."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID, uuid4

from lanner.directory.base import (
    DirectoryError,
    DirectoryOffline,
    InvalidDirectoryError,
    ObjectAlreadyExists,
    ObjectNotFound,
)
from lanner.directory.ldap import dn
from lanner.directory.ldap.entry import Entry
from lanner.directory.ldap.wire import AllOf, AnyOf, Attributes, Equal, Filter, Present, Scope

__all__ = ["CONFIGURATION", "DOMAIN", "FakeLdap"]

DOMAIN = "DC=test"
CONFIGURATION = f"CN=Configuration,{DOMAIN}"
CREATED = b"20261115113832.0Z"

_Key = tuple[tuple[str, str], ...]


class FakeLdap:
    """Entries by name. It counts what is asked, and can be away."""

    def __init__(self) -> None:
        self.entries: dict[_Key, tuple[str, dict[str, tuple[bytes, ...]]]] = {}
        self.changes = 0
        self.searches = 0
        self.is_away = False
        services = f"CN=MsmqServices,CN=Services,{CONFIGURATION}"
        for name, kind in (
            (DOMAIN, "domainDNS"),
            (f"CN=Computers,{DOMAIN}", "container"),
            (CONFIGURATION, "configuration"),
            (f"CN=Sites,{CONFIGURATION}", "sitesContainer"),
            (f"CN=Services,{CONFIGURATION}", "container"),
            (services, "mSMQEnterpriseSettings"),
        ):
            self.put(name, kind)
        self.set(services, mSMQVersion=(b"200",))

    def put(self, name: str, kind: str, **attributes: tuple[bytes, ...]) -> UUID:
        """Make an entry, as an administrator would."""
        identifier = uuid4()
        self.entries[dn.key(name)] = (
            name,
            {
                "objectclass": (b"top", kind.encode()),
                "objectguid": (identifier.bytes_le,),
                "distinguishedname": (name.encode(),),
                "cn": (dn.value(name).encode(),),
                "whencreated": (CREATED,),
                "whenchanged": (CREATED,),
                "ntsecuritydescriptor": (b"descriptor",),
                **{attribute.lower(): values for attribute, values in attributes.items()},
            },
        )
        self.changes += 1
        return identifier

    def set(self, name: str, **attributes: tuple[bytes, ...]) -> None:
        """Change an entry, as an administrator would: with wrong values too."""
        self.entries[dn.key(name)][1].update({key.lower(): values for key, values in attributes.items()})
        self.changes += 1

    def computer(self, name: str, **attributes: tuple[bytes, ...]) -> None:
        """Join a computer."""
        self.put(f"CN={name},CN=Computers,{DOMAIN}", "computer", **attributes)

    def attributes(self, name: str) -> dict[str, tuple[bytes, ...]]:
        """What an entry has."""
        return self.entries[dn.key(name)][1]

    # Ldap.

    async def search(
        self, base: str, scope: Scope, wanted: Filter, attributes: Sequence[str], *, limit: int
    ) -> list[Entry]:
        self._answer()
        self.searches += 1
        if not base:
            return [self._root()]
        start = self._key(base)
        depth = {Scope.BASE: 0, Scope.ONE_LEVEL: 1, Scope.SUBTREE: 99}[scope]
        names = {attribute.lower() for attribute in attributes}
        found = [
            Entry(name, {key: values for key, values in held.items() if key in names})
            for key, (name, held) in self.entries.items()
            if key[len(key) - len(start) :] == start
            and len(key) - len(start) <= depth
            and (scope is not Scope.ONE_LEVEL or len(key) > len(start))
            and _matches(held, wanted)
        ]
        if len(found) > limit:
            raise InvalidDirectoryError("too many")
        return found

    async def add(self, name: str, attributes: Attributes) -> None:
        self._answer()
        key = dn.key(name)
        if key in self.entries:
            raise ObjectAlreadyExists(name)
        if key[1:] not in self.entries:
            raise ObjectNotFound(name)
        given = dict(attributes)
        kind = given.pop("objectClass")[0].decode()
        self._check(given)
        self.put(name, kind, **{one: tuple(values) for one, values in given.items()})

    async def modify(self, name: str, attributes: Attributes) -> None:
        self._answer()
        _, held = self.entries[self._key(name)]
        self._check({one: values for one, values in attributes.items() if values})
        for one, values in attributes.items():
            held.pop(one.lower(), None)
            if values:
                held[one.lower()] = tuple(values)
        self.changes += 1

    async def delete(self, name: str) -> None:
        self._answer()
        key = self._key(name)
        if any(other[1:] == key for other in self.entries):
            raise DirectoryError("there are other objects under it")
        del self.entries[key]
        self.changes += 1

    async def close(self) -> None:
        pass

    def _answer(self) -> None:
        if self.is_away:
            raise DirectoryOffline("away")

    def _root(self) -> Entry:
        return Entry(
            "",
            {
                "rootDomainNamingContext": (DOMAIN.encode(),),
                "configurationNamingContext": (CONFIGURATION.encode(),),
                "dsServiceName": (b"fake",),
                "highestCommittedUSN": (str(self.changes).encode(),),
            },
        )

    def _key(self, name: str) -> _Key:
        if name.startswith("<GUID="):
            wanted = UUID(name[6:-1]).bytes_le
            for key, (_, held) in self.entries.items():
                if held["objectguid"] == (wanted,):
                    return key
            raise ObjectNotFound(name)
        key = dn.key(name)
        if key not in self.entries:
            raise ObjectNotFound(name)
        return key

    @staticmethod
    def _check(attributes: Attributes) -> None:
        for name, values in attributes.items():
            assert values, f"{name} is added without a value"
            assert all(values), f"{name} has an empty value"
            assert len(set(values)) == len(values), f"{name} has a value twice"


def _matches(held: dict[str, tuple[bytes, ...]], wanted: Filter) -> bool:
    match wanted:
        case Equal(attribute, value):
            sought = value.encode() if isinstance(value, str) else value
            return sought.lower() in [one.lower() for one in held.get(attribute.lower(), ())]
        case Present(attribute):
            return attribute.lower() in held
        case AllOf(parts):
            return all(_matches(held, part) for part in parts)
        case AnyOf(parts):
            return any(_matches(held, part) for part in parts)
