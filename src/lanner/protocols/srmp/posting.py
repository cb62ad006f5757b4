"""Making the POST that carries a message (MC-MQSRM 2.1.1, 3.1.7.2.4, 3.1.7.9)."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote, urlsplit

from msgspec.structs import replace

from lanner.manager.queues import OutgoingQueue
from lanner.model.format_name import DirectName
from lanner.model.message import AuthenticationLevel, Message
from lanner.model.transfer import Sequence
from lanner.protocols.srmp import wire
from lanner.protocols.srmp.client import Target
from lanner.protocols.srmp.mapping import from_message
from lanner.protocols.srmp.redirection import Redirections
from lanner.protocols.srmp.signers import Signers
from lanner.protocols.srmp.wire.queue_uri import uri_of

__all__ = ["ORDER_QUEUE_PATH", "Poster", "target_of"]

ORDER_QUEUE_PATH = "/MSMQ/PRIVATE$/order_queue$"
"""Where stream receipts go (3.1.7.2.4, with the slash that the text leaves out)."""

MAX_PATHS = 1_000
"""Paths of destinations that are remembered: most messages go to few queues."""

_SAFE = "/$!&'()*+,;=:@~"


class Poster:
    """Puts messages into requests."""

    def __init__(
        self, own_url: Callable[[str], str], signers: Signers, redirections: Callable[[], Redirections]
    ) -> None:
        self._own_url = own_url
        """Our URL for those who are reached by a scheme."""
        self._signers = signers
        self._redirections = redirections
        self._paths: dict[str, str] = {}

    def target(self, queue: OutgoingQueue) -> Target:
        """Where to connect for a queue: its host, or the one that an administrator has put in its place."""
        url = uri_of(queue.name)
        redirected = self._redirections().outbound_host(url)
        name = queue.destination
        if redirected == url and isinstance(name, DirectName):
            return Target(name.protocol.lower(), name.host, name.effective_port or 80)
        return target_of(redirected)

    def request(self, message: Message, place: Sequence | None, target: Target | None) -> tuple[bytes, bytes]:
        """Make the head and the body of a POST. ``place`` is the message's place in our own stream."""
        assert target is not None
        encoded = wire.encode_request(self._srmp(message, place))
        head = (
            f"POST {self._path(message.destination_queue)} HTTP/1.1\r\n"
            f"Host: {target.authority}\r\n"
            f"Content-Type: {encoded.content_type}\r\n"
            f"Content-Length: {len(encoded.body)}\r\n"
            'SOAPAction: "MSMQMessage"\r\n'
            "Proxy-Accept: NonInteractiveClient\r\n\r\n"
        )
        return head.encode("latin-1"), encoded.body

    def _srmp(self, message: Message, place: Sequence | None) -> wire.SrmpMessage:
        marks = message.transaction
        receipts_url = ""
        if place is not None:
            destination = uri_of(message.destination_queue)
            own = self._own_url(urlsplit(destination).scheme) + ORDER_QUEUE_PATH
            receipts_url = self._redirections().receipts_url(destination, own)
        elif marks is not None:
            # It only passes through: the stream and its receipts are the source's.
            place = Sequence(marks.stream, marks.sequence, marks.previous)
            receipts_url = uri_of(marks.status_queue)
        srmp = from_message(message, place=place, receipts_url=receipts_url)
        security = message.security
        if security is None or security.authentication_level is not AuthenticationLevel.XML_SIGNATURE:
            return srmp
        if srmp.envelope.signature is not None:
            return srmp
        return replace(srmp, envelope=replace(srmp.envelope, signature=self._signers.sign(srmp)))

    def _path(self, destination: str) -> str:
        path = self._paths.get(destination)
        if path is None:
            if len(self._paths) >= MAX_PATHS:
                self._paths.clear()
            path = self._paths[destination] = _path_of(destination)
        return path


def target_of(url: str) -> Target:
    """Where the host of a redirection is. It need not name a queue: only its host counts."""
    parts = urlsplit(url)
    scheme = parts.scheme.lower()
    return Target(scheme, parts.hostname or "", parts.port or (443 if scheme == "https" else 80))


def _path_of(destination: str) -> str:
    path = urlsplit(uri_of(destination)).path
    return quote(path, safe=_SAFE + "%")
