"""Every endpoint does what its summary says."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import sys
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pyarrow
import pytest
from tests.api.served import QUEUE, Served

from lanner.api.endpoints import ENDPOINTS
from lanner.config import load_config
from lanner.model.history import HistoryRow
from lanner.schema.history import BLOCK_LENGTH
from lanner.service import running

HELLO = base64.b64encode(b"hello").decode()


async def send(served: Served, queue: str = QUEUE, **message: object) -> dict[str, Any]:
    message = {"body": HELLO, "durable": True, **message}
    return await served.ask("POST", "/v1/messages/send", queue=queue, messages=[message])


async def test_a_message_is_sent_peeked_and_received(served: Served, queue: str) -> None:
    sent = await send(served, label="first", priority=5)
    peeked = await served.ask("POST", "/v1/messages/peek", queue=queue)
    received = await served.ask("POST", "/v1/messages/receive", queue=queue)
    [message] = received["messages"]
    assert peeked == received
    assert [message["id"]] == sent["ids"]
    assert [message["lookup_id"]] == sent["lookup_ids"]
    assert (message["label"], message["priority"], message["class"], message["body"]) == (
        "first",
        5,
        0,
        HELLO,
    )
    assert await served.ask("POST", "/v1/messages/receive", queue=queue) == {"messages": []}


async def test_message_pack_carries_plain_bytes(served: Served, queue: str) -> None:
    headers = {"content-type": "application/msgpack"}
    request = {"queue": queue, "messages": [{"body": b"\x00\xff" * 10}]}
    sent = await served.http.post(
        "/v1/messages/send", content=msgspec.msgpack.encode(request), headers=headers
    )
    assert sent.headers["content-type"] == "application/msgpack"
    request = {"queue": queue}
    received = await served.http.post(
        "/v1/messages/receive", content=msgspec.msgpack.encode(request), headers=headers
    )
    assert msgspec.msgpack.decode(received.content)["messages"][0]["body"] == b"\x00\xff" * 10


async def test_a_receive_waits_for_a_message(served: Served, queue: str) -> None:
    waiting = asyncio.create_task(served.ask("POST", "/v1/messages/receive", queue=queue, wait=10))
    await asyncio.sleep(0.05)
    await send(served, label="late")
    answer = await waiting
    assert answer["messages"][0]["label"] == "late"


async def test_a_client_that_goes_away_while_it_waits_takes_nothing(served: Served, queue: str) -> None:
    with pytest.raises(httpx.ReadTimeout):
        await served.http.post("/v1/messages/receive", json={"queue": queue, "wait": 30}, timeout=0.1)
    await asyncio.sleep(0.1)
    await send(served)
    received = await served.ask("POST", "/v1/messages/receive", queue=queue)
    assert len(received["messages"]) == 1


async def test_a_key_makes_a_repeated_send_harmless(served: Served, queue: str) -> None:
    request = {"queue": queue, "messages": [{"body": HELLO, "durable": True}], "key": "once"}
    first = await served.ask("POST", "/v1/messages/send", **request)
    second = await served.ask("POST", "/v1/messages/send", **request)
    assert (first["replayed"], second["replayed"]) == (False, True)
    assert first["ids"] == second["ids"]
    assert (await served.ask("GET", "/v1/queue", queue=queue))["messages"] == 1


async def test_by_identifier_correlation_and_lookup(served: Served, queue: str) -> None:
    first = await send(served, label="first")
    identifier = first["ids"][0]
    await send(served, label="second", correlation_id=identifier)
    await send(served, label="third")
    by_correlation = await served.ask("POST", "/v1/messages/receive", queue=queue, correlation_id=identifier)
    by_id = await served.ask("POST", "/v1/messages/receive", queue=queue, message_id=identifier)
    last = await served.ask("POST", "/v1/messages/receive", queue=queue, action="last")
    labels = [answer["messages"][0]["label"] for answer in (by_correlation, by_id, last)]
    assert labels == ["second", "first", "third"]


async def test_a_message_is_moved_to_a_subqueue(served: Served, queue: str) -> None:
    sent = await send(served)
    lookup_id = sent["lookup_ids"][0]
    await served.ask("POST", "/v1/messages/move", queue=queue, lookup_id=lookup_id, target=queue + ";checked")
    received = await served.ask("POST", "/v1/messages/receive", queue=queue + ";checked")
    assert received["messages"][0]["lookup_id"] == lookup_id


async def test_a_transaction_commits_and_aborts(served: Served) -> None:
    await served.ask("POST", "/v1/queues", path=QUEUE, transactional=True)
    for end, left in (("abort", 0), ("commit", 1)):
        transaction = (await served.ask("POST", "/v1/transactions"))["transaction"]
        await served.ask(
            "POST", "/v1/messages/send", queue=QUEUE, messages=[{"body": HELLO}], transaction=transaction
        )
        await served.ask("POST", f"/v1/transactions/{end}", transaction=transaction)
        assert (await served.ask("GET", "/v1/queue", queue=QUEUE))["messages"] == left
    await served.ask_refused(409, "POST", "/v1/transactions/commit", transaction=transaction)


async def test_a_dead_clients_transaction_is_aborted_when_its_lease_ends(served: Served, queue: str) -> None:
    await send(served)
    begun = await served.ask("POST", "/v1/transactions", lease=0.2)
    await served.ask("POST", "/v1/messages/receive", queue=queue, transaction=begun["transaction"])
    assert await served.ask("POST", "/v1/messages/receive", queue=queue) == {"messages": []}
    back = await served.ask("POST", "/v1/messages/receive", queue=queue, wait=5)
    assert back["messages"][0]["aborts"] == 1
    await served.ask_refused(409, "POST", "/v1/transactions/renew", transaction=begun["transaction"])


async def test_a_transactional_send_of_its_own(served: Served) -> None:
    await served.ask("POST", "/v1/queues", path=QUEUE, transactional=True)
    request = {"queue": QUEUE, "messages": [{"body": HELLO}]}
    refused = await served.ask_refused(409, "POST", "/v1/messages/send", **request)
    assert refused["error"] == "TransactionUsage"
    await served.ask("POST", "/v1/messages/send", transactional=True, **request)
    assert (await served.ask("GET", "/v1/queue", queue=QUEUE))["messages"] == 1


async def test_queues_are_created_changed_listed_purged_and_deleted(served: Served, queue: str) -> None:
    changed = await served.ask("PATCH", "/v1/queue", queue=queue, label="Orders", quota=100)
    assert (changed["label"], changed["quota"]) == ("Orders", 100)
    await send(served)
    listed = await served.ask("GET", "/v1/queues")
    [found] = [one for one in listed["queues"] if one["path"] == queue]
    assert (found["messages"], found["bytes"], found["journal_messages"]) == (1, 133, 0)
    assert await served.ask("POST", "/v1/queue/purge", queue=queue) == {"purged": 1}
    await served.ask("DELETE", "/v1/queue", queue=queue)
    await served.ask_refused(404, "GET", "/v1/queue", queue=queue)


async def test_an_outgoing_queue_is_paused_and_resumed(served: Served) -> None:
    name = r"DIRECT=OS:paris\private$\orders"
    await send(served, queue=name)
    await served.ask("POST", "/v1/queue/pause", queue=name)
    assert (await served.ask("GET", "/v1/queue", queue=name))["state"] == "on-hold"
    await served.ask("POST", "/v1/queue/resume", queue=name)
    shown = await served.ask("GET", "/v1/queue", queue=name)
    assert (shown["state"], shown["messages"]) == ("inactive", 1)
    assert "no protocol" in str(shown["explanation"])


async def test_a_plan_is_shown_and_applied(served: Served, queue: str) -> None:
    declared = {"queues": [{"path": queue, "label": "Orders"}, {"path": r".\private$\other"}]}
    shown = await served.ask("POST", "/v1/queues/plan", **declared)
    assert shown == {
        "steps": [rf"change {queue}: label: '' -> 'Orders'", r"create .\private$\other"],
        "applied": False,
    }
    await served.ask("POST", "/v1/queues/plan", apply=True, **declared)
    assert (await served.ask("POST", "/v1/queues/plan", **declared))["steps"] == []


async def test_a_dead_letter_is_listed_explained_and_replayed(served: Served, queue: str) -> None:
    await send(served, label="doomed", time_to_be_received=0, dead_letter=True)
    await asyncio.sleep(0.05)
    listed = await served.ask("GET", "/v1/deadletters", destination=queue)
    [letter] = listed["dead_letters"]
    assert letter["reason"] == "the time to be received ran out"
    lookup_id = letter["message"]["lookup_id"]
    shown = await served.ask("GET", "/v1/deadletter", lookup_id=lookup_id)
    assert shown["message"]["body"] == HELLO
    told = await served.ask("GET", "/v1/why", subject=letter["message"]["id"])
    assert "dead letter" in str(told["summary"])
    wrong = await served.ask(
        "POST", "/v1/deadletters/replay", lookup_ids=[lookup_id], destination=r".\private$\nowhere"
    )
    assert "no queue" in wrong["replayed"][0]["error"]
    await served.ask("POST", "/v1/queues", path=r".\private$\second")
    await served.ask(
        "POST",
        "/v1/deadletters/replay",
        lookup_ids=[lookup_id],
        destination=r".\private$\second",
        dry_run=True,
    )
    assert len((await served.ask("GET", "/v1/deadletters"))["dead_letters"]) == 1


async def test_the_history_as_json_lines_and_as_arrow(served: Served, queue: str) -> None:
    await send(served, label="one")
    await send(served, label="two")
    lines = (await served.http.get("/v1/history", params={"first": 2})).text.splitlines()
    assert [(row["lsn"], row["label"]) for row in map(json.loads, lines)] == [(2, "two")]
    arrow = await served.http.get("/v1/history", params={"format": "arrow"})
    table = pyarrow.ipc.open_stream(arrow.content).read_all()
    assert table.column("label").to_pylist() == ["one", "two"]


async def test_the_history_as_it_is_kept(served: Served, queue: str) -> None:
    await send(served, label="one")
    await send(served, label="two")
    data = (await served.http.get("/v1/history", params={"format": "blocks"})).content
    labels = []
    while data:
        (length,) = BLOCK_LENGTH.unpack_from(data)
        block, data = data[4 : 4 + length], data[4 + length :]
        labels += [row.label for row in msgspec.msgpack.decode(block, type=list[HistoryRow])]
    assert labels == ["one", "two"]


async def test_readers_of_the_history(served: Served, queue: str) -> None:
    await send(served)
    await served.ask("POST", "/v1/history/readers", name="spark")
    assert (await served.ask("POST", "/v1/history/confirm", name="spark", lsn=1))["confirmed"] == 1
    status = await served.ask("GET", "/v1/history/status")
    assert [reader["name"] for reader in status["readers"]] == ["spark"]
    await served.ask("DELETE", "/v1/history/readers", name="spark")
    await served.ask_refused(400, "POST", "/v1/history/confirm", name="spark", lsn=1)


async def test_backup_compact_offline_online_status(served: Served, queue: str) -> None:
    await send(served)
    backup = await served.ask("POST", "/v1/backup", name="copy.db")
    assert (served.data / str(backup["name"])).stat().st_size == backup["bytes"]
    await served.ask("POST", "/v1/compact")
    await served.ask("POST", "/v1/offline")
    assert (await served.ask("GET", "/v1/status"))["online"] is False
    await served.ask("POST", "/v1/online")
    status = await served.ask("GET", "/v1/status")
    assert (status["name"], status["messages"], status["online"]) == ("LON-1", 1, True)


async def test_flow_control_refuses_and_admits(served: Served, queue: str) -> None:
    await served.ask("POST", "/v1/flow-control", throttled=True)
    refused = await served.ask_refused(
        507, "POST", "/v1/messages/send", queue=queue, messages=[{"durable": True}]
    )
    assert refused["error"] == "QuotaExceeded"
    await served.ask("POST", "/v1/flow-control", throttled=False)
    await send(served)


async def test_where_a_queue_is(served: Served) -> None:
    made = await served.ask("POST", "/v1/queues", path=r".\catalogue")
    here = await served.ask("GET", "/v1/queue/path", queue=f"PUBLIC={made['id']}")
    assert here == {"path": r"LON-1\catalogue", "machine": "LON-1"}
    there = await served.ask("GET", "/v1/queue/path", queue="DIRECT=OS:paris\\orders")
    assert there == {"path": r"paris\orders", "machine": "paris"}


async def test_an_exclusive_reader_keeps_others_out(served: Served, queue: str) -> None:
    waiting = asyncio.create_task(
        served.ask("POST", "/v1/messages/receive", queue=queue, wait=10, exclusive=True)
    )
    await asyncio.sleep(0.05)
    refused = await served.ask_refused(409, "POST", "/v1/messages/receive", queue=queue)
    assert refused["error"] == "SharingViolation"
    await send(served)
    assert len((await waiting)["messages"]) == 1
    assert await served.ask("POST", "/v1/messages/receive", queue=queue) == {"messages": []}


async def test_metrics_count_empty_queues_too(served: Served, queue: str) -> None:
    await send(served)
    text = (await served.http.get("/metrics")).text
    assert f'lanner_queue_messages{{queue="{queue.replace(chr(92), chr(92) * 2)}"}} 1' in text
    assert 'lanner_queue_messages{queue=".\\\\system$;deadletter"} 0' in text
    assert "lanner_history_lsn 1" in text
    assert re.search(r'lanner_commit_seconds_bucket\{le="\+Inf"\} [1-9]', text)
    for line in text.splitlines():
        assert re.fullmatch(r"# (HELP|TYPE) .*|[a-z_]+(\{[^}]*\})? [0-9.e+-]+", line), line


async def test_the_document_names_every_endpoint(served: Served) -> None:
    document = (await served.http.get("/openapi.json")).json()
    named = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert named == {(endpoint.method, endpoint.path) for endpoint in ENDPOINTS}


def test_every_endpoint_is_tried_here() -> None:
    source = Path(__file__).read_text()
    for endpoint in ENDPOINTS:
        path = re.escape(endpoint.path).replace("commit", "(commit|{end})").replace("abort", "(abort|{end})")
        if "tokens" not in endpoint.path:  # test_security.py
            assert re.search(f'"{path}"', source), endpoint.path


async def test_redirections_are_added_removed_and_replaced(served: Served) -> None:
    nothing = await served.ask("GET", "/v1/srmp/redirections")
    assert nothing == {
        "inbound": [],
        "outbound": [],
        "outbound_exceptions": [],
        "receipts": [],
        "default_receipts": "",
    }
    there = {"from": "http://paris/*", "to": "http://proxy:8080/"}
    await served.ask("POST", "/v1/srmp/redirections", kind="outbound", **there)
    await served.ask("POST", "/v1/srmp/redirections", kind="exception", **{"from": "http://paris/msmq/a"})
    added = await served.ask("POST", "/v1/srmp/redirections", kind="default-receipts", to="http://us/")
    assert added == {
        **nothing,
        "outbound": [there],
        "outbound_exceptions": ["http://paris/msmq/a"],
        "default_receipts": "http://us/",
    }
    removed = await served.ask(
        "DELETE", "/v1/srmp/redirections", kind="outbound", **{"from": "HTTP://Paris/*"}
    )
    assert removed == {**added, "outbound": []}
    refused = await served.ask_refused(400, "DELETE", "/v1/srmp/redirections", kind="outbound")
    assert "redirect list" in refused["hint"]
    replaced = await served.ask("PUT", "/v1/srmp/redirections", receipts=[there])
    assert replaced == await served.ask("GET", "/v1/srmp/redirections") == {**nothing, "receipts": [there]}
    await served.ask_refused(400, "PUT", "/v1/srmp/redirections", inbound=[{"from": "ftp://x/", "to": "y"}])
    assert replaced == await served.ask("GET", "/v1/srmp/redirections")


async def test_two_who_redirect_at_once_are_both_heard(served: Served) -> None:
    hosts = [f"http://host{number}/*" for number in range(20)]
    await asyncio.gather(
        *(served.ask("POST", "/v1/srmp/redirections", kind="exception", **{"from": host}) for host in hosts)
    )
    known = await served.ask("GET", "/v1/srmp/redirections")
    assert sorted(known["outbound_exceptions"]) == sorted(hosts)


async def test_a_stream_is_reset(served: Served, queue: str) -> None:
    name = "DIRECT=HTTP://127.0.0.1:9/msmq/private$/orders"
    message = {"body": HELLO}
    await served.ask("POST", "/v1/messages/send", queue=name, messages=[message] * 3, transactional=True)
    assert await served.ask("POST", "/v1/srmp/reset", queue=name) == {"messages": 3}
    refused = await served.ask_refused(404, "POST", "/v1/srmp/reset", queue=queue)
    assert "no outgoing queue over HTTP" in refused["message"]
    await served.ask_refused(404, "POST", "/v1/srmp/reset", queue=r".\private$\nowhere")


async def test_where_srmp_is_off_the_answer_says_what_to_do(tmp_path: Path) -> None:
    flags = {"manager.data": str(tmp_path / "data"), "api.port": 0, "srmp.enabled": False}
    async with running(load_config(environment={}, flags=flags)) as (service, started):
        assert len(started) == 1
        token = (tmp_path / "data" / "token").read_text().strip()
        headers = {"authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(base_url=service.api.url, headers=headers) as http:
            served = Served(service, http, tmp_path / "data")
            for method in ("GET", "PUT"):
                refused = await served.ask_refused(400, method, "/v1/srmp/redirections")
                assert "srmp.enabled" in refused["hint"]
            await served.ask_refused(400, "POST", "/v1/srmp/reset", queue=QUEUE)


async def test_without_pyarrow_the_answer_says_what_is_missing(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "lanner.model.history_arrow", raising=False)
    refused = await served.ask_refused(400, "GET", "/v1/history", format="arrow")
    assert "lanner[arrow]" in refused["hint"]


async def test_the_history_has_what_was_just_sent(served: Served, queue: str) -> None:
    for number in range(1, 20):
        await served.ask("POST", "/v1/messages/send", queue=queue, messages=[{"body": "eA=="}])
        status = await served.ask("GET", "/v1/history/status")
        assert status["last_lsn"] == number


async def test_the_directory(tmp_path: Path) -> None:
    file = tmp_path / "contoso.toml"
    flags = {
        "manager.data": str(tmp_path / "data"),
        "manager.name": "LON-1",
        "api.port": 0,
        "network.srmp_port": 0,
        "network.discovery_port": 0,
        "directory.file": str(file),
    }
    async with running(load_config(environment={}, flags=flags)) as (service, _):
        token = (tmp_path / "data" / "token").read_text().strip()
        headers = {"authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(base_url=service.api.url, headers=headers) as http:
            served = Served(service, http, tmp_path / "data")
            refused = await served.ask_refused(404, "GET", "/v1/directory")
            assert "contoso.toml" in refused["message"]
            text = """
                [enterprise]
                name = "Contoso"
                [[site]]
                name = "London"
                [[manager]]
                name = "LON-1"
                sites = ["London"]
                routing = true
                """
            taken = await served.ask("PUT", "/v1/directory", text=text)
            assert (taken["enterprise"], taken["manager"], taken["sites"]) == ("Contoso", "LON-1", ["London"])
            assert taken["online"]
            assert taken["routing"]
            await served.ask_refused(400, "PUT", "/v1/directory", text="[[site]")
            file.write_text(file.read_text().replace('"London"', '"Leeds"'))
            assert (await served.ask("POST", "/v1/directory/refresh"))["sites"] == ["Leeds"]
            assert "Leeds" in (await served.ask("GET", "/v1/directory"))["text"]


async def test_without_a_directory_the_answer_says_what_to_do(served: Served) -> None:
    refused = await served.ask_refused(404, "GET", "/v1/directory")
    assert "directory.file" in refused["hint"]
    assert "--enterprise" in (await served.ask_refused(400, "PUT", "/v1/directory", text="x"))["hint"]
