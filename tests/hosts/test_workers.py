"""The documented application under `uvicorn --workers`: a worker is killed during turns, and no ask is lost."""

import os
import signal
from pathlib import Path

import anyio
import pytest
from httpx2 import ASGITransport, AsyncClient

from actors import Runtime
from actors.config import Config, FileSettings, RuntimeLimits
from actors.strict.rules.base import Json
from actors.testing import OpenAIServer, Say, Turn, serve
from tests.hosts.support import answer, asked
from tests.hosts.worker_app import api
from tests.hosts.workers import Workers, uvicorn_workers
from tests.runtime_support import backend_at

pytestmark = pytest.mark.anyio

SESSIONS = [f"s{number}" for number in range(8)]
TEXTS = ["one", "two", "three"]


@pytest.fixture(params=["asyncio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """The backend of the client's loop; uvicorn runs the workers on asyncio."""
    name: str = request.param
    return name


async def end_with_open_stream(workers: Workers) -> None:
    """Terminate the server while a client reads the events of a session: the stream and the server end."""
    async with (
        AsyncClient(timeout=60) as client,
        client.stream("GET", f"{workers.url}/sessions/s0/events") as response,
        anyio.create_task_group() as tasks,
    ):
        statuses = list[int]()

        async def end() -> None:
            statuses.append(await workers.end())

        text = ""
        async for piece in response.aiter_text():
            if not text:
                tasks.start_soon(end)
            text += piece
        assert text.count("event: complete") == len(TEXTS)
    assert statuses == [0]


async def test_a_killed_worker_loses_no_ask_and_repeats_none(tmp_path: Path) -> None:
    victims = list[int]()

    def answer(request: Json) -> Turn:
        """Answer the last message. Kill the worker of the first session during its second turn."""
        assert isinstance(request, dict)
        messages = request["messages"]
        assert isinstance(messages, list)
        text = str(messages[-1]["content"])
        if text == "s0 two" and victims:
            os.kill(victims.pop(), signal.SIGKILL)
        return Turn(Say(f"Answer to {text}"))

    async def talk(workers: Workers, session: str, texts: list[str]) -> None:
        for text in texts:
            words = f"{session} {text}"
            assert await workers.ask(session, words, key=words) == f"Answer to {words}"

    async def talk_to_all(workers: Workers, *texts: str) -> None:
        async with anyio.create_task_group() as tasks:
            for session in SESSIONS:
                tasks.start_soon(talk, workers, session, [*texts])

    journal, server = str(tmp_path / "sessions.db"), OpenAIServer(answer)
    with anyio.fail_after(100):
        async with serve(server), uvicorn_workers(3, journal, server.base_url) as workers:
            await talk_to_all(workers, *TEXTS[:1])
            owners = [await workers.owner(session) for session in SESSIONS]
            assert len({*owners}) > 1
            victims.append(owners[0])
            await talk_to_all(workers, *TEXTS[1:])
            assert victims == []
            assert owners[0] not in [await workers.owner(session) for session in SESSIONS]
            await end_with_open_stream(workers)
        async with Runtime(journal=journal) as runtime:
            for session in SESSIONS:
                assert asked(runtime, session) == [f"{session} {text}" for text in TEXTS]
    assert server.refusals == []
    assert "Traceback" not in workers.log


async def test_the_application_serves_more_sessions_than_may_be_open(tmp_path: Path) -> None:
    server = OpenAIServer(answer)
    with anyio.fail_after(60):
        async with serve(server), AsyncClient(transport=ASGITransport(api), base_url="http://host") as client:
            settings = FileSettings(backends={"a": backend_at(server)}, limits=RuntimeLimits(sessions=2))
            async with Runtime(Config(settings, {}), journal=str(tmp_path / "sessions.db")) as runtime:
                api.state.open = lambda name: runtime.open("a", id=name, resume=True)
                for session in SESSIONS:
                    url = f"/sessions/{session}/messages"
                    response = await client.post(
                        url, params={"text": "Hi."}, headers={"idempotency-key": "k"}
                    )
                    assert response.json() == "Answer to Hi."
                assert len(runtime.sessions) == 2
