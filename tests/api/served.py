"""What the tests of the API share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from lanner.service import Service

QUEUE = r".\private$\orders"


@dataclass
class Served:
    """A service and an HTTP client with the owner's token."""

    service: Service
    http: httpx.AsyncClient
    data: Path

    async def ask(self, method: str, path: str, /, **content: Any) -> dict[str, Any]:
        """Make a request that is done, and take its answer apart."""
        return await self.ask_refused(200, method, path, **content)

    async def ask_refused(self, status: int, method: str, path: str, /, **content: Any) -> dict[str, Any]:
        """Make a request that ends with this status, and take its answer apart."""
        if method in ("GET", "DELETE"):
            response = await self.http.request(method, path, params=content)
        else:
            response = await self.http.request(method, path, json=content)
        assert response.status_code == status, response.text
        answer = response.json()
        assert isinstance(answer, dict)
        return answer
