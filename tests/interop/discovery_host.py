"""One queue manager's discovery in a process: settings as JSON in, what it knows as JSON lines out."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sys
from uuid import UUID

from lanner.protocols.discovery import client, endpoint
from lanner.protocols.discovery.endpoint import DiscoveryEndpoint, Identity


async def main(settings: dict[str, object]) -> None:
    def tell() -> None:
        known = {
            "servers": running.directory_server_list,
            "networks": [str(each) for each in running.connected_network_identifier_list],
        }
        print(json.dumps(known), flush=True)

    identity = Identity(
        UUID(str(settings["enterprise"])),
        str(settings["name"]),
        (UUID(str(settings["site"])),),
        bool(settings.get("server")),
        (UUID(str(settings["network"])),) if settings.get("server") else (),
    )
    running = DiscoveryEndpoint(identity, on_change=tell)
    print(json.dumps({"started": await running.start()}), flush=True)
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    await stopped.wait()
    await running.stop()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    given = json.loads(sys.argv[1])
    client.WAIT_FOR_RESPONSE = given.get("wait", client.WAIT_FOR_RESPONSE)
    endpoint.ASK_AGAIN_SECONDS = given.get("again", endpoint.ASK_AGAIN_SECONDS)
    asyncio.run(main(given))
