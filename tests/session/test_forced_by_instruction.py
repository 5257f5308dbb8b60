"""A forced tool on a model without forced tool choice: an instruction that stays in the lane (ANT-48)."""

import json
from typing import Any

import pytest

from actors import ToolChoice
from actors.core.log.events import FormatRequested
from actors.core.settings.asking import forced_instruction
from actors.core.values.packed import unpack
from actors.testing import AnthropicServer, Call, OpenAIServer, Say, Turn
from tests.runtime_support import log
from tests.scripted import scripted

pytestmark = pytest.mark.anyio
MODEL = "claude-opus-5-5"


def find() -> str:
    """Find it."""
    return "found"


def look() -> str:
    """Look."""
    return "seen"


def bodies(server: Any) -> list[Any]:  # Any: a server; JSON
    return [json.loads(request.body) for request in server.requests]


def instructions(runtime: Any, session: Any) -> list[str]:  # Any: a runtime and a session
    return [
        unpack(event.message).text for event in log(runtime, session) if isinstance(event, FormatRequested)
    ]


async def test_an_instruction_to_call_a_tool_stays_in_the_lane_and_all_tools_are_declared() -> None:
    server = AnthropicServer([Turn(Call("find", {})), Turn(Say("Done.")), Turn(Say("Yes."))])
    async with scripted(server, tools=[look, find], fields={"model": MODEL}) as (_, runtime, session):
        answer = await session.ask("Find it.", tool_choice=ToolChoice("find"))
        assert (answer.status, answer.text, answer.losses) == ("complete", "Done.", {"tool_choice": 1})
        assert instructions(runtime, session) == [forced_instruction(ToolChoice("find"))]
        await session.ask("Sure?")
        first, second, third = bodies(server)
        assert all("tool_choice" not in body for body in (first, second, third))
        assert first["tools"] == second["tools"] == third["tools"]
        assert forced_instruction(ToolChoice("find")) in json.dumps(third["messages"])


@pytest.mark.parametrize("choice", ["required", ToolChoice("find")], ids=["any", "by name"])
async def test_a_model_that_answers_in_text_is_corrected_once(choice: Any) -> None:  # Any: a tool choice
    server = AnthropicServer([Turn(Say("No need.")), Turn(Call("find", {})), Turn(Say("Done."))])
    async with scripted(server, tools=[look, find], fields={"model": MODEL}) as (_, runtime, session):
        answer = await session.ask("Find it.", tool_choice=choice)
        assert (answer.status, answer.text) == ("complete", "Done.")
        assert instructions(runtime, session) == [forced_instruction(choice)] * 2


async def test_an_answer_without_the_forced_call_reports_the_tool_choice_as_lost() -> None:
    server = AnthropicServer([Turn(Say("No need.")), Turn(Say("Still no."))])
    async with scripted(server, tools=[find], fields={"model": MODEL}) as (_, runtime, session):
        answer = await session.ask("Find it.", tool_choice="required")
        assert (answer.status, answer.text, answer.rounds) == ("complete", "Still no.", 2)
        assert answer.losses == {"tool_choice": 1}
        assert len(instructions(runtime, session)) == 2


async def test_a_call_of_another_tool_does_not_satisfy_a_tool_choice_by_name() -> None:
    server = AnthropicServer(
        [Turn(Call("look", {})), Turn(Say("Seen.")), Turn(Call("find", {})), Turn(Say("Done."))]
    )
    async with scripted(server, tools=[look, find], fields={"model": MODEL}) as (_, _, session):
        answer = await session.ask("Find it.", tool_choice=ToolChoice("find"))
        assert (answer.text, answer.rounds) == ("Done.", 4)


async def test_a_model_that_supports_forced_tools_gets_no_instruction() -> None:
    server = OpenAIServer([Turn(Call("find", {})), Turn(Say("Done."))])
    async with scripted(server, tools=[find]) as (_, runtime, session):
        await session.ask("Find it.", tool_choice="required")
        assert instructions(runtime, session) == []
        assert bodies(server)[0]["tool_choice"] == "required"
