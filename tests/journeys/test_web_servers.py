"""A web application of the documentation under uvicorn: concurrent first requests, disconnects, SIGTERM, restart."""

from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import pytest

from actors.testing import OpenAIServer, Say, Stall, Status, Turn, serve
from tests.journeys.web import WebResponse, WebServer, uvicorn
from tests.runtime_support import Json

pytestmark = pytest.mark.anyio

SECONDS = 120
FIRST = 50


@pytest.fixture(params=["asyncio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """The backend of the client's loop; uvicorn runs the server on asyncio in another process."""
    name: str = request.param
    return name


def answer(request: Json) -> Turn:
    """Answer with the number of messages in the request."""
    return Turn(Say(f"{len(request['messages'])} messages. " * 20))


@pytest.mark.parametrize("app", ["serve_fastapi", "serve_litestar"])
async def test_a_web_application_serves_stops_and_resumes_conversations(app: str, tmp_path: Path) -> None:
    stall, outage = Stall(after_bytes=600), Status(500, retry_after_ms="1")
    faults: dict[int, Stall | Status] = dict.fromkeys(range(FIRST + 4, FIRST + 8), outage) | {
        FIRST + 1: stall
    }
    provider = OpenAIServer(answer, faults=faults)
    with anyio.fail_after(SECONDS):
        async with serve(provider):
            with uvicorn(app, provider.base_url, tmp_path) as server:
                await make_concurrent_first_requests(server)
                await use_an_invalid_name(server)
                await disconnect_during_an_answer(server)
                await terminate_with_open_responses(server)
            assert_orderly_shutdown(server.log)
            with uvicorn(app, provider.base_url, tmp_path) as server:
                status, body = await server.ask("crowd-0", "Still there?")
                assert (status // 100, "11 messages" in body) == (2, True)
                status, body = await server.ask("stalled", "And you?")
                assert (status // 100, "messages" in body) == (2, True)
                status, _ = await server.ask("failed", "And in an outage?")
                assert status == 502
                await server.end()
    assert provider.refusals == []


async def make_concurrent_first_requests(server: WebServer) -> None:
    """Ask 50 times concurrently in ten new conversations: no request is refused as a second opening."""
    answers: list[tuple[int, str]] = []

    async def first(number: int) -> None:
        answers.append(await server.ask(f"crowd-{number % 10}", "Hello"))

    async with anyio.create_task_group() as tasks:
        for number in range(FIRST):
            tasks.start_soon(first, number)
    assert {status // 100 for status, _ in answers} == {2}, answers
    assert "9 messages" in "".join(body for _, body in answers)


async def use_an_invalid_name(server: WebServer) -> None:
    """Use an invalid conversation name: even a stream is refused, and the server raises nothing."""
    for method, path, body in (("POST", "text", {"text": "Talk"}), ("GET", "events", None)):
        async with server.request(method, f"/conversations/-/{path}", body) as response:
            assert response.status == 400
            assert "is invalid" in await response.rest()


async def disconnect_during_an_answer(server: WebServer) -> None:
    """Disconnect after the first words of an answer: another reader sees the turn complete."""
    async with server.request("POST", "/conversations/left/text", {"text": "Talk"}) as response:
        await response.wait_for_body()
    async with server.request("GET", "/conversations/left/events") as events:
        assert '"status":"complete"' in await events.until("event: complete")
        before, _, _ = events.text.partition("event: complete")
        number = int(before.rpartition("id: ")[2])
    async with server.request("GET", "/conversations/left/events", Last_Event_ID=str(number - 1)) as events:
        assert "ask_started" not in await events.until("event: complete")


async def terminate_with_open_responses(server: WebServer) -> None:
    """SIGTERM ends a silent stream of events, a text in progress and an ask that waits for the text."""
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
        await text.wait_for_body()
        for name, response in (("events", quiet), ("text", text)):
            tasks.start_soon(read, name, response)
        await server.end()
    assert sorted(ended) == ["events", "text"]


def assert_orderly_shutdown(log: str) -> None:
    """Check that the server cancelled no response and left the application afterwards."""
    order = ["Shutting down", "Waiting for application shutdown", "Application shutdown complete"]
    assert [log.count(words) for words in order] == [1, 1, 1], log
    assert sorted(order, key=log.index) == order
    assert "Cancel" not in log
    assert "Traceback" not in log
