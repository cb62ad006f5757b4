"""schemathesis attacks the API by its own document: no answer is a failure of ours, and nothing is let in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.core.result import Ok
from tests.client.conftest import ServiceThread

from lanner.api.endpoints import ENDPOINTS

EXAMPLES = 25
"""Requests for each endpoint."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceThread]:
    thread = ServiceThread(tmp_path_factory.mktemp("fuzz") / "data")
    thread.start()
    yield thread
    thread.stop()


def _document(service: ServiceThread) -> dict[str, object]:
    response = httpx.get(f"{_url(service)}/openapi.json", headers=_authorization(service.data))
    document = response.json()
    assert isinstance(document, dict)
    return document


def _url(service: ServiceThread) -> str:
    return f"http://127.0.0.1:{service.port}"


def _authorization(data: Path) -> dict[str, str]:
    return {"authorization": f"Bearer {(data / 'token').read_text().strip()}"}


@pytest.mark.parametrize("has_token", [True, False])
def test_no_request_makes_the_api_fail_or_lets_anybody_in(service: ServiceThread, has_token: bool) -> None:
    schema = schemathesis.openapi.from_dict(_document(service))
    headers = _authorization(service.data) if has_token else {"authorization": "Bearer wrong"}
    operations = [result.ok() for result in schema.get_all_operations() if isinstance(result, Ok)]
    assert len(operations) == len(ENDPOINTS)
    for operation in operations:

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            derandomize=True,
            database=None,
            phases=(Phase.explicit, Phase.generate),
            suppress_health_check=list(HealthCheck),
        )
        @given(case=st.one_of(operation.as_strategy(), operation.as_strategy(generation_mode=_NEGATIVE)))
        def attack(case: Any) -> None:
            response = case.call(base_url=_url(service), headers=headers)
            if has_token:
                assert response.status_code < 500 or response.status_code == 507, response.text
            else:
                # Below HTTP there is nothing to authenticate: what is no request is refused to everybody.
                assert response.status_code in (400, 401, 414, 431)

        attack()


_NEGATIVE = schemathesis.GenerationMode.NEGATIVE
