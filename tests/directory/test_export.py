from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.directory.test_local_file import CONTOSO
from tests.routing.worlds import Shape, enterprises

from lanner.directory.export import dump
from lanner.directory.local_file import load
from lanner.model.enterprise import (
    ConnectedNetwork,
    DirectoryServerType,
    EnterpriseMap,
    Machine,
    OperatingSystemType,
    PublicQueue,
)
from lanner.model.queue import QueuePrivacy, QueueProperties


def contents(source: EnterpriseMap) -> tuple[Any, ...]:
    return (
        source.enterprise,
        source.sites,
        source.links,
        source.networks,
        source.machines,
        source.queues,
    )


def test_what_is_written_reads_as_the_same() -> None:
    source = load(CONTOSO.encode()).map
    assert contents(load(dump(source).encode()).map) == contents(source)


@given(
    enterprises(Shape(multi_site=True, networks=True, lists=True, gateless=True, wrong=True)),
    st.text(min_size=1, max_size=20).filter(lambda text: text.isprintable() and text.strip()),
)
@settings(max_examples=100, deadline=None)
def test_whatever_the_enterprise(source: EnterpriseMap, name: str) -> None:
    first = msgspec.structs.replace(
        source.machines[0],
        version=name,
        os_type=OperatingSystemType.WIN_SERVER,
        directory_server_type=DirectoryServerType.PRIMARY_SITE_CONTROLLER,
        create_time=5,
    )
    queue = PublicQueue(
        id=UUID(int=77),
        path=f"{first.name}\\orders",
        manager=first.id,
        properties=QueueProperties(label=name, privacy=QueuePrivacy.NONE, quota=7, type_id=UUID(int=3)),
    )
    source = source.changed(machines=(first, *source.machines[1:]), queues=(queue,))
    assert contents(load(dump(source).encode()).map) == contents(source)


def test_names_that_would_be_read_as_others_are_written_as_identifiers() -> None:
    clones = tuple(Machine(id=UUID(int=number), name="SAME") for number in (1, 2))
    listing = Machine(id=UUID(int=3), name="X", in_routing=(UUID(int=2),), networks=(UUID(int=9),))
    source = load(CONTOSO.encode()).map
    network = ConnectedNetwork(id=UUID(int=9), name="N")
    source = source.changed(machines=(*clones, listing), networks=(network,), links=(), queues=())
    assert contents(load(dump(source).encode()).map) == contents(source)
