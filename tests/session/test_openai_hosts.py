"""`openai:` means Responses at OpenAI's hosts and Chat Completions elsewhere; an open turn keeps its dialect."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
import pytest

from actors import Runtime, tool
from actors.config import BackendSettings, Config, FileSettings, load
from actors.core.data.persistent import Segments
from actors.core.log.events import RequestSent, TurnStarted
from actors.core.values.identity import CallId
from actors.events import ApprovalDecision
from actors.testing import Call, OpenAIServer, ResponsesServer, Say, Turn, serve
from actors.tools import Tool
from actors.transport import HttpTransport, Response, Timeouts
from tests.runtime_support import log

pytestmark = pytest.mark.anyio

OFFICIAL, GATEWAY = "https://api.openai.com/v1", "https://gateway.example/v1"
KEY = {"OPENAI_API_KEY": "sk-own-host"}
LOOK = Tool.external("look", "Looks something up, elsewhere.", {"type": "object"}, read_only=True)
ONE = CallId("hist_tool_1")


@tool(approval="ask")
def delete(file: str) -> str:
    """Delete a file."""
    return f"{file} is deleted"


class PathTransport:
    """Sends each request, whatever its host, to the strict server with the API of its path."""

    def __init__(self, *servers: OpenAIServer | ResponsesServer) -> None:
        self._http = HttpTransport(environ={})
        self._servers = servers
        self.urls: list[str] = []

    def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AbstractAsyncContextManager[Response]:
        self.urls.append(url)
        path = "/" + url.partition("/v1/")[2]
        there = next((each for each in self._servers if f"/v1{path}" in each._paths), self._servers[0])
        return self._http.send(there.base_url + path, headers, segments, timeouts)

    async def close(self) -> None:
        await self._http.close()


@pytest.mark.parametrize(
    ("url", "spoken"),
    [
        ("", "openai_responses"),
        (OFFICIAL, "openai_responses"),
        ("https://api.openai.com/v1/", "openai_responses"),
        ("https://API.OpenAI.com", "openai_responses"),
        ("https://api.openai.com:443/v1", "openai_responses"),
        ("https://eu.api.openai.com/v1", "openai_responses"),
        ("https://us.api.openai.com/v1", "openai_responses"),
        ("http://127.0.0.1:8080/v1", "openai_chat"),
        (GATEWAY, "openai_chat"),
        ("https://api.openai.com.example/v1", "openai_chat"),
        ("https://notapi.openai.com/v1", "openai_chat"),
        ("https://team.openai.azure.com/openai/v1", "openai_chat"),
        ("https://gateway.example/api.openai.com/v1", "openai_chat"),
    ],
)
def test_the_openai_provider_uses_responses_at_official_hosts_and_chat_at_other_hosts(
    url: str, spoken: str
) -> None:
    config = load(None, KEY | {"OPENAI_BASE_URL": url})
    assert config.backend("openai:gpt-5.6").dialect == spoken
    assert config.backend("openai_chat:gpt-5.6").dialect == "openai_chat"
    assert config.backend("openai_responses:gpt-5.6").dialect == "openai_responses"
    table = BackendSettings(kind="openai", model="gpt-5.6", base_url=url or None)
    said = table.model_copy(update={"dialect": "openai_chat"})
    file = Config(FileSettings(backends={"a": table, "b": said}), KEY)
    assert (file.backend("a").dialect, file.backend("b").dialect) == (spoken, "openai_chat")


MOVES = pytest.mark.parametrize(
    ("before", "after", "spoken", "later"),
    [
        (OFFICIAL, GATEWAY, "responses", "chat/completions"),
        ("", GATEWAY, "responses", "chat/completions"),
        (GATEWAY, OFFICIAL, "chat/completions", "responses"),
        (GATEWAY, "", "chat/completions", "responses"),
    ],
)


@pytest.mark.alternating
@MOVES
@pytest.mark.requirement("PROMISE-5")
@pytest.mark.parametrize("waits_for", ["result", "decision"])
async def test_an_open_turn_keeps_its_dialect_after_a_change_of_base_url(
    tmp_path: Path, before: str, after: str, spoken: str, later: str, waits_for: str
) -> None:
    call = Call("look", {"n": 1}) if waits_for == "result" else Call("delete", {"file": "a"})
    turns, rest = [Turn(call), Turn(Say("It is done."))], [Turn(Say("Good bye."))]
    in_chat = spoken != "responses"
    chat, responses = (
        OpenAIServer(turns if in_chat else rest),
        ResponsesServer(rest if in_chat else turns),
    )
    tools = [LOOK, delete]
    with anyio.fail_after(60):
        async with serve(chat, responses):
            journal = tmp_path / "log.sqlite"
            first = PathTransport(chat, responses)
            async with Runtime(
                environ=KEY | {"OPENAI_BASE_URL": before}, journal=journal, transport=first
            ) as runtime:
                session = await runtime.open("openai:gpt-5.2", tools=tools, id="trip")
                assert (await session.ask("Go.")).status == "awaiting"
            second = PathTransport(chat, responses)
            async with Runtime(
                environ=KEY | {"OPENAI_BASE_URL": after}, journal=journal, transport=second
            ) as runtime:
                session = await runtime.resume("trip", tools=tools)
                if waits_for == "result":
                    result = await session.ask(results={ONE: "found"})
                else:
                    result = await session.ask(approvals={ONE: ApprovalDecision("allow")})
                assert (result.status, result.text) == ("complete", "It is done.")
                assert (await session.ask("And now?")).text == "Good bye."
                events = log(runtime, session)
    assert [chat.refusals, responses.refusals] == [[], []]
    assert first.urls == [f"{before or OFFICIAL}/{spoken}"]
    assert second.urls == [f"{after or OFFICIAL}/{spoken}", f"{after or OFFICIAL}/{later}"]
    bound = [event.binding.dialect for event in events if isinstance(event, TurnStarted)]
    sent = [event.binding.dialect for event in events if isinstance(event, RequestSent)]
    assert sent == [bound[0], *bound]


async def leave_waiting(journal: Path, config: Config, transport: PathTransport) -> None:
    """Create a session whose turn waits for a result, and leave the runtime."""
    async with Runtime(config, journal=journal, transport=transport) as runtime:
        session = await runtime.open("a", tools=[LOOK], id="trip")
        assert (await session.ask("Go.")).status == "awaiting"


async def failure(journal: Path, config: Config, transport: PathTransport) -> str:
    """Pass the result, and return the error of the failed turn."""
    async with Runtime(config, journal=journal, transport=transport) as runtime:
        session = await runtime.resume("trip", tools=[LOOK])
        result = await session.ask(results={ONE: "found"}, check=False)
        assert (result.status, session.pending) == ("failed", ())
        known = (await session.ledger()).get(ONE)
        assert known is not None
        assert known.completion is not None
        return result.error


async def test_an_open_turn_fails_clearly_if_its_dialect_is_gone(tmp_path: Path) -> None:
    responses, chat = ResponsesServer([Turn(Call("look", {"n": 1}))]), OpenAIServer()
    began = BackendSettings(kind="openai", model="gpt-5.2", base_url=OFFICIAL)
    moved = began.model_copy(update={"base_url": GATEWAY})
    with anyio.fail_after(60):
        async with serve(responses, chat):
            journal = tmp_path / "log.sqlite"
            await leave_waiting(
                journal, Config(FileSettings(backends={"a": began}), KEY), PathTransport(responses)
            )
            why = await failure(
                journal, Config(FileSettings(backends={"a": moved}), KEY), PathTransport(chat)
            )
    assert f"the turn began at {OFFICIAL} in dialect 'openai_responses' and continued at {GATEWAY}" in why


async def test_an_open_turn_fails_clearly_after_a_change_of_family(
    tmp_path: Path,
) -> None:
    server = OpenAIServer([Turn(Call("look", {"n": 1}))])
    began = BackendSettings(kind="openai", model="gpt-5.2", base_url=GATEWAY)
    changed = began.model_copy(update={"kind": "anthropic"})
    with anyio.fail_after(60):
        async with serve(server):
            journal = tmp_path / "log.sqlite"
            await leave_waiting(
                journal, Config(FileSettings(backends={"a": began}), KEY), PathTransport(server)
            )
            why = await failure(
                journal, Config(FileSettings(backends={"a": changed}), KEY), PathTransport(server)
            )
    assert why == (
        "The open turn began in dialect 'openai_chat', but backend 'a' now has dialect 'anthropic' at "
        f"{GATEWAY}; restore the backend's earlier configuration, or cancel the turn"
    )
    assert len(server.requests) == 1


async def test_an_open_turn_continues_on_a_host_that_rejects_new_turns(tmp_path: Path) -> None:
    responses = ResponsesServer([Turn(Call("look", {"n": 1})), Turn(Say("It is done."))])
    began = BackendSettings(kind="openai", model="gpt-6-astra", base_url=OFFICIAL)
    moved = began.model_copy(update={"base_url": GATEWAY})
    with anyio.fail_after(60):
        async with serve(responses):
            journal, way = tmp_path / "log.sqlite", PathTransport(responses)
            await leave_waiting(journal, Config(FileSettings(backends={"a": began}), KEY), way)
            config = Config(FileSettings(backends={"a": moved}), KEY)
            async with Runtime(config, journal=journal, transport=way) as runtime:
                session = await runtime.resume("trip", tools=[LOOK])
                assert (await session.ask(results={ONE: "found"})).text == "It is done."
                later = await session.ask("And now?", check=False)
    assert (later.status, responses.refusals) == ("failed", [])
    assert "use openai_responses:gpt-6-astra" in later.error
