"""A further listener serves the application of a process that shares its port with others."""

import signal
from typing import Any

import anyio
import pytest
from httpx2 import AsyncClient
from uvicorn import Config

from actors.hosts import ASGIApp, Receive, Scope, Send, SessionRouter, listen
from actors.hosts.membership import call_at_signals

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """The backend of the test; uvicorn runs on asyncio."""
    name: str = request.param
    return name


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the path and the state of the lifespan."""
    body = f"{scope['path']} {scope.get('state')}".encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def get(url: str) -> str:
    async with AsyncClient() as client:
        return (await client.get(url)).text


async def test_the_application_is_served_at_the_address_until_the_block_ends() -> None:
    with anyio.fail_after(30):
        async with listen(echo) as first, listen(echo, root_path="/api") as second:
            assert first != second
            assert await get(f"{first}/a") == "/a {}"
            assert await get(f"{second}/a") == "/api/a {}"
        with pytest.raises(OSError, match="connect"):
            await anyio.connect_tcp("127.0.0.1", int(first.rpartition(":")[2]))


async def test_an_error_in_the_block_is_raised_unchanged_and_ends_the_listener() -> None:
    with anyio.fail_after(30), pytest.raises(ValueError, match="a bug"):
        async with listen(echo):
            raise ValueError("a bug")


async def test_the_timeout_may_be_a_fraction_of_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    timeouts = list[float | None]()

    class RecordedConfig(Config):
        def __init__(self, *args: Any, **kwargs: Any) -> None:  # Any: the arguments of a configuration
            super().__init__(*args, **kwargs)
            timeouts.append(self.timeout_graceful_shutdown)

    monkeypatch.setattr("actors.hosts.listener.Config", RecordedConfig)
    async with listen(echo, timeout=0.5):
        pass
    assert timeouts == [0.5]


async def test_the_listener_leaves_signals_to_the_program() -> None:
    before = signal.getsignal(signal.SIGTERM)
    async with listen(echo):
        assert signal.getsignal(signal.SIGTERM) is before


async def test_requests_of_the_listener_have_the_state_of_the_lifespan() -> None:
    state: dict[str, Any] = {}  # Any: the values of an application

    async def nothing(*_: object) -> Any:  # Any: never called
        raise AssertionError

    async def lifespan(scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"]["database"] = 7

    app: ASGIApp = SessionRouter(_by_type(lifespan, echo), lambda scope: None)
    await app({"type": "lifespan", "state": state}, nothing, nothing)
    with anyio.fail_after(30):
        async with listen(app) as url:
            assert await get(url) == "/ {'database': 7}"


def _by_type(lifespan: ASGIApp, http: ASGIApp) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await (lifespan if scope["type"] == "lifespan" else http)(scope, receive, send)

    return app


async def test_a_signal_calls_the_function_and_the_earlier_handler() -> None:
    calls, called = list[str](), anyio.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: calls.append("server"))

    def begin() -> None:
        calls.append("router")
        called.set()

    try:
        with anyio.fail_after(30), call_at_signals(begin):
            signal.raise_signal(signal.SIGTERM)
            await called.wait()
            assert signal.getsignal(signal.SIGTERM) is not before
        assert calls == ["server", "router"]
        signal.raise_signal(signal.SIGTERM)
        assert calls == ["server", "router", "server"]
    finally:
        signal.signal(signal.SIGTERM, before)
