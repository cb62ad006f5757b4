"""What a directory says over LDAP and what a file says give the same routes."""

from __future__ import annotations

import asyncio
from itertools import permutations

from hypothesis import given, settings
from tests.directory.ldap.fake import FakeLdap
from tests.interop.ldap_enterprise import TEXT, build, routing_part, with_identifiers
from tests.routing.worlds import Shape, enterprises

from lanner.directory.export import dump
from lanner.directory.ldap.directory import LdapDirectory
from lanner.directory.ldap.settings import parse_url
from lanner.directory.local_file import load
from lanner.model.enterprise import EnterpriseMap, RoutingLink
from lanner.routing.explain import explain
from lanner.routing.topology import Topology


async def over_ldap(meant: EnterpriseMap) -> EnterpriseMap:
    server = FakeLdap()
    for machine in meant.machines:
        server.computer(machine.name)
    directory = LdapDirectory(parse_url("ldaps://dc1", gssapi=True), server)
    await build(directory, meant)
    found = await directory.read()
    assert directory.problems == ()
    return found


def same_routes(one: EnterpriseMap, other: EnterpriseMap) -> None:
    assert routing_part(one) == routing_part(other)
    left, right = Topology(one), Topology(other)
    for pair in permutations([machine.id for machine in one.machines], 2):
        assert explain(left, *pair) == explain(right, *pair)


async def test_the_enterprise_that_samba_gets() -> None:
    found = await over_ldap(load(TEXT.encode()).map)
    text = TEXT.replace("DC=msmq,DC=test", found.enterprise.name)
    same_routes(found, load(with_identifiers(text, found).encode()).map)


@settings(max_examples=40, deadline=None)
@given(enterprises(Shape(multi_site=True, lists=True, gateless=True)))
def test_any_enterprise(meant: EnterpriseMap) -> None:
    # Active Directory has one link from a site to another: the name is made of the two.
    links: dict[object, RoutingLink] = {}
    for link in sorted(meant.links, key=lambda link: link.cost):
        links.setdefault((link.site1, link.site2), link)
    found = asyncio.run(over_ldap(meant.changed(links=tuple(links.values()))))
    assert len(found.links) == len(links)
    assert {machine.name for machine in found.machines} == {machine.name for machine in meant.machines}
    same_routes(found, load(dump(found).encode()).map)
