from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from lanner.model.errors import InvalidPropertyError
from lanner.model.message import INFINITE
from lanner.model.queue import NULL_GUID, QueueAccess, QueuePrivacy, QueueProperties


def test_the_defaults_are_those_of_set_queue_defaults() -> None:
    properties = QueueProperties()
    assert (properties.label, properties.type_id, properties.multicast_address) == ("", NULL_GUID, "")
    assert (properties.quota, properties.journal_quota, properties.base_priority) == (INFINITE, INFINITE, 0)
    assert not any((properties.journaling, properties.authentication, properties.transactional))
    assert properties.privacy is QueuePrivacy.OPTIONAL
    assert properties.max_aborts == 0


@pytest.mark.parametrize(
    "right",
    [
        {"label": "x" * 124},
        {"quota": 0},
        {"quota": INFINITE},
        {"journal_quota": 0},
        {"base_priority": -0x8000},
        {"base_priority": 0x7FFF},
        {"max_aborts": 1_000_000},
        {"multicast_address": "224.0.0.0:0"},
        {"multicast_address": "239.255.255.255:65535"},
        {"transactional": True, "journaling": True},
        {"privacy": QueuePrivacy.BODY, "authentication": True, "type_id": UUID(int=1)},
    ],
    ids=str,
)
def test_right_properties(right: dict[str, Any]) -> None:
    QueueProperties(**right).check()


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"label": "x" * 125}, "the label has 125 characters; the limit is 124"),
        ({"quota": -1}, "quota -1 is not between 0 and 4294967295"),
        ({"quota": INFINITE + 1}, "quota 4294967296 is not between 0 and 4294967295"),
        ({"journal_quota": -1}, "journal_quota -1 is not between 0 and 4294967295"),
        ({"journal_quota": INFINITE + 1}, "journal_quota 4294967296 is not between"),
        ({"base_priority": -0x8001}, "base_priority -32769 is not between -32768 and 32767"),
        ({"base_priority": 0x8000}, "base_priority 32768 is not between -32768 and 32767"),
        ({"max_aborts": -1}, "max_aborts -1 is not between 0 and 1000000"),
        ({"max_aborts": 1_000_001}, "max_aborts 1000001 is not between 0 and 1000000"),
        ({"multicast_address": "234.1.1.1"}, "'234.1.1.1' is not a multicast address"),
        ({"multicast_address": "10.0.0.1:80"}, "'10.0.0.1:80' is not a multicast address"),
        ({"multicast_address": "234.1.1.1:65536"}, "'234.1.1.1:65536' is not a multicast address"),
        ({"multicast_address": "234.1.1.1:-1"}, "'234.1.1.1:-1' is not a multicast address"),
        ({"multicast_address": "234.1.1.1:x"}, "'234.1.1.1:x' is not a multicast address"),
        ({"multicast_address": "234.1.1.1: 80"}, "'234.1.1.1: 80' is not a multicast address"),
        ({"multicast_address": "234.1.1.1:8_0"}, "'234.1.1.1:8_0' is not a multicast address"),
        ({"multicast_address": "host:80"}, "'host:80' is not a multicast address"),
        (
            {"multicast_address": "234.1.1.1:8001", "transactional": True},
            "a transactional queue cannot have a multicast address",
        ),
    ],
    ids=str,
)
def test_wrong_properties_are_refused_with_what_is_right(wrong: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidPropertyError) as caught:
        QueueProperties(**wrong).check()
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("access", "reads", "consumes", "is_admin"),
    [
        (QueueAccess.RECEIVE, True, True, False),
        (QueueAccess.SEND, False, False, False),
        (QueueAccess.PEEK, True, False, False),
        (QueueAccess.MOVE, False, False, False),
        (QueueAccess.RECEIVE_ADMIN, True, True, True),
        (QueueAccess.PEEK_ADMIN, True, False, True),
    ],
)
def test_what_each_access_allows(access: QueueAccess, reads: bool, consumes: bool, is_admin: bool) -> None:
    assert (access.reads, access.consumes, access.is_admin) == (reads, consumes, is_admin)
