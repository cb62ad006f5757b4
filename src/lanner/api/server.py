"""Serving the API: the application on a listener of its own."""

from __future__ import annotations

from lanner.api.application import Application
from lanner.api.context import Api
from lanner.http import HttpListener, Limits

__all__ = ["API_LIMITS", "ApiServer"]

API_LIMITS = Limits()
"""A body holds a batch of some messages of 4 MB in base64; more is sent in several."""


class ApiServer(HttpListener):
    """The listening API of one manager."""

    def __init__(self, api: Api, listen: str, port: int) -> None:
        super().__init__(Application(api), listen, port, limits=API_LIMITS)
