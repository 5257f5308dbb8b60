"""Faulty tool calls in complete sessions: corrections are bounded, and every call has one end."""

import json
from typing import Any

import pytest

from actors.config import RuntimeLimits
from actors.core.log.call_events import Refused
from actors.core.log.events import RoundEnded
from actors.runtime.handle import Session
from actors.runtime.runtime import Runtime
from actors.strict.server import LoopbackServer
from actors.testing import Call, Garbage, Say, Script, Turn, strict_server
from actors.tools import Tool, tool
from tests.adapters.wire_streams import calls, chunk, fragment, openai_stream
from tests.runtime_support import log, openai, runtime_with
from tests.scripted import scripted

pytestmark = pytest.mark.anyio

AnyTool = Tool[..., Any]  # Any: any function
Json = dict[str, Any]  # Any: a request body
FAMILIES = ("openai_chat", "anthropic", "openai_responses", "gemini", "bedrock")

WRITTEN = ("openai_chat", "anthropic", "openai_responses", "bedrock")
"""Families whose models write arguments as text; Gemini sends objects."""

BROKEN = {
    "half of it": '{"name": "a',
    "two objects": '{"name": "a"}{"name": "b"}',
    "nothing": "",
    "null": "null",
    "a number": "7",
    "an array": '["a"]',
    "a text": '"a"',
    "a key twice": '{"name": "a", "name": "b"}',
    "something behind it": '{"name": "a"} as you wished',
    "something before it": 'Sure: {"name": "a"}',
    "not a number": '{"name": NaN}',
    "a lone surrogate": '{"name": "\\ud800"}',
    "depth": '{"name": ' + "[" * 100 + "]" * 100 + "}",
}


def recording_tool(runs: list[str]) -> AnyTool:
    """Return a tool that records its arguments."""

    async def work(name: str) -> str:
        """Do a piece of work."""
        runs.append(name)
        return f"{name} is done"

    return tool(work)


async def assert_answered_once(session: Session) -> list[str]:
    """Check that the calls of the history have unique ids and one end each; return the ends in order."""
    made = [call.id for message in await session.history() for call in message.calls]
    assert len(set(made)) == len(made)
    ledger = await session.ledger()
    assert [known.call_id for known in ledger.interactions()] == made
    return [known.status for known in ledger.interactions()]


def tool_errors(runtime: Runtime, session: Session) -> list[dict[str, Any]]:  # Any: JSON
    """Return the errors of the rejected calls as the model sees them."""
    events = (event for event in log(runtime, session) if isinstance(event, Refused))
    return [json.loads(event.error.decode())["tool_error"] for event in events]


@pytest.mark.sampled(3)
@pytest.mark.alternating
@pytest.mark.requirement("U-05", "U-06")
@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("how", BROKEN)
async def test_a_call_with_arguments_that_are_not_an_object_runs_no_tool_and_is_corrected_once(
    name: str, how: str
) -> None:
    runs: list[str] = []
    turns = [Turn(Call("work", raw=BROKEN[how])), Turn(Call("work", {"name": "a"})), Turn(Say("Done."))]
    server = strict_server(name, turns)
    async with runtime_with(a=server) as runtime:
        session = await runtime.open("a", tools=[recording_tool(runs)])
        answer = await session.ask("Do it.")
        errors = tool_errors(runtime, session)
        ends = await assert_answered_once(session)
        counts = runtime.stats().backends["a"].tools
    assert (answer.status, answer.text, answer.rounds) == ("complete", "Done.", 3)
    assert runs == ["a"]
    kind = "invalid_arguments" if how == "nothing" else "malformed_arguments"
    assert [error["kind"] for error in errors] == [kind]
    assert ends == ["error", "complete"]
    assert (counts.tool_calls_total, counts.tool_calls_invalid_args) == (2, 1)
    assert server.refusals == []


@pytest.mark.alternating
@pytest.mark.requirement("U-06")
@pytest.mark.parametrize("how", BROKEN)
async def test_a_model_that_keeps_writing_bad_arguments_loses_its_tools(
    how: str,
) -> None:
    runs: list[str] = []

    def stubborn(request: Json) -> Turn:
        return (
            Turn(Say("Then not."))
            if request.get("tool_choice") == "none"
            else Turn(Call("work", raw=BROKEN[how]))
        )

    server = openai()
    server.script = Script(stubborn)
    async with runtime_with(a=server, limits=RuntimeLimits(max_corrections=2)) as runtime:
        session = await runtime.open("a", tools=[recording_tool(runs)])
        answer = await session.ask("Do it.")
        ends = await assert_answered_once(session)
    assert (answer.status, answer.text, server.received) == ("complete", "Then not.", 3)
    assert (runs, ends) == ([], ["error", "error"])
    assert server.refusals == []


# ---- ids and pieces of calls


async def run_two_asks(
    server: LoopbackServer, *, limits: RuntimeLimits | None = None
) -> tuple[list[str], list[str]]:
    """Ask twice; return the arguments that ran, and how the calls ended."""
    runs: list[str] = []
    async with scripted(server, tools=[recording_tool(runs)], limits=limits) as (_, _, session):
        asks = [await session.ask("Do it."), await session.ask("And again.")]
        ends = await assert_answered_once(session)
        assert [answer.status for answer in asks] == ["complete"] * 2
    return sorted(runs), ends


A, B, C = (Call("work", {"name": name}) for name in "abc")
SAME = tuple(Call("work", {"name": name}, id="toolu_same") for name in "abc")
STREAMED: dict[str, Turn] = {
    "one id for all": Turn(*SAME),
    "no ids": Turn(A, B, C, ids="blank"),
    "ids that begin anew": Turn(A, B, C, ids="restart"),
    "every call whole": Turn(A, B, C, whole_calls=True),
    "one index for all": Turn(A, B, C, index="zero", whole_calls=True),
    "one index for all, in pieces": Turn(A, B, C, index="zero"),
    "no index": Turn(A, B, C, index="missing", whole_calls=True),
    "ids over and over": Turn(A, B, C, repeat_id=True),
}


@pytest.mark.sampled(3)
@pytest.mark.alternating
@pytest.mark.requirement("PROMISE-5", "REQ-915-005")
@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("how", STREAMED)
async def test_each_call_runs_once_under_a_unique_id_in_every_form_of_streaming(name: str, how: str) -> None:
    server = strict_server(name, [STREAMED[how], Turn(Say("Done.")), STREAMED[how], Turn(Say("Done."))])
    assert await run_two_asks(server) == (["a", "a", "b", "b", "c", "c"], ["complete"] * 6)


@pytest.mark.requirement("PROMISE-13")
@pytest.mark.parametrize("name", FAMILIES)
async def test_call_arguments_without_a_tool_name_run_no_tool_and_are_reported(name: str) -> None:
    runs: list[str] = []
    server = strict_server(name, [Turn(A, Call("", {"name": "b"})), Turn(Say("Done."))])
    async with scripted(server, tools=[recording_tool(runs)]) as (_, runtime, session):
        answer = await session.ask("Do it.")
        ended, _ = (event for event in log(runtime, session) if isinstance(event, RoundEnded))
        ends = await assert_answered_once(session)
    assert (runs, ends) == (["a"], ["complete"])
    assert (ended.incomplete, dict(ended.dropped), dict(answer.dropped)) == (
        "fault",
        {"stray_arguments": 1},
        {"stray_arguments": 1},
    )


@pytest.mark.sampled(2)
@pytest.mark.alternating
@pytest.mark.long
@pytest.mark.requirement("PROMISE-9")
@pytest.mark.parametrize(("most", "ran"), [(256, 200), (64, 64)])
@pytest.mark.parametrize("name", FAMILIES)
async def test_calls_beyond_the_limit_per_message_get_error_results(name: str, most: int, ran: int) -> None:
    many = Turn(*(Call("work", {"name": f"{at:03}"}) for at in range(200)), fragment=64)
    server = strict_server(name, [many, Turn(Say("Done."))])
    runs, ends = await run_two_asks(server, limits=RuntimeLimits(max_calls_per_message=most))
    assert runs == [f"{at:03}" for at in range(ran)]
    assert ends == ["complete"] * ran + ["error"] * (200 - ran)


@pytest.mark.parametrize("name", ["openai_chat", "anthropic", "gemini", "bedrock"])
async def test_calls_run_for_every_stop_reason(name: str) -> None:
    plain = {"openai_chat": "stop", "anthropic": "end_turn", "gemini": "STOP", "bedrock": "end_turn"}
    for reason in (plain[name], "a_new_reason"):
        server = strict_server(name, [Turn(A, stop=reason), Turn(Say("Done.")), Turn(Say("Done."))])
        assert await run_two_asks(server) == (["a"], ["complete"])


CALLED = calls(fragment(0, "c1", "work", '{"name": "a"}'))
RAW_STREAMS = {
    "a call behind the reason to stop": (
        openai_stream(chunk({"content": "."}), chunk({}, "stop"), CALLED),
        ["a"],
    ),
    "no reason to stop": (openai_stream(CALLED), ["a"]),
    "no reason to stop, and words": (openai_stream(chunk({"content": "Words."})), []),
}


@pytest.mark.parametrize("how", RAW_STREAMS)
async def test_a_stream_is_complete_at_its_end_marker(
    how: str,
) -> None:
    stream, ran = RAW_STREAMS[how]
    server = openai(Turn(Say("Done.")), faults={0: Garbage(stream)})
    assert await run_two_asks(server) == (ran, ["complete"] * len(ran))
