from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from lanner.directory import file_schema, local_file
from lanner.directory.base import InvalidDirectoryError
from lanner.directory.local_file import load, load_file
from lanner.model.enterprise import EnterpriseMap
from lanner.model.queue import QueuePrivacy

CONTOSO = r"""
[enterprise]
name = "Contoso"

[[site]]
name = "London"
[[site]]
name = "Paris"
id = "a5c0e14e-4d5a-4d3f-9b70-1e0b5f3a7a01"
foreign = true

[[link]]
sites = ["london", "PARIS"]
cost = 3
gates = ["LON-GW", "PAR-GW"]

[[manager]]
name = "LON-GW"
sites = ["London"]
routing = true
address = "127.0.1.1"
networks = ["Backbone"]
directory_server = true
[[manager]]
name = "PAR-GW"
sites = ["Paris"]
routing = true
[[manager]]
name = "LON-1"
sites = ["London"]
in_routing = ["LON-GW"]
out_routing = ["LON-GW"]
foreign = true

[[network]]
name = "Backbone"

[[queue]]
path = 'LON-1\orders'
label = "Orders"
transactional = true
privacy = "body"
"""


def contoso() -> EnterpriseMap:
    return load(CONTOSO.encode()).map


def test_everything_the_file_says() -> None:
    source = contoso()
    london, paris = source.sites
    assert (london.name, paris.name, paris.foreign) == ("London", "Paris", True)
    assert paris.id == UUID("a5c0e14e-4d5a-4d3f-9b70-1e0b5f3a7a01")
    link = source.links[0]
    assert (link.site1, link.site2, link.cost) == (london.id, paris.id, 3)
    gate = source.machine_named("lon-gw")
    client = source.machine_named("LON-1")
    assert gate is not None
    assert client is not None
    assert gate.id in link.gates
    assert (gate.routing, gate.address, gate.directory_server) == (True, "127.0.1.1", True)
    assert gate.networks == (source.networks[0].id,)
    assert client.in_routing == client.out_routing == (gate.id,)
    assert client.foreign
    queue = source.queue_at(r"lon-1\ORDERS")
    assert queue is not None
    assert queue.properties.transactional
    assert queue.properties.privacy is QueuePrivacy.BODY
    assert source.host_of(queue) is client


def test_identifiers_follow_from_names_whatever_their_case() -> None:
    again = load(CONTOSO.replace("London", "LONDON").replace("Contoso", "CONTOSO").encode()).map
    assert again.enterprise.id == contoso().enterprise.id
    assert [site.id for site in again.sites] == [site.id for site in contoso().sites]
    other = load(CONTOSO.replace("Contoso", "Fabrikam").encode()).map
    assert other.sites[0].id != contoso().sites[0].id


def test_parallel_links_have_identifiers_of_their_own() -> None:
    text = CONTOSO + '[[link]]\nsites = ["Paris", "London"]\ncost = 9\n'
    assert len({link.id for link in load(text.encode()).map.links}) == 2


def test_references_may_be_identifiers() -> None:
    source = contoso()
    text = CONTOSO.replace('["london", "PARIS"]', f'["{source.sites[0].id}", "{{{source.sites[1].id}}}"]')
    assert load(text.encode()).map.links[0].site1 == source.sites[0].id


def test_unknown_names_are_kept_for_the_checks() -> None:
    loaded = load(CONTOSO.replace('sites = ["Paris"]', 'sites = ["Pariss"]').encode())
    machine = loaded.map.machine_named("PAR-GW")
    assert machine is not None
    assert loaded.unknown == {machine.sites[0]: "Pariss"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("cost = 3", "cost = three", r"f\.toml:14:8: Invalid value"),
        ("cost = 3", 'cost = "3"', r"f\.toml:14 \(\[\[link\]\] 1\): cost: '3' is not a whole number"),
        ("cost = 3", "cost = true", "is not a whole number"),
        ("cost = 3", "cost = 3.5", "is not a whole number"),
        ("cost = 3", f"cost = {10**30}", "far out of range"),
        ("cost = 3", "", r"f\.toml:12 \(\[\[link\]\] 1\): cost is missing \(add cost"),
        ("cost = 3", "cots = 3", r"unknown key 'cots' \(did you mean 'cost'\?\)"),
        ('["london", "PARIS"]', '["london"]', "a link joins two sites, not 1"),
        ('["london", "PARIS"]', '"london"', "is not a list"),
        ('["london", "PARIS"]', "[1, 2]", "1 is not a text"),
        ("[[network]]", "[[netwrok]]", r"unknown table 'netwrok' \(did you mean 'network'\?\)"),
        ("[[network]]", "[network]", r"\[network\] is a single table \(write \[\[network\]\]\)"),
        ("[enterprise]", "[[enterprise]]", r"there is no \[enterprise\] table"),
        ('name = "Contoso"', "name = 5", r"f\.toml:3 \(\[enterprise\]\): name: 5 is not a text"),
        ('name = "Contoso"', 'name = " "', "the name is empty"),
        ('name = "London"', 'name = "PARIS"', r"f\.toml:8 \(\[\[site\]\] 2\): 'Paris' is named twice"),
        ('name = "London"', 'name = "a\\tb"', "cannot be printed"),
        ('name = "London"', f'name = "{"x" * 300}"', "has 300 characters"),
        ("a5c0e14e-4d5a", "a5c0e14e", "is not a GUID"),
        ('name = "LON-1"', r"name = 'LON\1'", "not allowed there"),
        ('name = "LON-1"', 'name = "."', "is the local computer"),
        ("routing = true", 'routing = "yes"', "neither true nor false"),
        (r"LON-1\orders", r"LON-1\private$\orders", "is not the path of a public queue"),
        (r"LON-1\orders", r".\orders", "is not the path of a public queue"),
        (r"LON-1\orders", "orders", "backslash"),
        ('privacy = "body"', 'privacy = "secret"', "write one of none, optional, body"),
        ('privacy = "body"', 'multicast_address = "1.2.3.4:5"', "is not a multicast address"),
        ('privacy = "body"', "quota = -1", "is not between 0"),
        ('privacy = "body"', "[[queue]]\npath = 'LON-1\\ORDERS'", "is there twice"),
        ('sites = ["Paris"]', f"sites = {['x'] * 300}", "the list has 300 entries"),
        ("[[queue]]", "queue = [1]\n[x]", "."),
    ],
)
def test_what_is_wrong_and_where(old: str, new: str, message: str) -> None:
    with pytest.raises(InvalidDirectoryError, match=message):
        load(CONTOSO.replace(old, new, 1).encode(), "f.toml")


def test_rows_that_are_no_tables() -> None:
    with pytest.raises(InvalidDirectoryError, match="1 is not a table"):
        load(b'site = [1]\n[enterprise]\nname = "x"\n')


def test_not_utf_8() -> None:
    with pytest.raises(InvalidDirectoryError, match=r"f:2: byte 0xe9 is not UTF-8"):
        load(b'[enterprise]\nname = "\xe9"\n', "f")


def test_nested_without_end() -> None:
    with pytest.raises(InvalidDirectoryError):
        load(b"x = " + b"[" * 100_000)


def test_windows_line_ends_and_a_byte_order_mark_are_fine() -> None:
    assert load(b"\xef\xbb\xbf" + CONTOSO.replace("\n", "\r\n").encode()).map.sites


def test_too_large(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(local_file, "MAX_FILE_BYTES", 100)
    path = tmp_path / "big.toml"
    path.write_text(CONTOSO)
    with pytest.raises(InvalidDirectoryError, match="more than 100 bytes"):
        load_file(path)


def test_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(file_schema.LIMITS, "site", 1)
    with pytest.raises(InvalidDirectoryError, match=r"2 times \[\[site\]\] \(at most 1 are read\)"):
        load(CONTOSO.encode())
