from __future__ import annotations

from uuid import UUID

import pytest
from tests.model.test_enterprise import LON_GW, MAP, ORDERS

from lanner.model.directory_query import (
    AttributeFilter,
    ObjectType,
    Operator,
    SortOrder,
    attribute,
    select,
    type_of,
)
from lanner.model.errors import InvalidPropertyError


def costs(operator: Operator, value: object) -> list[int]:
    found = select(MAP, "RoutingLink", [AttributeFilter("ActualCost", operator, value)])
    return [attribute(link, "ActualCost") for link in found]


@pytest.mark.parametrize(
    ("operator", "meant"),
    [
        (Operator.EQUALS, [3]),
        (Operator.NOT_EQUALS, [0]),
        (Operator.LESS_THAN, [0]),
        (Operator.GREATER_THAN, []),
        (Operator.LESS_THAN_OR_EQUAL, [3, 0]),
        (Operator.GREATER_THAN_OR_EQUAL, [3]),
    ],
)
def test_operators(operator: Operator, meant: list[int]) -> None:
    assert costs(operator, 3) == meant


def test_all_filters_must_hold() -> None:
    same = AttributeFilter("Identifier", Operator.EQUALS, UUID(int=41))
    assert len(select(MAP, ObjectType.ROUTING_LINK, [same])) == 1
    dear = AttributeFilter("ActualCost", Operator.GREATER_THAN, 3)
    assert select(MAP, ObjectType.ROUTING_LINK, [same, dear]) == []


def test_texts_compare_without_case() -> None:
    name = AttributeFilter("ComputerName", Operator.EQUALS, "LON-gw")
    assert select(MAP, "QueueManager", [name]) == [LON_GW]


def test_order_by_priority() -> None:
    order = [
        SortOrder("RoutingServer", 1, ascending=False),
        SortOrder("ComputerName", 0),
        SortOrder("ForeignSystem", 2),
    ]
    names = [attribute(one, "ComputerName") for one in select(MAP, "QueueManager", order=order)]
    assert names == ["LON-GW", "PAR-GW", "CLONE", "LON-1", "HOST"]


def test_every_type_and_its_attributes() -> None:
    for kind in ObjectType:
        for one in select(MAP, kind):
            assert type_of(one) is kind
            assert attribute(one, "Identifier") == one.id
    assert attribute(ORDERS, "Label") == ""
    assert attribute(ORDERS, "Pathname") == r"LON-1\orders"


def test_unknown_attributes_and_wrong_comparisons() -> None:
    with pytest.raises(InvalidPropertyError, match="a Site has no attribute 'Cost'"):
        attribute(MAP.sites[0], "Cost")
    with pytest.raises(InvalidPropertyError, match="cannot be ordered"):
        costs(Operator.LESS_THAN, "three")
    assert costs(Operator.EQUALS, "three") == []
