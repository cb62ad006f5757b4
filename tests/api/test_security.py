"""Tokens, limits, and what an error gives away."""

from __future__ import annotations

import asyncio
import stat

import httpx
import pytest
from tests.api.served import Served

from lanner.api.endpoints import ENDPOINTS
from lanner.api.server import API_LIMITS
from lanner.api.tokens import Right


async def test_without_a_token_there_is_no_answer_but_health(served: Served) -> None:
    async with httpx.AsyncClient(base_url=served.service.api.url) as http:
        assert (await http.get("/health/live")).status_code == 200
        assert (await http.get("/health/ready")).status_code == 200
        for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "Basic eDp4"}):
            for endpoint in ENDPOINTS:
                answer = await http.request(endpoint.method, endpoint.path, headers=headers)
                assert answer.status_code == 401, endpoint.path
            assert (await http.get("/openapi.json", headers=headers)).status_code == 401
            assert (await http.get("/nowhere", headers=headers)).status_code == 401


async def test_only_the_owner_can_read_the_token(served: Served) -> None:
    for name in ("token", "tokens.json"):
        assert stat.S_IMODE((served.data / name).stat().st_mode) == 0o600
    token = (served.data / "token").read_text().strip()
    assert token not in (served.data / "tokens.json").read_text()


async def test_a_token_allows_what_its_rights_and_queues_say(served: Served, queue: str) -> None:
    made = await served.ask("POST", "/v1/tokens", name="shop", rights=["send"], queues=[r".\private$\ord*"])
    await served.ask("POST", "/v1/queues", path=r".\private$\secret")
    http = httpx.AsyncClient(
        base_url=served.service.api.url, headers={"authorization": f"Bearer {made['token']}"}
    )
    async with http:

        async def status(path: str, /, **content: object) -> int:
            return (await http.post(path, json=content)).status_code

        assert await status("/v1/messages/send", queue=queue, messages=[{}]) == 200
        assert await status("/v1/messages/send", queue=r"lon-1\PRIVATE$\ORDERS", messages=[{}]) == 200
        assert await status("/v1/messages/send", queue=r".\private$\secret", messages=[{}]) == 403
        assert await status("/v1/messages/receive", queue=queue) == 403
        assert await status("/v1/messages/peek", queue=queue) == 403
        assert await status("/v1/queues", path=r".\private$\mine") == 403
        assert (await http.get("/v1/queues")).status_code == 403
        await served.ask("DELETE", "/v1/tokens", name="shop")
        assert await status("/v1/messages/send", queue=queue, messages=[{}]) == 401
    listed = await served.ask("GET", "/v1/tokens")
    assert [token["name"] for token in listed["tokens"]] == ["owner"]
    await served.ask_refused(400, "DELETE", "/v1/tokens", name="owner")


async def test_what_is_for_administrators_is_refused_to_all_others(served: Served) -> None:
    rights = ["send", "receive", "peek"]
    made = await served.ask("POST", "/v1/tokens", name="shop", rights=rights, queues=["*"])
    headers = {"authorization": f"Bearer {made['token']}"}
    administrative = [endpoint for endpoint in ENDPOINTS if endpoint.right is Right.ADMIN]
    assert {"/v1/srmp/redirections", "/v1/srmp/reset"} <= {endpoint.path for endpoint in administrative}
    async with httpx.AsyncClient(base_url=served.service.api.url, headers=headers) as http:
        for endpoint in administrative:
            answer = await http.request(endpoint.method, endpoint.path)
            assert answer.status_code == 403, (endpoint.method, endpoint.path)


async def test_a_transaction_belongs_to_its_token(served: Served, queue: str) -> None:
    made = await served.ask("POST", "/v1/tokens", name="other", rights=["send", "receive"])
    begun = await served.ask("POST", "/v1/transactions")
    headers = {"authorization": f"Bearer {made['token']}"}
    answer = await served.http.post(
        "/v1/transactions/commit", json={"transaction": begun["transaction"]}, headers=headers
    )
    assert answer.status_code == 409


@pytest.mark.parametrize(
    ("path", "content", "said"),
    [
        ("/v1/messages/send", b"{", "truncated"),
        ("/v1/messages/send", b'{"queue": "x", "messages": []}', "messages"),
        ("/v1/messages/send", b'{"queue": "x", "messages": [{}], "colour": 1}', "colour"),
        ("/v1/messages/send", b'{"queue": "DIRCT=OS:a\\\\b", "messages": [{}]}', "DIRECT=OS"),
        ("/v1/messages/receive", b'{"queue": "x", "count": 100000}', "count"),
        ("/v1/queues", b'{"path": "orders"}', "private$"),
        ("/v1/queues", b"[" * 100_000, ""),
    ],
)
async def test_bad_input_is_answered_with_what_is_wrong(
    served: Served, path: str, content: bytes, said: str
) -> None:
    answer = await served.http.post(path, content=content)
    assert answer.status_code == 400
    assert said in answer.text


async def test_a_body_over_the_limit_is_refused_by_its_head(served: Served) -> None:
    reader, writer = await _connect(served)
    token = (served.data / "token").read_text().strip()
    writer.write(
        f"POST /v1/messages/send HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Length: {API_LIMITS.body_bytes + 1}\r\n\r\n".encode()
    )
    answer = await asyncio.wait_for(reader.read(), 5)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b'"message":"the body is larger than 67,108,864 bytes"' in answer
    writer.close()


async def test_no_body_is_read_from_somebody_without_a_token(served: Served) -> None:
    reader, writer = await _connect(served)
    writer.write(b"POST /v1/messages/send HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n{")
    assert (await asyncio.wait_for(reader.read(), 5)).startswith(b"HTTP/1.1 401")
    writer.close()


async def test_an_error_gives_nothing_away(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise RuntimeError(f"secret path {served.data}")

    monkeypatch.setattr(served.service.manager.store, "compact", broken)
    answer = await served.http.post("/v1/compact")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert str(served.data) not in answer.text
    assert "Traceback" not in answer.text
    assert "reference" in answer.text


async def _connect(served: Served) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    url = httpx.URL(served.service.api.url)
    return await asyncio.open_connection(url.host, url.port)
