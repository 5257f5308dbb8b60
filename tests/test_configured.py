"""What `actors.toml` says is what happens."""

import json
from pathlib import Path

import anyio
import pytest

from actors import Runtime
from actors.testing import AnthropicServer, Call, Disconnect, OpenAIServer, Say, Turn, serve

pytestmark = pytest.mark.anyio


def weather(city: str) -> str:
    """Current weather of a city."""
    return f"{city}: 4 C"


@pytest.mark.requirement("U-09")
@pytest.mark.parametrize("kind", ["openai", "anthropic"])
async def test_a_backend_that_cannot_stream_gives_the_same_events_and_the_same_history(
    tmp_path: Path, kind: str
) -> None:
    seen: dict[bool, list[object]] = {}
    for stream in (True, False):
        turns = [Turn(Say("Let me see."), Call("weather", {"city": "Oslo"})), Turn(Say("Cold."))]
        server = OpenAIServer(turns) if kind == "openai" else AnthropicServer(turns)
        path = tmp_path / "actors.toml"
        with anyio.fail_after(30):
            async with serve(server):
                path.write_text(
                    f'[backends.a]\nkind = "{kind}"\nmodel = "m"\n'
                    f'base_url = "{server.base_url}"\nstream = {str(stream).lower()}\n'
                )
                async with Runtime(path, environ={}) as runtime:
                    session = await runtime.open("a", tools=[weather])
                    async with session.stream("Weather in Oslo?") as events:
                        kinds = [event.type async for event in events]
                    history = await session.history()
        asked = [bool(json.loads(exchange.body).get("stream")) for exchange in server.requests]
        assert asked == [stream, stream]
        distinct = [kind for at, kind in enumerate(kinds) if at == 0 or kinds[at - 1] != kind]
        seen[stream] = [distinct, [(message.speaker, message.text) for message in history]]
    assert seen[True] == seen[False]
    assert "text" in seen[False][0]  # type: ignore[operator]  # the list of kinds


@pytest.mark.requirement("REQ-915-043")
@pytest.mark.parametrize("after_output", [False, True])
async def test_a_pool_says_whether_an_answer_that_was_partly_shown_may_be_continued_elsewhere(
    tmp_path: Path, after_output: bool
) -> None:
    broken = OpenAIServer([Turn(Say("The answer is " * 40))], faults={0: Disconnect(after_bytes=900)})
    spare = AnthropicServer([Turn(Say("42."))])
    path = tmp_path / "actors.toml"
    with anyio.fail_after(30):
        async with serve(broken, spare):
            path.write_text(
                f'[backends.a]\nkind = "openai"\nmodel = "m"\nbase_url = "{broken.base_url}"\n'
                f'[backends.b]\nkind = "anthropic"\nmodel = "m"\nbase_url = "{spare.base_url}"\n'
                f'[pools.p]\nmembers = ["a", "b"]\nfailover_after_output = {str(after_output).lower()}\n'
            )
            async with Runtime(path, environ={}) as runtime:
                session = await runtime.open("p")
                answer = await session.ask("What is the answer?")
    assert answer.status == ("complete" if after_output else "failed")
    assert len(answer.attempts) == (2 if after_output else 1)
    assert spare.refusals == []
