"""A domain with an enterprise in it, for all tests that read it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.interop.ldap_clients import filled
from tests.interop.samba import DomainController


@pytest.fixture(scope="session")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DomainController]:
    with DomainController(tmp_path_factory.mktemp("samba")) as running:
        filled(running)
        yield running
