"""Answers without content: they are retried or corrected, and then reported in the result."""

import json
from pathlib import Path
from typing import Any

import pytest

from actors import Budget, Session, Tool, ToolContext, handoff, subagent, tool
from actors.config import PoolSettings
from actors.core.log.events import FormatRequested, LogEvent, TurnStarted
from actors.core.session.publishing import Publisher
from actors.core.stream_events.ask_events import AskResult, CompleteEvent, ErrorEvent
from actors.core.stream_events.events import SessionEvent
from actors.core.stream_events.round_events import MessageEvent
from actors.core.turn.answers import EMPTY, EMPTY_ANSWER_NOTE, UNPARSED, UNPARSED_TOOLS_OFF
from actors.core.values.packed import unpack
from actors.core.values.progress import Cause
from actors.core.values.stream import Usage
from actors.journal.storage.memory import MemoryStorage
from actors.runtime.runtime import Runtime
from actors.strict.script import TurnPart
from actors.testing import Builtin, Call, Garbage, Say, Script, Think, Turn
from tests.adapters.raw_calls import ABOUT_CALLS, RAW_CALLS
from tests.runtime.test_resume import copy_log, running_server
from tests.runtime_support import (
    anthropic,
    assert_paired,
    assert_rebuilds,
    bodies,
    gather_events,
    log,
    openai,
    results,
    runtime_with,
)
from tests.scripted import scripted
from tests.strict_hosts import strict_host

pytestmark = pytest.mark.anyio

HOSTS = ("openai_chat", "anthropic", "openai_responses", "gemini", "bedrock", "kimi", "deepseek")
NOTHING: dict[str, tuple[TurnPart, ...]] = {
    "nothing": (),
    "thoughts": (Think("I could read."),),
    "thoughts and blanks": (Think("I could read."), Say("\n\n")),
    "thoughts in the text": (Say("<think>I could read.</think>\n"),),
}
CASES = Path(__file__).parents[1] / "cases"
over_hosts = pytest.mark.parametrize("name", HOSTS)
over_families = pytest.mark.parametrize(
    "raw",
    [RAW_CALLS[name] for name in ("kimi", "qwen coder", "harmony", "dsml", "llama", "mistral v13", "glm")],
    ids=["kimi", "qwen", "harmony", "dsml", "llama", "mistral", "glm"],
)
over_ways = pytest.mark.parametrize("is_streamed", [True, False], ids=["streamed", "whole"])
ONE = Usage(11, 7)


class ReadTool:
    """A tool `read` that counts its runs."""

    def __init__(self) -> None:
        self.ran = 0

        async def read(path: str = "") -> str:
            """Read a file."""
            self.ran += 1
            return "It rains."

        self.tool = tool(read)


def result_of(events: list[SessionEvent]) -> AskResult:
    last = events[-1]
    assert isinstance(last, CompleteEvent | ErrorEvent)
    return last.result


def messages(events: list[SessionEvent]) -> list[MessageEvent]:
    return [event for event in events if isinstance(event, MessageEvent)]


def instructions(events: list[LogEvent]) -> list[str]:
    return [unpack(event.message).text for event in events if isinstance(event, FormatRequested)]


def result_in_log(runtime: Runtime, session: Session) -> AskResult:
    """Return the result of the last ask as the log reports it."""
    publisher = Publisher()
    return result_of([shown for event in log(runtime, session) for shown in publisher.publish(event)])


def assert_log_agrees(runtime: Runtime, session: Session, result: AskResult) -> None:
    """Check that the log reports the same result, apart from fields that only the caller receives."""
    said, later = ({**vars_of(each), **_OWN} for each in (result, result_in_log(runtime, session)))
    assert said == later


_OWN: dict[str, object] = dict.fromkeys(("output", "cost", "report", "losses", "refusals", "turn_before"))


def vars_of(result: AskResult) -> dict[str, object]:
    return {name: getattr(result, name) for name in result.__struct_fields__}


@pytest.mark.sampled(3)
@pytest.mark.alternating
@over_ways
@over_hosts
@pytest.mark.parametrize("parts", NOTHING.values(), ids=NOTHING)
async def test_an_empty_answer_is_retried_and_both_requests_are_counted(
    name: str, is_streamed: bool, parts: tuple[TurnPart, ...]
) -> None:
    turns = Turn(*parts), Turn(Say("Hi.")), Turn(Say("More."))
    async with scripted(name, *turns, is_streamed=is_streamed) as (host, runtime, session):
        events = await gather_events(session, "Go.")
        assert_log_agrees(runtime, session, result_of(events))
        second = await session.ask("Go on.")
        history = await session.history()
    first, (empty, whole) = result_of(events), messages(events)
    assert (first.status, first.text, first.incomplete, first.rounds) == ("complete", "Hi.", None, 2)
    assert (empty.incomplete, whole.incomplete, first.usage, second.usage) == ("empty", None, ONE + ONE, ONE)
    assert empty.message.blocks == ()
    retried, ended = first.attempts
    assert (retried.status, retried.error, retried.cause) == ("retried", EMPTY, Cause("model_fault"))
    assert ended.status == "complete"
    assert [message.text for message in history] == ["Go.", "Hi.", "Go on.", "More."]
    assert len(host.requests) == 3
    if name != "openai_responses":  # whose requests have unique ids
        assert host.requests[0].body == host.requests[1].body


@pytest.mark.sampled(2)
@pytest.mark.alternating
@over_ways
@over_hosts
@pytest.mark.parametrize("parts", [(), (Think("I could read."),)], ids=["nothing", "thoughts"])
async def test_a_second_empty_answer_fails_the_ask(
    name: str, is_streamed: bool, parts: tuple[TurnPart, ...]
) -> None:
    turns = Turn(*parts), Turn(*parts), Turn(Say("Hi."))
    async with scripted(name, *turns, is_streamed=is_streamed) as (_, runtime, session):
        events = await gather_events(session, "Go.")
        assert_log_agrees(runtime, session, result_of(events))
        second = await session.ask("Go on.")
    first = result_of(events)
    assert (first.status, first.incomplete, first.text, first.rounds) == ("failed", "empty", "", 2)
    assert first.error == f"{EMPTY}, twice"
    assert (first.usage, second.status, second.text) == (ONE + ONE, "complete", "Hi.")


async def test_a_second_empty_answer_causes_a_failover_to_the_next_member() -> None:
    first, other = openai(Turn(Think("Hm.")), Turn()), anthropic(Turn(Say("Hi.")))
    pool = {"both": PoolSettings(members=("a", "b"), policy="failover")}
    async with runtime_with(pools=pool, a=first, b=other) as runtime:
        session = await runtime.open("both")
        result = await session.ask("Go.")
        assert_log_agrees(runtime, session, result)
    assert (result.status, result.text, result.binding.backend) == ("complete", "Hi.", "b")
    assert [attempt.status for attempt in result.attempts] == ["retried", "handed_over", "complete"]


@pytest.mark.sampled(2)
@pytest.mark.alternating
@over_ways
@over_hosts
async def test_an_empty_answer_after_tool_results_is_prompted_once(name: str, is_streamed: bool) -> None:
    reader = ReadTool()
    turns = Turn(Call("read")), Turn(), Turn(), Turn(Say("Done."))
    async with scripted(name, *turns, is_streamed=is_streamed, tools=[reader.tool]) as (
        _,
        runtime,
        session,
    ):
        result = await session.ask("Go.")
        assert_log_agrees(runtime, session, result)
        after = await session.ask("And?")
        assert instructions(log(runtime, session)) == [EMPTY_ANSWER_NOTE]
    assert (result.status, result.incomplete, result.text, result.rounds) == ("complete", "empty", "", 3)
    assert (after.text, after.incomplete, reader.ran) == ("Done.", None, 1)


@pytest.mark.sampled(2)
@pytest.mark.alternating
@over_ways
@over_hosts
async def test_a_model_prompted_after_an_empty_answer_may_call_tools_again(
    name: str, is_streamed: bool
) -> None:
    reader = ReadTool()
    turns = Turn(Call("read")), Turn(), Turn(Call("read")), Turn(Think("Hm.")), Turn(Say("Done."))
    async with scripted(name, *turns, is_streamed=is_streamed, tools=[reader.tool]) as (
        _,
        runtime,
        session,
    ):
        result = await session.ask("Go.")
        assert instructions(log(runtime, session)) == [EMPTY_ANSWER_NOTE, EMPTY_ANSWER_NOTE]
    assert (result.status, result.incomplete, result.text, result.rounds, reader.ran) == (
        "complete",
        None,
        "Done.",
        5,
        2,
    )


@pytest.mark.sampled(2)
@pytest.mark.alternating
@over_ways
@over_hosts
async def test_a_call_written_as_text_is_corrected_once_and_never_run(name: str, is_streamed: bool) -> None:
    reader, raw = ReadTool(), f"I read it. {RAW_CALLS['kimi']}"
    turns = Turn(Say(raw), fragment=5), Turn(Call("read")), Turn(Say("It rains."))
    async with scripted(name, *turns, is_streamed=is_streamed, tools=[reader.tool]) as (
        _,
        runtime,
        session,
    ):
        events = await gather_events(session, "Go.")
        assert_log_agrees(runtime, session, result_of(events))
        assert instructions(log(runtime, session)) == [UNPARSED]
        history = await session.history()
    result = result_of(events)
    assert (result.status, result.incomplete, result.text, reader.ran) == ("complete", None, "It rains.", 1)
    assert [said.incomplete for said in messages(events)] == ["unparsed", None, None]
    assert [message.text for message in history][:3] == ["Go.", raw, UNPARSED]


@pytest.mark.sampled(2)
@pytest.mark.alternating
@over_ways
@over_families
async def test_a_second_call_written_as_text_is_reported(raw: str, is_streamed: bool) -> None:
    reader = ReadTool()
    turns = Turn(Say(raw), fragment=3), Turn(Say(raw), fragment=1), Turn(Say("Hi."))
    async with scripted("vllm", *turns, is_streamed=is_streamed, tools=[reader.tool]) as (
        _,
        runtime,
        session,
    ):
        result = await session.ask("Go.")
        assert_log_agrees(runtime, session, result)
        after = await session.ask("Go on.")
    assert (result.status, result.incomplete, result.text, result.rounds) == ("complete", "unparsed", raw, 2)
    assert (after.text, after.incomplete, reader.ran) == ("Hi.", None, 0)


@over_ways
@pytest.mark.parametrize("about", ["inline code", "a fence", "quotes"])
async def test_an_answer_that_quotes_chat_templates_is_accepted(about: str, is_streamed: bool) -> None:
    text = ABOUT_CALLS[about]
    turn = Turn(Say(text), fragment=3)
    async with scripted("vllm", turn, is_streamed=is_streamed, tools=[ReadTool().tool]) as (_, _, session):
        result = await session.ask("How do they mark calls?")
    assert (result.status, result.incomplete, result.text, result.rounds) == ("complete", None, text, 1)


async def test_without_tools_a_call_written_as_text_counts_as_an_answer() -> None:
    raw = RAW_CALLS["qwen"]
    async with scripted("vllm", Turn(Say(raw))) as (_, _, session):
        result = await session.ask("How do they mark calls?")
    assert (result.status, result.incomplete, result.text, result.rounds) == ("complete", None, raw, 1)


async def test_a_structured_call_runs_even_if_another_call_is_written_as_text() -> None:
    reader = ReadTool()
    turns = Turn(Say(RAW_CALLS["qwen"]), Call("read")), Turn(Say("Done."))
    async with scripted("vllm", *turns, tools=[reader.tool]) as (_, runtime, session):
        result = await session.ask("Go.")
        assert instructions(log(runtime, session)) == []
    assert (result.text, result.incomplete, reader.ran) == ("Done.", None, 1)


@pytest.mark.parametrize("name", ["anthropic", "openai_responses", "gemini"])
async def test_a_truncated_answer_without_text_is_not_retried(name: str) -> None:
    stop = {"anthropic": "max_tokens", "openai_responses": "max_output_tokens", "gemini": "MAX_TOKENS"}[name]
    async with scripted(name, Turn(Think("I could"), stop=stop)) as (_, _, session):
        result = await session.ask("Go.")
    assert (result.status, result.incomplete, result.rounds) == ("complete", "length", 1)


async def test_output_of_a_builtin_provider_tool_counts_as_content() -> None:
    search: dict[str, Any] = {
        "type": "server_tool_use",
        "id": "srvtoolu_1",
        "name": "web_search",
        "input": {},
    }
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    async with scripted("anthropic", Turn(Builtin(search), Builtin(found))) as (_, _, session):
        result = await session.ask("Go.")
    assert (result.status, result.incomplete, result.rounds) == ("complete", None, 1)


async def test_a_tool_choice_is_forced_again_after_an_empty_answer() -> None:
    server, reader = anthropic(Turn(), Turn(Call("read")), Turn(Say("Done."))), ReadTool()
    async with scripted(server, tools=[reader.tool]) as (_, _, session):
        result = await session.ask("Go.", tool_choice="required")
    assert result.text == "Done."
    choices = [body.get("tool_choice") for body in bodies(server)]
    assert choices == [{"type": "any"}, {"type": "any"}, None]


async def test_an_empty_answer_after_a_handoff_does_not_hand_off_again() -> None:
    to_b = handoff("to_b", "Hand over to B.", target="b")
    above, other = openai(Turn(Call("to_b"))), anthropic(Turn(), Turn(Say("Here is B.")))
    async with runtime_with(a=above, b=other) as runtime:
        session = await runtime.open("a", tools=[to_b])
        result = await session.ask("Go.")
        bound = [event.binding.backend for event in log(runtime, session) if isinstance(event, TurnStarted)]
    assert (result.status, result.text, bound) == ("complete", "Here is B.", ["a", "b"])


async def test_tools_see_the_same_history_before_and_after_the_prompt_about_an_empty_answer() -> None:
    lengths: list[int] = []

    @tool
    async def count(context: ToolContext[Any]) -> str:
        """Count the messages."""
        lengths.append(len(context.history))
        return "counted"

    look = Tool.external("look", "Looks something up.", {"type": "object"}, read_only=True)
    server = anthropic(
        Turn(Call("count")), Turn(), Turn(Call("look")), Turn(Call("count")), Turn(Say("Done."))
    )
    async with scripted(server, tools=[count, look]) as (_, runtime, session):
        waits = await session.ask("Go.")
        assert [instructions(log(runtime, session)), waits.status] == [[EMPTY_ANSWER_NOTE], "awaiting"]
        result = await session.ask(results={waits.pending_calls[0].id: "found"})
    assert (result.status, result.text, lengths) == ("complete", "Done.", [1, 1])


async def test_a_subagent_without_an_answer_fails_its_call() -> None:
    reader = ReadTool()
    research = subagent("research", "Find out.", target="b", tools=[reader.tool])
    above = openai(Turn(Call("research", {"task": "Look."})), Turn(Say("It failed.")))
    below = anthropic(Turn(Call("read")), Turn(), Turn())
    async with runtime_with(a=above, b=below) as runtime:
        session = await runtime.open("a", tools=[research])
        result = await session.ask("Go.")
        (answer,) = results(bodies(above)[-1]).values()
        assert_paired(bodies(above)[-1])
    assert result.text == "It failed."
    assert answer == f"ERROR: SubagentFailed: research gave no answer: {EMPTY}"


async def test_an_empty_answer_with_an_output_type_is_retried() -> None:
    async with scripted("anthropic", Turn(), Turn(Say('{"value": 3}'))) as (_, runtime, session):
        result = await session.ask("How many?", output=int)
        assert instructions(log(runtime, session)) == []
    assert (result.status, result.output, result.rounds) == ("complete", 3, 2)


async def test_a_call_written_as_text_is_never_parsed_as_an_output_value() -> None:
    raw = '<tool_call>{"value": 7}</tool_call>'
    server = anthropic(Turn(Say(raw)), Turn(Say('{"value": 3}')))
    async with scripted(server, tools=[ReadTool().tool]) as (_, _, session):
        result = await session.ask("How many?", output=int)
    assert (result.status, result.output) == ("complete", 3)


async def test_the_correction_of_a_call_written_as_text_mentions_that_tools_are_off() -> None:
    server = anthropic(Turn(Say(RAW_CALLS["llama"])), Turn(Say("Hi.")))
    async with scripted(server, tools=[ReadTool().tool]) as (_, runtime, session):
        result = await session.ask("Go.", tool_choice="none")
        assert instructions(log(runtime, session)) == [UNPARSED_TOOLS_OFF]
    assert (result.status, result.text, result.incomplete) == ("complete", "Hi.", None)
    assert [body["tool_choice"] for body in bodies(server)] == [{"type": "none"}, {"type": "none"}]


async def test_a_budget_can_end_an_ask_before_the_retry_of_an_empty_answer() -> None:
    async with runtime_with(a=openai(Turn(), Turn(Say("Hi.")))) as runtime:
        session = await runtime.open("a", budget=Budget(rounds=1))
        result = await session.ask("Go.", check=False)
        assert_log_agrees(runtime, session, result)
    assert (result.status, result.rounds, result.incomplete) == ("failed", 1, "empty")
    assert "budget" in result.error


async def test_a_session_continues_after_a_kill_at_any_event_of_a_correction() -> None:
    reader = ReadTool()
    script = [Turn(), Turn(Say(RAW_CALLS["qwen"]))]
    async with runtime_with(a=openai(*script)) as runtime:
        session = await runtime.open("a", id="trip", tools=[reader.tool])
        whole = await session.ask("Go.")
        events = log(runtime, session)
    assert (whole.status, whole.incomplete, whole.rounds) == ("complete", "unparsed", 2)
    (asked_at,) = (at for at, event in enumerate(events) if isinstance(event, TurnStarted))
    for stop in range(asked_at + 1, len(events)):
        server, storage = openai(Turn(Say("Hi."))), MemoryStorage()
        copy_log(events[:stop], storage)
        async with running_server(server) as made, made(storage) as runtime:
            session = await runtime.resume("trip", tools=[reader.tool])
            assert result_in_log(runtime, session).status == "interrupted"
            assert (await session.ask("Go on.")).text == "Hi."
            await assert_rebuilds(runtime, session)
        assert server.refusals == []


@pytest.mark.parametrize("name", ["template-tokens-kimi", "template-tokens-qwen", "template-tokens-harmony"])
async def test_recorded_calls_written_as_text_are_corrected_once_and_then_reported(name: str) -> None:
    case, reader = recorded_case(name), ReadTool()
    result, instructed = await answer_with_case(case, reader)
    assert (result.status, result.incomplete, reader.ran, instructed) == (
        "complete",
        "unparsed",
        0,
        [UNPARSED],
    )


@pytest.mark.parametrize("name", ["no-answer-thoughts", "no-answer-nothing"])
async def test_recorded_empty_answers_are_retried_and_then_fail(name: str) -> None:
    result, instructed = await answer_with_case(recorded_case(name), ReadTool())
    assert (result.status, result.incomplete, result.rounds, instructed) == ("failed", "empty", 2, [])


def recorded_case(name: str) -> dict[str, Any]:  # Any: JSON
    case: dict[str, Any] = json.loads((CASES / f"{name}.json").read_text())
    return case


async def answer_with_case(
    case: dict[str, Any], reader: ReadTool
) -> tuple[AskResult, list[str]]:  # Any: JSON
    """Ask a model that answers with the events of a case, twice, and check that the next ask is served."""
    lines = [f"data: {json.dumps(event)}\n\n" for event in case["events"]]
    garbage = Garbage("".join((*lines, "data: [DONE]\n\n")).encode())
    name = "kimi" if case["dialect"] == "kimi" else "vllm"
    host = strict_host(name, Script([Turn(Say("Hi."))]))
    host.faults = {0: garbage, 1: garbage}
    async with scripted(host, tools=[reader.tool]) as (_, runtime, session):
        result = await session.ask("Go.", check=False)
        assert_log_agrees(runtime, session, result)
        instructed = instructions(log(runtime, session))
        assert (await session.ask("Go on.")).text == "Hi."
    return result, instructed
