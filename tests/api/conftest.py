"""A running service on a free port of loopback, and a client for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from tests.api.served import QUEUE, Served

from lanner.config import load_config
from lanner.service import running


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    loaded = load_config(
        environment={},
        flags={
            "manager.data": str(tmp_path / "data"),
            "manager.name": "LON-1",
            "api.port": 0,
            "network.srmp_port": 0,
        },
    )
    async with running(loaded) as (service, _):
        token = (tmp_path / "data" / "token").read_text().strip()
        headers = {"authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(base_url=service.api.url, headers=headers) as http:
            yield Served(service, http, tmp_path / "data")


@pytest.fixture
async def queue(served: Served) -> str:
    await served.ask("POST", "/v1/queues", path=QUEUE)
    return QUEUE
