"""An answer that was cut inside a call, in a session: no tool runs, and the conversation goes on."""

import pytest

from actors.config import Config, FileSettings
from actors.runtime import Runtime
from actors.testing import Call, Say, Script, Turn
from actors.testing.server import serve
from actors.tools import tool
from tests.runtime_support import assert_rebuilds
from tests.strict_hosts import backend, strict_host

pytestmark = pytest.mark.anyio

REASONS = {
    "openai_chat": "length",
    "mistral": "length",
    "anthropic": "max_tokens",
    "openai_responses": "max_output_tokens",
    "gemini": "MAX_TOKENS",
    "bedrock": "max_tokens",
}


@pytest.mark.parametrize("is_streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("name", REASONS)
async def test_a_call_that_was_cut_runs_no_tool_and_the_session_goes_on(name: str, is_streamed: bool) -> None:
    ran: list[str] = []

    @tool
    async def work(name: str = "") -> str:
        """Do a piece of work."""
        ran.append(name)
        return "done"

    cut = Turn(Say("I begin."), Call("work", {"name": "a"}), Call("work", raw=""), stop=REASONS[name])
    host = strict_host(name, Script([cut, Turn(Say("One done.")), Turn(Say("More."))]))
    async with serve(host):
        settings = backend(name, host).model_copy(update={"stream": is_streamed})
        config = Config(FileSettings(backends={name: settings}), {})
        async with Runtime(config, seed=1) as runtime:
            session = await runtime.open(name, tools=[work])
            first = await session.ask("Work.")
            second = await session.ask("Go on.")
            await assert_rebuilds(runtime, session)
    assert (first.status, first.text, second.text) == ("complete", "One done.", "More.")
    assert ran == ["a"]
    assert host.refusals == []
