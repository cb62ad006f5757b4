"""The Python client of a queue manager, async and sync.

::

    from lanner.client import Client

    with Client.connect(data="lanner-data") as client:
        client.create_queue(r".\\private$\\orders")
        client.send(r".\\private$\\orders", b"10 apples", label="first", durable=True)
        for message in client.receive(r".\\private$\\orders", wait=5):
            print(message.label, message.body)
"""

from lanner.client.asynchronous import AsyncClient, AsyncTransaction
from lanner.client.synchronous import Client, ClientTransaction
from lanner.schema.messages import MessageIn, MessageOut
from lanner.schema.queues import QueueOut

__all__ = [
    "AsyncClient",
    "AsyncTransaction",
    "Client",
    "ClientTransaction",
    "MessageIn",
    "MessageOut",
    "QueueOut",
]
