"""Serve the sessions of one journal from several hosts. Any host may receive any request.

    @asynccontextmanager
    async def lifespan(api: FastAPI) -> AsyncIterator[None]:
        async with listen(app) as address, Runtime(journal=url, address=address) as runtime, app.serve(runtime):
            api.state.runtime = runtime
            yield

    api = FastAPI(lifespan=lifespan)
    app = SessionRouter(api, session_id)

`SessionRouter` forwards each HTTP request for a session to the host that owns the session. If this host ends, the
router repeats the request at another host with the same key. `listen` gives a worker process an address of its own (the
extra `hosts`). `RayHosts` routes the asks for sessions in Ray actors (the extra `ray`). Names are imported when they
are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from actors.hosts.asgi import ASGIApp, ASGIMessage, ErrorResponse, Receive, Scope, Send, error_response
    from actors.hosts.attempts import ensure_answered
    from actors.hosts.listener import listen
    from actors.hosts.ray_hosts import MakeRuntime, OpenSession, RayHosts
    from actors.hosts.router import SessionRouter
    from actors.hosts.routing import RouterLimits

__all__ = [
    "ASGIApp",
    "ASGIMessage",
    "ErrorResponse",
    "MakeRuntime",
    "OpenSession",
    "RayHosts",
    "Receive",
    "RouterLimits",
    "Scope",
    "Send",
    "SessionRouter",
    "ensure_answered",
    "error_response",
    "listen",
]

_HOMES = {
    "asgi": ("ASGIApp", "ASGIMessage", "ErrorResponse", "Receive", "Scope", "Send", "error_response"),
    "attempts": ("ensure_answered",),
    "listener": ("listen",),
    "ray_hosts": ("MakeRuntime", "OpenSession", "RayHosts"),
    "router": ("SessionRouter",),
    "routing": ("RouterLimits",),
}
"""Each module of this package with the public names that it defines."""
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # hidden from type checkers, which would otherwise accept any name

    def __getattr__(name: str) -> object:
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
