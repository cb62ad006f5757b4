"""SRMP on the network: the listeners, the sessions of the outgoing queues, and who is told what."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Mapping
from urllib.parse import unquote_to_bytes, urlsplit

import msgspec

from lanner.http import HttpListener, Limits, Request, Response
from lanner.manager import QueueManager
from lanner.manager.events import (
    ConnectionChanged,
    OutgoingMessages,
    OutgoingQueuePaused,
    OutgoingQueueResumed,
    QueueCreated,
    QueueDeleted,
    Stopping,
    StreamResendWanted,
)
from lanner.manager.queues import OutgoingQueue, Queue
from lanner.model.codes import MessageClass
from lanner.model.errors import InvalidPropertyError, QueueNotFoundError
from lanner.model.format_name import DirectName
from lanner.model.history import HistoryEvent
from lanner.model.log_fields import about
from lanner.model.message import MAX_MESSAGE_SIZE, Message
from lanner.protocols.srmp.client import Link, LinkOwner, Target, connect
from lanner.protocols.srmp.outgoing import OutgoingSession, Services
from lanner.protocols.srmp.outgoing_stream import SCOPE, StreamProgress
from lanner.protocols.srmp.posting import Poster
from lanner.protocols.srmp.receiver import Receiver
from lanner.protocols.srmp.redirection import Redirections
from lanner.protocols.srmp.settings import SrmpSettings
from lanner.protocols.srmp.signers import Signers
from lanner.protocols.srmp.wire.limits import MAX_ENVELOPE_BYTES
from lanner.protocols.srmp.wire.queue_uri import uri_of
from lanner.store import Changes

__all__ = ["SRMP_LIMITS", "SrmpEndpoint"]

log = logging.getLogger(__name__)

STATE_SCOPE = "srmp"
REDIRECTIONS_KEY = "redirections"

VIRTUAL_DIRECTORY = b"/msmq/"

SRMP_LIMITS = Limits(
    body_bytes=MAX_MESSAGE_SIZE + MAX_ENVELOPE_BYTES + 64 * 1024,
    pipelined=64,
    concurrent=64,
    idle_seconds=300.0,
)
"""A body is one message with its envelope. Several requests of a connection are handled at a time, so that
they can be committed together; a sender that keeps a connection for the session cleanup time may."""


class SrmpEndpoint:
    """Both directions of SRMP for one queue manager."""

    name = "SRMP"

    def __init__(
        self,
        manager: QueueManager,
        settings: SrmpSettings,
        listen: str,
        *,
        port: int,
        https_port: int,
        names: Mapping[str, str],
    ) -> None:
        self._manager = manager
        self._names = {name.casefold(): address for name, address in names.items()}
        self._transfers = manager.transfers
        self._settings = settings
        self._redirections = Redirections()
        self._redirecting = asyncio.Lock()
        self._sessions: dict[int, OutgoingSession] = {}
        self._subscriptions = [
            manager.events.subscribe(QueueCreated, lambda event: self._serve(event.queue)),
            manager.events.subscribe(QueueDeleted, lambda event: self._forget(event.queue)),
            manager.events.subscribe(OutgoingMessages, self._wake),
            manager.events.subscribe(OutgoingQueuePaused, self._pause),
            manager.events.subscribe(OutgoingQueueResumed, self._resume),
            manager.events.subscribe(StreamResendWanted, self._resend),
            manager.events.subscribe(ConnectionChanged, self._change_connection),
            manager.events.subscribe(Stopping, lambda _: self._stop_sessions()),
        ]
        self._tls = _server_context(settings) if settings.certificate else None
        # What the machine trusts is read when it is needed; what an administrator names must be right now.
        self._client_tls = _client_context(settings) if settings.ca_file else None
        signers = Signers.load(settings)
        self._receiver = Receiver(self._transfers, settings, self, signers, lambda: self._redirections)
        handler = _Handler(self._receiver, manager)
        self._listeners = [HttpListener(handler, listen, port, limits=SRMP_LIMITS)]
        if self._tls is not None:
            self._listeners.append(
                HttpListener(handler, listen, https_port, limits=SRMP_LIMITS, tls=self._tls)
            )
        self._services = Services(
            self._transfers,
            settings,
            self._connect,
            Poster(self._own_url, signers, lambda: self._redirections),
            lambda: manager.is_online,
        )
        self._progress: dict[str, bytes] = {}

    # The service's side.

    async def start(self) -> str:
        """Begin to listen and to send; says where."""
        stored = (await self._transfers.state(STATE_SCOPE)).get(REDIRECTIONS_KEY)
        if stored is not None:
            self._redirections = msgspec.json.decode(stored, type=Redirections)
        self._progress = await self._transfers.state(SCOPE)
        self._know_ourselves()
        await self._receiver.load()
        # Before anything comes in: a receipt that nobody takes is not sent again.
        for queue in self._transfers.outgoing():
            self._serve(queue)
        for listener in self._listeners:
            await listener.start()
        for session in tuple(self._sessions.values()):
            self._show_next_hop(session)
            session.wake()
        return " and ".join(listener.url for listener in self._listeners)

    async def stop(self) -> None:
        """Take nothing in, and send nothing out."""
        for unsubscribe in self._subscriptions:
            unsubscribe()
        self._subscriptions.clear()
        self._stop_sessions()
        self._receiver.stop()
        for listener in self._listeners:
            await listener.stop()

    def reload(self) -> list[str]:
        """Read the certificates again, for connections from now on; says what changed."""
        self.check_reload()
        self._client_tls = None
        if self._tls is None:
            return []
        _load_certificate(self._tls, self._settings)
        return ["the HTTPS certificate was read again"]

    def check_reload(self) -> None:
        """Refuse certificates that cannot be used, while those that are in use still are."""
        if self._settings.ca_file:
            _client_context(self._settings)
        if self._tls is not None:
            # A context that fails half way has the new certificate and the old key.
            _server_context(self._settings)

    def _know_ourselves(self) -> None:
        ports = [int(listener.url.rpartition(":")[2]) for listener in self._listeners]
        names = []
        if self._settings.url:
            parts = urlsplit(self._settings.url)
            names.append(parts.hostname or "")
            if parts.port is not None:
                ports.append(parts.port)
        host = urlsplit(self._listeners[0].url).hostname or ""
        if host not in ("0.0.0.0", "::", "127.0.0.1", "::1"):  # noqa: S104 - compared, not bound
            names.append(host)
        self._transfers.listens_at(ports, [name for name in names if name])

    def _own_url(self, scheme: str) -> str:
        """Where others reach us: as it was set, or by the computer's name and our port."""
        if self._settings.url:
            return self._settings.url.rstrip("/")
        is_secure = scheme == "https" and self._tls is not None
        listener = self._listeners[-1 if is_secure else 0]
        port = int(listener.url.rpartition(":")[2])
        return str(Target("https" if is_secure else "http", self._manager.name, port))

    # Sending.

    def _serve(self, queue: Queue) -> None:
        if not isinstance(queue, OutgoingQueue) or queue.id in self._sessions:
            return
        if isinstance(queue.destination, DirectName) and queue.destination.protocol.is_http:
            stored = self._progress.pop(str(queue.id), None)
            progress = msgspec.msgpack.decode(stored, type=StreamProgress) if stored is not None else None
            session = self._sessions[queue.id] = OutgoingSession(queue, self._services, progress)
            self._show_next_hop(session)

    def _show_next_hop(self, session: OutgoingSession) -> None:
        session.queue.next_hops = (str(self._services.poster.target(session.queue)),)

    def _forget(self, queue: Queue) -> None:
        session = self._sessions.pop(queue.id, None)
        if session is not None:
            session.stop()

    def _wake(self, event: OutgoingMessages) -> None:
        session = self._sessions.get(event.queue.id)
        if session is not None:
            session.wake()

    def _pause(self, event: OutgoingQueuePaused) -> None:
        session = self._sessions.get(event.queue.id)
        if session is not None:
            session.pause()

    def _resume(self, event: OutgoingQueueResumed) -> None:
        session = self._sessions.get(event.queue.id)
        if session is not None:
            session.resume()

    def _resend(self, event: StreamResendWanted) -> None:
        session = self._sessions.get(event.queue.id)
        if session is not None:
            session.resend()

    def _change_connection(self, event: ConnectionChanged) -> None:
        for session in tuple(self._sessions.values()):
            if event.online:
                session.resume()
            else:
                session.pause()

    def _stop_sessions(self) -> None:
        for session in self._sessions.values():
            session.stop()

    async def _connect(self, target: Target, owner: LinkOwner) -> Link:
        address = self._names.get(target.host.casefold()) or self._manager.enterprise.address_of(target.host)
        tls = self._verifying_context() if target.scheme == "https" else None
        return await connect(target, owner, address, tls)

    def _verifying_context(self) -> ssl.SSLContext:
        if self._client_tls is None:
            self._client_tls = _client_context(self._settings)
        return self._client_tls

    async def take_receipt(self, receipt: Message, peer: str) -> None:
        """A stream receipt is for the session whose stream it names (3.1.5.1.8, 3.1.5.1.9)."""
        order = receipt.order_receipt
        assert order is not None
        session = next((each for each in self._sessions.values() if each.owns(order.stream)), None)
        is_ours = order.machine == self._manager.identifier
        reason = f"stream {order.stream}, number {order.sequence}"
        if session is None or not is_ours:
            reason += ": no such stream is being sent"
            log.info("a receipt from %s: %s", peer, reason, extra=about(messages=[receipt.id]))
        elif receipt.message_class == MessageClass.ORDER_ACK:
            await session.acknowledge(order.sequence, order.stream)
        elif not await session.conclude(
            order.sequence, receipt.message_class, order.stream, receipt.correlation_id
        ):
            reason += ": no such message waits for it"
        changes = Changes()
        queue = session.queue.name if session is not None else receipt.destination_queue
        self._transfers.record(changes, HistoryEvent.ACKNOWLEDGED, queue, receipt, reason=reason, peer=peer)
        self._transfers.submit(changes)

    # Administration.

    @property
    def redirections(self) -> Redirections:
        """What an administrator has redirected."""
        return self._redirections

    async def redirect(self, redirections: Redirections) -> None:
        """Redirect from now on."""
        await self.change_redirections(lambda _: redirections)

    async def change_redirections(self, change: Callable[[Redirections], Redirections]) -> Redirections:
        """Change what is redirected; says what is now. Of two who change at once, both are heard."""
        async with self._redirecting:
            redirections = change(self._redirections)
            redirections.check()
            changes = Changes()
            changes.state.append((STATE_SCOPE, REDIRECTIONS_KEY, msgspec.json.encode(redirections)))
            await self._transfers.finish(changes)
            self._take_redirections(redirections)
            return redirections

    def _take_redirections(self, redirections: Redirections) -> None:
        before, self._redirections = self._redirections, redirections
        for session in self._sessions.values():
            self._show_next_hop(session)
            url = uri_of(session.queue.name)
            if before.outbound_host(url) != redirections.outbound_host(url):
                # Whatever it is connected to is the wrong host now, and what it waits for may be over.
                session.pause()
                session.resume()

    async def reset_stream(self, name: str) -> int:
        """Begin a new stream with what waits in an outgoing queue. Says how many messages that is."""
        info = self._manager.queue(name)
        for session in self._sessions.values():
            if session.queue.name == info.path:
                return await session.reset()
        raise QueueNotFoundError(
            f"{name} is no outgoing queue over HTTP", hint="list them: lanner queue list --outgoing"
        )


class _Handler:
    """Answers the requests of other queue managers."""

    def __init__(self, receiver: Receiver, manager: QueueManager) -> None:
        self._receiver = receiver
        self._manager = manager

    def check_head(self, request: Request) -> Response | None:
        """Take posts to our virtual directory alone."""
        if request.method != b"POST":
            return Response(405, b"only POST is spoken here\n", headers=((b"allow", b"POST"),))
        path = request.target.partition(b"?")[0]
        if b"%" in path:
            path = unquote_to_bytes(path)
        if path[: len(VIRTUAL_DIRECTORY)].lower() != VIRTUAL_DIRECTORY:
            return Response(404, b"queues are under /msmq/\n")
        if not self._manager.is_running or not self._manager.is_online:
            return Response(503, b"the queue manager is offline\n")
        return None

    def refuse(self, status: int, reason: str) -> Response:
        """What the listener does not take."""
        return Response(status, reason.encode() + b"\n")

    async def handle(self, request: Request) -> Response:
        """Take a message in."""
        content_type = request.headers.get(b"content-type", b"")
        answer = await self._receiver.receive(
            content_type, request.take_body(), request.peer, request.our_address
        )
        if answer.status == 200:
            return OK
        return Response(answer.status, answer.reason.encode() + b"\n")


OK = Response(200)


def _server_context(settings: SrmpSettings) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    _load_certificate(context, settings)
    return context


def _client_context(settings: SrmpSettings) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=settings.ca_file or None)
    except (OSError, ssl.SSLError) as error:
        raise InvalidPropertyError(
            f"srmp.ca_file: {settings.ca_file} cannot be used: {error.strerror or error}",
            hint="it must hold certificates as PEM",
        ) from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _load_certificate(context: ssl.SSLContext, settings: SrmpSettings) -> None:
    try:
        context.load_cert_chain(settings.certificate, settings.key or None)
    except (OSError, ssl.SSLError) as error:
        raise InvalidPropertyError(
            f"srmp.certificate: {settings.certificate} cannot be used: {error.strerror or error}",
            hint="it must be PEM, with the private key in it or in srmp.key",
        ) from error
