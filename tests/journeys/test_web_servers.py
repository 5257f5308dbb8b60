"""A web application of the documentation, under uvicorn: first requests at once, disconnects, SIGTERM, restart."""

from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import pytest

from actors.testing import OpenAIServer, Say, Stall, Turn, serve
from tests.journeys.web import WebResponse, WebServer, uvicorn
from tests.runtime_support import Json

pytestmark = pytest.mark.anyio

SECONDS = 120
FIRST = 50


@pytest.fixture(params=["asyncio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """The library of the client's loop: the server is a process of its own, which uvicorn runs on asyncio."""
    name: str = request.param
    return name


def answer(request: Json) -> Turn:
    """Say how many messages the request has."""
    return Turn(Say(f"{len(request['messages'])} messages. " * 20))


@pytest.mark.parametrize("app", ["serve_fastapi", "serve_litestar"])
async def test_a_web_application_serves_conversations_ends_at_once_and_goes_on(
    app: str, tmp_path: Path
) -> None:
    provider = OpenAIServer(answer, faults={FIRST + 1: Stall(after_bytes=600)})
    with anyio.fail_after(SECONDS):
        async with serve(provider):
            with uvicorn(app, provider.base_url, tmp_path) as server:
                await first_requests_at_once(server)
                await what_cannot_begin_has_a_status(server)
                await a_disconnect_stops_no_turn(server)
                await sigterm_ends_what_is_open(server)
            assert_ended_in_order(server.log)
            with uvicorn(app, provider.base_url, tmp_path) as server:
                status, body = await server.ask("crowd-0", "Still there?")
                assert (status // 100, "11 messages" in body) == (2, True)
                status, body = await server.ask("stalled", "And you?")
                assert (status // 100, "messages" in body) == (2, True)
                await server.end()
    assert provider.refusals == []


async def first_requests_at_once(server: WebServer) -> None:
    """Ask 50 times at once in ten conversations that do not exist: no request is refused as a second opening."""
    answers: list[tuple[int, str]] = []

    async def first(number: int) -> None:
        answers.append(await server.ask(f"crowd-{number % 10}", "Hello"))

    async with anyio.create_task_group() as tasks:
        for number in range(FIRST):
            tasks.start_soon(first, number)
    assert {status // 100 for status, _ in answers} == {2}, answers
    assert "9 messages" in "".join(body for _, body in answers)


async def what_cannot_begin_has_a_status(server: WebServer) -> None:
    """Name a conversation as none can be named: also a stream is refused, and nothing is raised in the server."""
    for method, path, body in (("POST", "text", {"text": "Talk"}), ("GET", "events", None)):
        async with server.request(method, f"/conversations/-/{path}", body) as response:
            assert response.status == 500
            assert "is not usable" in await response.rest()


async def a_disconnect_stops_no_turn(server: WebServer) -> None:
    """Leave an answer after its first words: another reader sees the turn complete."""
    async with server.request("POST", "/conversations/left/text", {"text": "Talk"}) as response:
        await response.begun()
    async with server.request("GET", "/conversations/left/events") as events:
        assert '"status":"complete"' in await events.until("event: complete")
        before, _, _ = events.text.partition("event: complete")
        number = int(before.rpartition("id: ")[2])
    async with server.request("GET", "/conversations/left/events", Last_Event_ID=str(number - 1)) as events:
        assert "ask_started" not in await events.until("event: complete")


async def sigterm_ends_what_is_open(server: WebServer) -> None:
    """With a silent stream of events, a text in the midst and an ask that waits for it open, SIGTERM ends all."""
    ended = list[str]()

    async def read(name: str, response: WebResponse) -> None:
        await response.rest()
        ended.append(name)

    async with AsyncExitStack() as stack, anyio.create_task_group() as tasks:
        quiet = await stack.enter_async_context(server.request("GET", "/conversations/left/events"))
        await quiet.until("event: complete")
        text = await stack.enter_async_context(
            server.request("POST", "/conversations/stalled/text", {"text": "Talk"})
        )
        await text.begun()
        for name, response in (("events", quiet), ("text", text)):
            tasks.start_soon(read, name, response)
        await server.end()
    assert sorted(ended) == ["events", "text"]


def assert_ended_in_order(log: str) -> None:
    """The server did not have to cancel its responses, and left the application after them."""
    order = ["Shutting down", "Waiting for application shutdown", "Application shutdown complete"]
    assert [log.count(words) for words in order] == [1, 1, 1], log
    assert sorted(order, key=log.index) == order
    assert "Cancel" not in log
    assert "Traceback" not in log
