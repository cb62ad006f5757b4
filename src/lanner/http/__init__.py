"""An HTTP/1.1 listener for requests that are whole before they are answered: the API's and SRMP's.

httptools parses; everything that a peer controls, its sizes, counts and times, has a limit in
:class:`Limits`. It knows nothing of queues: a :class:`Handler` gets each request and gives the response.
"""

from lanner.http.limits import Limits
from lanner.http.listener import Handler, HttpListener
from lanner.http.messages import Request, Response

__all__ = ["Handler", "HttpListener", "Limits", "Request", "Response"]
