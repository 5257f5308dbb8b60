"""Define the types of ASGI, as frameworks define them."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]  # Any: the values differ per key and kind of connection
"""The description of a connection, as ASGI defines it."""
ASGIMessage: TypeAlias = MutableMapping[str, Any]  # Any: as above
"""An event between a server and an application, as ASGI defines it."""
Receive: TypeAlias = Callable[[], Awaitable[ASGIMessage]]
"""Waits for the next event from the server."""
Send: TypeAlias = Callable[[ASGIMessage], Awaitable[None]]
"""Sends an event to the server."""
ASGIApp: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
"""An ASGI application."""

RawHeaders: TypeAlias = list[tuple[bytes, bytes]]
"""The headers of a request or response, with names in lower case."""
