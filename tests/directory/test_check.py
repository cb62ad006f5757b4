"""Every finding, with its place and its fix."""

from __future__ import annotations

import msgspec
import pytest

from lanner.directory.check import Finding, Kind, Severity, check
from lanner.directory.local_file import load
from lanner.model.enterprise import EnterpriseMap, Machine, Site, derived_id

GOOD = r"""[enterprise]
name = "Contoso"
[[site]]
name = "London"
[[site]]
name = "Paris"
[[network]]
name = "X"
[[network]]
name = "Y"
[[link]]
sites = ["London", "Paris"]
cost = 3
gates = ["LON-GW", "PAR-GW"]
[[manager]]
name = "LON-GW"
sites = ["London"]
routing = true
[[manager]]
name = "PAR-GW"
sites = ["Paris"]
routing = true
[[manager]]
name = "LON-1"
sites = ["London"]
[[queue]]
path = 'LON-1\orders'
"""


def findings(text: str) -> list[Finding]:
    return check(*load(text.encode(), "f"))


def only(text: str, kind: Kind) -> Finding:
    found = [one for one in findings(text) if one.kind is kind]
    assert len(found) == 1, found
    assert found[0].place
    assert found[0].fix
    return found[0]


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new, 1)


def test_nothing_is_wrong() -> None:
    assert findings(GOOD) == []


def test_two_managers_with_one_identifier() -> None:
    same = 'id = "11111111-1111-1111-1111-111111111111"'
    text = changed('name = "LON-1"', f'name = "LON-1"\n{same}').replace(
        'name = "PAR-GW"\nsites', f'name = "PAR-GW"\n{same}\nsites'
    )
    found = only(text, Kind.SAME_IDENTIFIER)
    assert found.severity is Severity.ERROR
    assert found.place == "f:26 ([[manager]] 3)"
    assert "PAR-GW, LON-1; cloned machines get each other's messages" in found.what


def test_two_sites_with_one_identifier() -> None:
    same = 'id = "11111111-1111-1111-1111-111111111111"'
    text = changed('name = "London"', f'name = "London"\n{same}').replace(
        'name = "Paris"', f'name = "Paris"\n{same}'
    )
    assert only(text, Kind.SAME_IDENTIFIER).place == "f:8 ([[site]] 2)"


def test_two_managers_with_one_name() -> None:
    text = (
        GOOD + '[[manager]]\nname = "lon-1"\nid = "11111111-1111-1111-1111-111111111111"\nsites = ["Paris"]\n'
    )
    assert only(text, Kind.SAME_NAME).place == "f:29 ([[manager]] 4)"


def test_unknown_sites() -> None:
    found = only(
        changed('name = "LON-1"\nsites = ["London"]', 'name = "LON-1"\nsites = ["Lodnon"]'), Kind.UNKNOWN_SITE
    )
    assert found.place == "f:25 ([[manager]] 3)"
    assert "the site Lodnon of LON-1 is unknown" in found.what
    assert found.fix == "did you mean 'London'?"
    found = only(changed('sites = ["London", "Paris"]', 'sites = ["London", "Atlantis"]'), Kind.UNKNOWN_SITE)
    assert found.place == "f:12 ([[link]] 1)"


def test_unknown_gates() -> None:
    found = only(
        changed('gates = ["LON-GW", "PAR-GW"]', 'gates = ["LON-GW", "PAR-GW", "PAR-WG"]'),
        Kind.UNKNOWN_MANAGER,
    )
    assert found.place == "f:14 ([[link]] 1)"
    assert found.fix == "did you mean 'PAR-GW'?"


def test_gates_outside_their_sites() -> None:
    text = GOOD + '[[site]]\nname = "Rome"\n[[manager]]\nname = "ROM-GW"\nsites = ["Rome"]\nrouting = true\n'
    text = text.replace('"PAR-GW"]', '"PAR-GW", "ROM-GW"]')
    found = only(text, Kind.GATE_OUTSIDE)
    assert found.what == "the gate ROM-GW belongs to neither London nor Paris"
    assert "London or Paris" in found.fix


def test_gates_without_routing() -> None:
    text = changed('sites = ["Paris"]\nrouting = true', 'sites = ["Paris"]')
    found = only(text, Kind.GATE_NOT_ROUTING)
    assert found.what == "the gate PAR-GW has no routing = true"
    assert found.fix == "give it routing = true"
    foreign = changed(
        'sites = ["Paris"]\nrouting = true', 'sites = ["Paris"]\nrouting = true\nforeign = true'
    )
    assert "is a foreign system" in only(foreign, Kind.GATE_NOT_ROUTING).what


def test_sites_without_gates_and_unreachable_sites() -> None:
    text = changed('gates = ["LON-GW", "PAR-GW"]', 'gates = ["LON-GW"]')
    assert only(text, Kind.NO_GATE).what.startswith("Paris has links but no gate")
    found = only(text, Kind.UNREACHABLE_SITE)
    assert found.place == "f:5 ([[site]] 2)"
    assert found.what == "no usable links lead from Paris to London"


@pytest.mark.parametrize("cost", ["0", "-4", "1000000"])
def test_costs_out_of_range(cost: str) -> None:
    text = changed("cost = 3", f"cost = {cost}")
    found = only(text, Kind.COST)
    assert found.place == "f:13 ([[link]] 1)"
    assert found.fix == "write a cost from 1 to 999999"
    only(text, Kind.UNREACHABLE_SITE)


def test_parallel_links() -> None:
    text = GOOD + '[[link]]\nsites = ["Paris", "London"]\ncost = 9\n'
    found = only(text, Kind.PARALLEL_LINKS)
    assert found.severity is Severity.WARNING
    assert found.place == "f:29 ([[link]] 2)"
    assert "f:11 ([[link]] 1)" in found.what
    assert "3 and 9" in found.fix


def test_a_link_to_itself() -> None:
    text = GOOD + '[[link]]\nsites = ["Paris", "paris"]\ncost = 9\n'
    assert only(text, Kind.LINK_TO_ITSELF).place == "f:29 ([[link]] 2)"


def test_a_manager_without_a_site() -> None:
    found = only(changed('name = "LON-1"\nsites = ["London"]', 'name = "LON-1"'), Kind.NO_SITE)
    assert found.place == "f:23 ([[manager]] 3)"


@pytest.mark.parametrize(
    ("has", "lacks", "effect"),
    [("in_routing", "out_routing", "what it sends"), ("out_routing", "in_routing", "what it gets")],
)
def test_one_way_lists(has: str, lacks: str, effect: str) -> None:
    found = only(changed('name = "LON-1"', f'name = "LON-1"\n{has} = ["LON-GW"]'), Kind.ONE_WAY)
    assert found.severity is Severity.WARNING
    assert found.place == "f:25 ([[manager]] 3)"
    assert effect in found.what
    assert lacks in found.fix


def test_who_is_on_the_lists() -> None:
    def listing(names: str) -> str:
        return changed('name = "LON-1"', f'name = "LON-1"\nin_routing = {names}\nout_routing = ["LON-GW"]')

    assert "is unknown" in only(listing('["NOBODY"]'), Kind.UNKNOWN_MANAGER).what
    assert "is in no site of LON-1" in only(listing('["PAR-GW"]'), Kind.LIST_OUTSIDE).what
    text = listing('["LON-2"]') + '[[manager]]\nname = "LON-2"\nsites = ["London"]\n'
    assert "is no routing server" in only(text, Kind.LIST_NOT_ROUTING).what


def test_an_isolated_routing_server() -> None:
    text = GOOD + '[[site]]\nname = "Rome"\n[[manager]]\nname = "ROM-RS"\nsites = ["Rome"]\nrouting = true\n'
    found = only(text, Kind.ISOLATED_ROUTER)
    assert found.what == "the routing server ROM-RS is isolated: the gates of its sites do not exist"
    assert found.place == "f:30 ([[manager]] 4)"


def test_a_routing_server_off_its_sites_networks() -> None:
    text = changed('name = "LON-1"', 'name = "LON-1"\nnetworks = ["X"]').replace(
        'name = "LON-GW"', 'name = "LON-GW"\nnetworks = ["Y"]'
    )
    assert "it shares no network with LON-1 of its site" in only(text, Kind.ISOLATED_ROUTER).what


def test_a_routing_server_that_cannot_reach_its_gate() -> None:
    text = changed('name = "LON-GW"', 'name = "LON-GW"\nnetworks = ["Y"]')
    text += '[[manager]]\nname = "LON-RS"\nsites = ["London"]\nrouting = true\nnetworks = ["X"]\n'
    found = [one.what for one in findings(text) if one.kind is Kind.ISOLATED_ROUTER]
    assert "the routing server LON-RS is isolated: the gates of its sites share no network with it" in found


def test_gates_that_share_no_network() -> None:
    text = changed('name = "LON-GW"', 'name = "LON-GW"\nnetworks = ["Y"]').replace(
        'name = "PAR-GW"\nsites', 'name = "PAR-GW"\nnetworks = ["X"]\nsites'
    )
    assert "LON-GW and PAR-GW" in only(text, Kind.GATES_APART).what


def test_unknown_networks() -> None:
    found = only(changed('name = "LON-1"', 'name = "LON-1"\nnetworks = ["XX"]'), Kind.UNKNOWN_NETWORK)
    assert found.fix == "did you mean 'X'?"


def test_queues_of_nobody() -> None:
    found = only(changed(r"'LON-1\orders'", r"'LON-3\orders'"), Kind.UNKNOWN_HOST)
    assert found.place == "f:27 ([[queue]] 1)"
    assert found.fix == "did you mean 'LON-1'?"


def test_errors_come_first_and_read_as_one_line() -> None:
    text = GOOD + '[[link]]\nsites = ["Paris", "London"]\ncost = 0\n'
    found = findings(text)
    assert [one.severity for one in found] == [Severity.ERROR, Severity.WARNING]
    assert str(found[0]).startswith("error: f:30 ([[link]] 2): the cost 0 ")


def test_without_a_file_places_are_names() -> None:
    source = load(GOOD.encode()).map
    paris = source.sites[1]
    lost = Machine(id=derived_id("manager", "LOST"), name="LOST", full_path="CN=msmq,CN=LOST")
    bare = Machine(id=derived_id("manager", "BARE"), name="BARE")
    rome = Site(id=derived_id("site", "Rome"), name="Rome")
    link = msgspec.structs.replace(source.links[0], id=derived_id("link", "x"))
    queue = msgspec.structs.replace(source.queues[0], id=derived_id("queue", "x"), path=r"GONE\q")
    broken = source.changed(
        sites=(*source.sites, rome),
        machines=(*source.machines, lost, bare),
        links=(*source.links, link),
        queues=(queue,),
    )
    places = {one.kind: one.place for one in check(broken) if one.kind is not Kind.NO_SITE}
    assert places == {
        Kind.UNREACHABLE_SITE: "site Rome",
        Kind.PARALLEL_LINKS: "link London-Paris",
        Kind.UNKNOWN_HOST: r"GONE\q",
    }
    assert [one.place for one in check(broken) if one.kind is Kind.NO_SITE] == [
        "CN=msmq,CN=LOST",
        "manager BARE",
    ]
    assert paris.name == "Paris"


def test_many_wrong_names_do_not_take_for_ever() -> None:
    source = load(GOOD.encode()).map
    machines = tuple(
        Machine(id=derived_id("m", str(number)), name=f"M{number}", sites=(derived_id("site", f"N{number}"),))
        for number in range(5000)
    )
    broken: EnterpriseMap = source.changed(machines=(*source.machines, *machines))
    assert len(check(broken)) == 5000
