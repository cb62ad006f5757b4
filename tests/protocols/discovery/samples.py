"""Identifiers, packets and captures that the tests of discovery share."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from lanner.protocols.discovery.server import Offer
from lanner.protocols.discovery.wire import DirectoryServer, TopologyClientRequest, TopologyServerReply

VECTORS = Path(__file__).parents[2] / "vectors" / "discovery"

ENTERPRISE = UUID("e6eaba61-d1c6-11db-baac-0003ff4e2d22")
REQUEST_ID = UUID("f291a103-e33c-ab4f-a930-be3a33e432dd")
SITE = UUID("dcc51bf6-d4ad-4543-8739-71568e8f9128")
NETWORK = UUID("e6eaba62-d1c6-11db-baac-0003ff4e2d22")
OTHER_SITE = UUID("e6eaba60-d1c6-11db-baac-0003ff4e2d22")

REQUEST = TopologyClientRequest(ENTERPRISE, REQUEST_ID, SITE)
LOCAL_REPLY = TopologyServerReply(REQUEST_ID, (NETWORK,))
OTHER_REPLY = TopologyServerReply(REQUEST_ID, (NETWORK,), OTHER_SITE, (DirectoryServer("nt4pec"),))

CAPTURES: dict[str, TopologyClientRequest | TopologyServerReply] = {
    "4-request": REQUEST,
    "4-reply-local-site": LOCAL_REPLY,
    "4-reply-other-site": OTHER_REPLY,
}
"""Section 4, read by hand."""


def capture(name: str) -> bytes:
    return bytes.fromhex((VECTORS / f"{name}.hex").read_text())


def offer(*servers: str, site: UUID = OTHER_SITE) -> Offer:
    return Offer(ENTERPRISE, (site,), (NETWORK,), servers or ("nt4pec",))
