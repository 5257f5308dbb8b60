"""Hold the conversation for real models with strict servers, which tests the checks of the live tests in every run."""

from collections.abc import Callable

import pytest

from actors.config.providers import Kind
from actors.strict.server import LoopbackServer
from actors.testing import (
    AnthropicServer,
    Call,
    CompatibleServer,
    ResponsesServer,
    Say,
    Status,
    Think,
    Turn,
    serve,
)
from tests.live import conversation
from tests.live.conversation import Live, hold
from tests.runtime_support import Json

pytestmark = pytest.mark.anyio


RESULTS = ("tool_result", "[The tool")
"""The content of a user message with results: blocks, or text once the server has refused blocks."""


def model(request: Json) -> Turn:
    """A small model: it makes parallel calls with invalid arguments under its own ids, or answers with text."""
    said = request.get("messages") or request["input"]
    if said[-1].get("role") == "user" and not any(words in str(said[-1]) for words in RESULTS):
        wrong, right = Call("weather", raw='{"city"}'), Call("weather", {"city": "Oslo"})
        return Turn(Think("hm"), Say("Well."), wrong, right, Call("note", {"text": " "}))
    return Turn(Say("It is cold."))


SERVERS: dict[Kind, Callable[[], LoopbackServer]] = {
    "llama_cpp": lambda: CompatibleServer(model, vendor="llama_cpp"),
    "openai_responses": lambda: ResponsesServer(model),
    "anthropic": lambda: AnthropicServer(model),
}


def live(kinds: list[Kind], servers: list[LoopbackServer]) -> list[Live]:
    return [Live(kind, server.base_url, "m") for kind, server in zip(kinds, servers, strict=True)]


@pytest.mark.alternating
@pytest.mark.requirement("REQ-915-004", "REQ-915-042", "PROMISE-1", "PROMISE-4", "PROMISE-11")
@pytest.mark.parametrize(
    "kinds",
    [["llama_cpp"], ["openai_responses"], ["anthropic"], ["llama_cpp", "anthropic"], list(SERVERS)],
    ids="-".join,
)
async def test_the_conversation_with_strict_servers_closes_every_call(kinds: list[Kind]) -> None:
    servers = [SERVERS[kind]() for kind in kinds]
    async with serve(*servers):
        talk = await hold(live(kinds, servers), rounds=2, seconds=300)
    assert [status for status, _, _ in talk.answers] == ["complete"] * 8
    assert [server.refusals for server in servers] == [[]] * len(servers)
    assert sum(len(message.calls) for message in talk.history) == 3 * 8


async def test_the_live_check_does_not_count_a_server_failure_as_a_refusal() -> None:
    server = CompatibleServer(model, vendor="llama_cpp", faults={1: Status(500)})
    async with serve(server):
        talk = await hold(live(["llama_cpp"], [server]), seconds=300)
    assert [status for status, _, _ in talk.answers] == ["failed", "complete", "complete", "complete"]


@pytest.mark.alternating
@pytest.mark.parametrize("status", [400, 422])
async def test_the_live_check_detects_a_refusal(status: int) -> None:
    server = CompatibleServer(model, vendor="llama_cpp", faults={1: Status(status)})
    async with serve(server):
        with pytest.raises(AssertionError, match="chat/completions"):
            await hold(live(["llama_cpp"], [server]), seconds=300)


async def test_the_live_check_fails_if_the_model_never_answers() -> None:
    server = CompatibleServer(model, vendor="llama_cpp", faults=lambda number, request: Status(500))
    async with serve(server):
        with pytest.raises(AssertionError, match="failed"):
            await hold(live(["llama_cpp"], [server]), seconds=300)


async def test_the_live_check_detects_a_missing_earlier_message(monkeypatch: pytest.MonkeyPatch) -> None:
    server = CompatibleServer(model, vendor="llama_cpp")
    monkeypatch.setattr(conversation, "blocks", lambda body: [("user", str(len(body["messages"])))])
    async with serve(server):
        with pytest.raises(AssertionError):
            await hold(live(["llama_cpp"], [server]), seconds=300)
