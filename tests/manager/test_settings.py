from __future__ import annotations

from typing import Any

import pytest
from tests.manager.conftest import Opener

from lanner.manager import ManagerSettings
from lanner.model.errors import InvalidPropertyError
from lanner.model.message import INFINITE


@pytest.mark.parametrize(
    "right",
    [
        {},
        {"quota": 0, "journal_quota": 0},
        {"quota": INFINITE, "journal_quota": INFINITE},
        {"history_age": 0, "history_bytes": 0, "outcome_age": 0, "cache_bytes": 0},
        {"maintenance_interval": 0.001},
    ],
    ids=str,
)
def test_right_settings(right: dict[str, Any]) -> None:
    ManagerSettings(**right).check()


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"quota": -1}, "quota is not between 0 and 4294967295"),
        ({"quota": INFINITE + 1}, "quota is not between"),
        ({"journal_quota": -1}, "journal_quota is not between"),
        ({"journal_quota": INFINITE + 1}, "journal_quota is not between"),
        ({"history_age": -1}, "history_age is negative"),
        ({"history_bytes": -1}, "history_bytes is negative"),
        ({"outcome_age": -1}, "outcome_age is negative"),
        ({"cache_bytes": -1}, "cache_bytes is negative"),
        ({"maintenance_interval": 0}, "maintenance_interval is not positive"),
    ],
    ids=str,
)
async def test_wrong_settings_keep_the_manager_from_starting(
    opened: Opener, wrong: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(InvalidPropertyError, match=complaint):
        async with opened(**wrong):
            pass
