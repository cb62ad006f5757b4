from __future__ import annotations

from uuid import UUID

from lanner.model.enterprise import (
    ConnectedNetwork,
    Enterprise,
    EnterpriseMap,
    Machine,
    PublicQueue,
    RoutingLink,
    Site,
    derived_id,
)

LONDON, PARIS, NOWHERE = UUID(int=1), UUID(int=2), UUID(int=3)
NET_X, NET_Y = UUID(int=11), UUID(int=12)

LON_GW = Machine(id=UUID(int=21), name="LON-GW", sites=(LONDON,), routing=True, networks=(NET_X,))
LON_1 = Machine(id=UUID(int=20), name="LON-1", qualified_name="lon-1.contoso.com", sites=(LONDON, PARIS))
PAR_GW = Machine(id=UUID(int=22), name="PAR-GW", sites=(PARIS,), routing=True, networks=(NET_Y,))
MAINFRAME = Machine(id=UUID(int=23), name="HOST", sites=(PARIS,), routing=True, foreign=True)
CLONE = Machine(id=LON_1.id, name="CLONE", sites=(PARIS,), routing=True)
ORDERS = PublicQueue(id=UUID(int=31), path=r"LON-1\orders", qualified_path=r"lon-1.contoso.com\orders")

MAP = EnterpriseMap(
    enterprise=Enterprise(id=UUID(int=9), name="Contoso"),
    sites=(Site(id=LONDON, name="London"), Site(id=PARIS, name="Paris")),
    links=(
        RoutingLink(
            id=UUID(int=41),
            site1=LONDON,
            site2=PARIS,
            cost=3,
            gates=(LON_GW.id, PAR_GW.id, LON_1.id, MAINFRAME.id, UUID(int=99)),
        ),
        RoutingLink(id=UUID(int=42), site1=LONDON, site2=NOWHERE, cost=0),
    ),
    networks=(ConnectedNetwork(id=NET_X, name="X"), ConnectedNetwork(id=NET_Y, name="Y")),
    machines=(LON_GW, LON_1, PAR_GW, MAINFRAME, CLONE),
    queues=(ORDERS,),
)


def test_identifiers_are_derived_without_case() -> None:
    assert derived_id("site", "London") == derived_id("site", "LONDON")
    assert derived_id("site", "London") != derived_id("manager", "London")
    assert derived_id("site", "London", enterprise=LONDON) != derived_id("site", "London", enterprise=PARIS)
    # What was derived once must stay: managers would lose their identity.
    assert derived_id("site", "London") == UUID("991cd743-27ec-50bd-ab86-8348e581b07c")


def test_by_identifier() -> None:
    assert MAP.site(LONDON) is MAP.sites[0]
    assert MAP.link(UUID(int=41)) is MAP.links[0]
    assert MAP.network(NET_X) is MAP.networks[0]
    assert MAP.machine(LON_GW.id) is LON_GW
    assert MAP.queue(ORDERS.id) is ORDERS
    assert MAP.machine(UUID(int=99)) is None


def test_of_clones_the_first_counts() -> None:
    assert MAP.machine(LON_1.id) is LON_1
    assert CLONE not in MAP.machines_in(PARIS)
    assert CLONE not in MAP.routing_servers_in(PARIS)


def test_by_name_without_case() -> None:
    assert MAP.site_named("LONDON") is MAP.sites[0]
    assert MAP.network_named("x") is MAP.networks[0]
    assert MAP.machine_named("lon-1") is LON_1
    assert MAP.machine_named("LON-1.CONTOSO.COM") is LON_1
    assert MAP.queue_at(r"LON-1\ORDERS") is ORDERS
    assert MAP.queue_at(r"LON-1.contoso.com\orders") is ORDERS
    assert MAP.machine_named("x") is None


def test_what_a_person_types() -> None:
    assert MAP.find_machine("lon-gw") is LON_GW
    assert MAP.find_machine(str(LON_GW.id)) is LON_GW
    assert MAP.find_machine("nobody") is None
    assert MAP.find_site("paris") is MAP.sites[1]
    assert MAP.find_site(str(PARIS)) is MAP.sites[1]
    assert MAP.find_site("nowhere") is None


def test_who_hosts_a_queue() -> None:
    assert MAP.host_of(ORDERS) is LON_1
    assert MAP.host_of(PublicQueue(id=UUID(int=1), path=r"X\q", manager=LON_GW.id)) is LON_GW
    assert (ORDERS.computer, ORDERS.name) == ("LON-1", "orders")


def test_what_belongs_together() -> None:
    assert MAP.machines_in(LONDON) == (LON_1, LON_GW)  # by identifier
    assert MAP.machines_in(PARIS) == (LON_1, PAR_GW, MAINFRAME)
    assert MAP.machines_in(NOWHERE) == ()
    assert MAP.routing_servers_in(PARIS) == (PAR_GW,)  # a foreign system does not route
    assert MAP.links_of(LONDON) == MAP.links
    assert MAP.links_of(PARIS) == MAP.links[:1]
    assert MAP.links[0].other(LONDON) == PARIS
    assert MAP.links[0].other(PARIS) == LONDON


def test_gates_need_the_link_the_site_and_the_role() -> None:
    assert MAP.gates_of(LONDON) == (LON_GW,)
    assert MAP.gates_of(PARIS) == (PAR_GW,)
    assert MAP.gates_of(NOWHERE) == ()
    assert MAP.is_gate(PAR_GW.id)
    assert not MAP.is_gate(LON_1.id)


def test_networks() -> None:
    assert not MAP.share_network(LON_GW, PAR_GW)
    assert MAP.share_network(LON_GW, LON_GW)
    assert MAP.share_network(LON_GW, LON_1)  # it names none, so it is on all


def test_costs() -> None:
    assert MAP.links[0].has_right_cost
    assert not MAP.links[1].has_right_cost


def test_a_change_makes_another_snapshot() -> None:
    after = MAP.changed(links=())
    assert after is not MAP
    assert after.gates_of(LONDON) == ()
    assert MAP.gates_of(LONDON) == (LON_GW,)
    assert after.machines is MAP.machines
