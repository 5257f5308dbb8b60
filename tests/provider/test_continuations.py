"""Answers that Gemini pauses (`CONTINUATION`): the request is repeated with the token, up to a limit, in one round."""

import json
from collections.abc import Sequence

import pytest

from actors.adapters.codec import decode
from actors.core.dialects.profiles import GEMINI
from actors.core.stream_events.ask_events import AskResult
from actors.core.values.content import Message
from actors.provider.rounds import MAX_CONTINUATIONS
from actors.strict.loopback import HttpRequest
from actors.strict.server import LoopbackServer
from actors.testing import Call, GeminiServer, Say, Script, Turn
from actors.tools import tool
from tests.adapters.wire_streams import gemini_chunk, gemini_stream, run
from tests.scripted import scripted
from tests.strict_hosts import strict_host

pytestmark = pytest.mark.anyio

PAUSED = "CONTINUATION"


def paused_turns(*texts: str, end: Turn) -> Sequence[Turn]:
    return [*(Turn(Say(text), stop=PAUSED, usage=(10, 5)) for text in texts), end]


async def ask_once(host: LoopbackServer, *, is_streamed: bool = True) -> AskResult:
    @tool
    async def work(name: str) -> str:
        """Do a piece of work."""
        return f"{name} is done"

    async with scripted(host, tools=[work], is_streamed=is_streamed) as (_, _, session):
        return await session.ask("Write a book.")


def record_bodies(host: LoopbackServer) -> list[dict[str, object]]:
    """Return a list that collects the request bodies."""
    bodies: list[dict[str, object]] = []
    answer = host.answer

    def note(request: HttpRequest) -> object:
        bodies.append(json.loads(request.body))
        return answer(request)

    host.answer = note  # type: ignore[method-assign,assignment]
    return bodies


@pytest.mark.parametrize("is_streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("name", ["gemini", "vertex"])
async def test_a_paused_answer_is_continued_in_the_same_round(name: str, is_streamed: bool) -> None:
    turns = paused_turns("Chapter one. ", "Chapter two. ", end=Turn(Say("The end."), usage=(10, 5)))
    host = strict_host(name, Script(turns))
    bodies = record_bodies(host)
    result = await ask_once(host, is_streamed=is_streamed)
    assert (result.text, result.incomplete, result.rounds) == ("Chapter one. Chapter two. The end.", None, 1)
    assert (result.usage.input_tokens, result.usage.output_tokens) == (30, 15)
    first, second, third = bodies
    assert "continuationToken" not in first
    assert second.pop("continuationToken") != third.pop("continuationToken")
    assert first == second == third
    assert host.refusals == []


async def test_a_call_after_a_pause_runs_once() -> None:
    turns = paused_turns("I begin. ", end=Turn(Call("work", {"name": "a"})))
    host = strict_host("gemini", Script([*turns, Turn(Say("Done."))]))
    result = await ask_once(host)
    assert (result.text, result.rounds, result.incomplete) == ("Done.", 2, None)
    assert host.refusals == []


async def test_an_answer_that_is_paused_too_often_ends_and_is_reported() -> None:
    host = strict_host("gemini", Script(lambda request: Turn(Say("More. "), stop=PAUSED)))
    result = await ask_once(host)
    assert host.received == MAX_CONTINUATIONS + 1
    assert (result.status, result.incomplete, result.finish_reason) == ("complete", "paused", PAUSED)
    assert result.text == "More. " * (MAX_CONTINUATIONS + 1)


def test_only_a_paused_answer_with_a_continuation_token_can_be_continued() -> None:
    stream = gemini_stream(gemini_chunk({"text": "a"}, finish=PAUSED))
    decoder = decode(GEMINI)
    _, message = run(decoder, [stream])
    assert isinstance(message, Message)
    assert (message.text, decoder.cut_reason, decoder.continuation) == ("a", "paused", "")
    early = gemini_chunk({"text": "a"})
    early["candidates"][0]["continuationToken"] = "dG9rZW4="  # type: ignore[index]
    decoder = decode(GEMINI)
    run(decoder, [gemini_stream(early, gemini_chunk(finish="STOP"))])
    assert (decoder.cut_reason, decoder.continuation) == (None, "")


def test_the_strict_server_rejects_the_token_of_another_request() -> None:
    server = GeminiServer([Turn(Say("a"))], api_key=None)
    contents = [{"role": "user", "parts": [{"text": "x"}]}]
    body = json.dumps({"contents": contents, "continuationToken": "dG9rZW4="}).encode()
    path = "/v1beta/models/gemini-3-pro:generateContent"
    answer = server.answer(HttpRequest("POST", path, {"content-type": "application/json"}, body, False))
    assert answer.status == 400
