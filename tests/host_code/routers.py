"""Functions that the program passes to a request router: its application, and the one that finds session ids."""

from collections.abc import Callable

import pytest

from actors.hosts import ASGIApp, ASGIMessage, Scope, SessionRouter
from actors.testing import Say, Turn
from tests.host_code.rows import Bomb, check_unharmed, row
from tests.runtime_support import openai, runtime_with


@row("SessionRouter.app")
async def an_application_that_raises_fails_its_own_request(bomb: Bomb) -> None:
    await assert_request_fails(bomb, bomb, lambda scope: str(scope["path"]).strip("/"))


@row("SessionRouter.session_id")
async def a_session_id_function_that_raises_fails_its_own_request(bomb: Bomb) -> None:
    await assert_request_fails(bomb, answer, bomb)


async def answer(scope: Scope, receive: object, send: object) -> None:
    """Answer no request; the test ends before."""


async def assert_request_fails(bomb: Bomb, app: ASGIApp, session_id: Callable[[Scope], str | None]) -> None:
    """Check that the server gets the error of a request, as from any ASGI application, and that sessions go on."""
    messages: list[ASGIMessage] = []

    async def receive() -> ASGIMessage:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: ASGIMessage) -> None:
        messages.append(message)

    router = SessionRouter(app, session_id)
    server = openai(Turn(Say("again")), Turn(Say("fine")))
    async with runtime_with(seconds=60, a=server) as runtime:
        session = await runtime.open("a", id="s1")
        async with router.serve(runtime), check_unharmed(runtime, session):
            with pytest.raises(type(bomb.error())):
                await router(request(), receive, send)
    assert (bomb.calls, messages) == (1, [])


def request() -> Scope:
    return {
        "type": "http",
        "method": "POST",
        "path": "/s1",
        "raw_path": b"/s1",
        "query_string": b"",
        "headers": [],
        "client": ("127.0.0.1", 1),
        "scheme": "http",
    }
