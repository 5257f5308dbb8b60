"""An answer without content, in a session: it is tried or corrected once, and then the result reports it."""

import json
from pathlib import Path
from typing import Any

import pytest

from actors import Budget, Session, Tool, ToolContext, handoff, subagent, tool
from actors.config import PoolSettings
from actors.core.log.events import FormatRequested, LogEvent, TurnStarted
from actors.core.session.publishing import Publisher
from actors.core.stream_events.events import CompleteEvent, ErrorEvent, MessageEvent, SessionEvent
from actors.core.stream_events.results import AskResult
from actors.core.turn.no_content import EMPTY, NUDGE, UNPARSED, UNPARSED_TOOLS_OFF
from actors.core.values.packed import unpack
from actors.core.values.progress import Cause
from actors.core.values.stream import Usage
from actors.journal.storage.memory import MemoryStorage
from actors.runtime.runtime import Runtime
from actors.strict.script import TurnPart
from actors.testing import Builtin, Call, Garbage, Say, Script, Think, Turn
from tests.adapters.raw_calls import ABOUT_CALLS, RAW_CALLS
from tests.runtime.test_resume import copied, serving
from tests.runtime_support import (
    anthropic,
    assert_paired,
    assert_rebuilds,
    bodies,
    gathered,
    hosting,
    log,
    openai,
    results,
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


class Reader:
    """A tool `read`, and how often it ran."""

    def __init__(self) -> None:
        self.ran = 0

        async def read(path: str = "") -> str:
            """Read a file."""
            self.ran += 1
            return "It rains."

        self.tool = tool(read)


def end(events: list[SessionEvent]) -> AskResult:
    last = events[-1]
    assert isinstance(last, CompleteEvent | ErrorEvent)
    return last.result


def messages(events: list[SessionEvent]) -> list[MessageEvent]:
    return [event for event in events if isinstance(event, MessageEvent)]


def told(events: list[LogEvent]) -> list[str]:
    return [unpack(event.message).text for event in events if isinstance(event, FormatRequested)]


def retold(runtime: Runtime, session: Session) -> AskResult:
    """Return how the last ask came out, as its log has it."""
    publisher = Publisher()
    return end([shown for event in log(runtime, session) for shown in publisher.publish(event)])


def assert_retold(runtime: Runtime, session: Session, result: AskResult) -> None:
    """Who reads the log later is told the same, but for what is only for who asked."""
    said, later = ({**vars_of(each), **_OWN} for each in (result, retold(runtime, session)))
    assert said == later


_OWN: dict[str, object] = dict.fromkeys(("output", "cost", "report", "losses", "refusals", "turn_before"))


def vars_of(result: AskResult) -> dict[str, object]:
    return {name: getattr(result, name) for name in result.__struct_fields__}


@pytest.mark.sampled(3)
@pytest.mark.alternating
@over_ways
@over_hosts
@pytest.mark.parametrize("parts", NOTHING.values(), ids=NOTHING)
async def test_an_empty_answer_is_asked_for_again_and_both_requests_are_counted(
    name: str, is_streamed: bool, parts: tuple[TurnPart, ...]
) -> None:
    turns = Turn(*parts), Turn(Say("Hi.")), Turn(Say("More."))
    async with scripted(name, *turns, is_streamed=is_streamed) as (host, runtime, session):
        events = await gathered(session, "Go.")
        assert_retold(runtime, session, end(events))
        second = await session.ask("Go on.")
        history = await session.history()
    first, (empty, whole) = end(events), messages(events)
    assert (first.status, first.text, first.incomplete, first.rounds) == ("complete", "Hi.", None, 2)
    assert (empty.incomplete, whole.incomplete, first.usage, second.usage) == ("empty", None, ONE + ONE, ONE)
    assert empty.message.blocks == ()
    retried, ended = first.attempts
    assert (retried.status, retried.error, retried.cause) == ("retried", EMPTY, Cause("model_fault"))
    assert ended.status == "complete"
    assert [message.text for message in history] == ["Go.", "Hi.", "Go on.", "More."]
    assert len(host.requests) == 3
    if name != "openai_responses":  # where each request has an id of its own
        assert host.requests[0].body == host.requests[1].body


@pytest.mark.sampled(2)
@pytest.mark.alternating
@over_ways
@over_hosts
@pytest.mark.parametrize("parts", [(), (Think("I could read."),)], ids=["nothing", "thoughts"])
async def test_an_answer_that_is_empty_twice_fails_the_ask_and_the_session_goes_on(
    name: str, is_streamed: bool, parts: tuple[TurnPart, ...]
) -> None:
    turns = Turn(*parts), Turn(*parts), Turn(Say("Hi."))
    async with scripted(name, *turns, is_streamed=is_streamed) as (_, runtime, session):
        events = await gathered(session, "Go.")
        assert_retold(runtime, session, end(events))
        second = await session.ask("Go on.")
    first = end(events)
    assert (first.status, first.incomplete, first.text, first.rounds) == ("failed", "empty", "", 2)
    assert first.error == f"{EMPTY}, twice"
    assert (first.usage, second.status, second.text) == (ONE + ONE, "complete", "Hi.")


async def test_an_answer_that_is_empty_twice_is_asked_of_the_pools_next_member() -> None:
    first, other = openai(Turn(Think("Hm.")), Turn()), anthropic(Turn(Say("Hi.")))
    pool = {"both": PoolSettings(members=("a", "b"), policy="failover")}
    async with hosting(pools=pool, a=first, b=other) as runtime:
        session = await runtime.open("both")
        result = await session.ask("Go.")
        assert_retold(runtime, session, result)
    assert (result.status, result.text, result.binding.backend) == ("complete", "Hi.", "b")
    assert [attempt.status for attempt in result.attempts] == ["retried", "handed_over", "complete"]


@pytest.mark.sampled(2)
@pytest.mark.alternating
@over_ways
@over_hosts
async def test_an_empty_answer_behind_tool_results_is_told_once_and_then_reported(
    name: str, is_streamed: bool
) -> None:
    reader = Reader()
    turns = Turn(Call("read")), Turn(), Turn(), Turn(Say("Done."))
    async with scripted(name, *turns, is_streamed=is_streamed, tools=[reader.tool]) as (_, runtime, session):
        result = await session.ask("Go.")
        assert_retold(runtime, session, result)
        after = await session.ask("And?")
        assert told(log(runtime, session)) == [NUDGE]
    assert (result.status, result.incomplete, result.text, result.rounds) == ("complete", "empty", "", 3)
    assert (after.text, after.incomplete, reader.ran) == ("Done.", None, 1)


@pytest.mark.sampled(2)
@pytest.mark.alternating
@over_ways
@over_hosts
async def test_a_model_that_is_told_of_its_empty_answer_may_go_on(name: str, is_streamed: bool) -> None:
    reader = Reader()
    turns = Turn(Call("read")), Turn(), Turn(Call("read")), Turn(Think("Hm.")), Turn(Say("Done."))
    async with scripted(name, *turns, is_streamed=is_streamed, tools=[reader.tool]) as (_, runtime, session):
        result = await session.ask("Go.")
        assert told(log(runtime, session)) == [NUDGE, NUDGE]
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
async def test_a_call_as_text_is_told_once_and_never_run(name: str, is_streamed: bool) -> None:
    reader, raw = Reader(), f"I read it. {RAW_CALLS['kimi']}"
    turns = Turn(Say(raw), fragment=5), Turn(Call("read")), Turn(Say("It rains."))
    async with scripted(name, *turns, is_streamed=is_streamed, tools=[reader.tool]) as (_, runtime, session):
        events = await gathered(session, "Go.")
        assert_retold(runtime, session, end(events))
        assert told(log(runtime, session)) == [UNPARSED]
        history = await session.history()
    result = end(events)
    assert (result.status, result.incomplete, result.text, reader.ran) == ("complete", None, "It rains.", 1)
    assert [said.incomplete for said in messages(events)] == ["unparsed", None, None]
    assert [message.text for message in history][:3] == ["Go.", raw, UNPARSED]


@pytest.mark.sampled(2)
@pytest.mark.alternating
@over_ways
@over_families
async def test_a_call_as_text_that_comes_twice_is_reported(raw: str, is_streamed: bool) -> None:
    reader = Reader()
    turns = Turn(Say(raw), fragment=3), Turn(Say(raw), fragment=1), Turn(Say("Hi."))
    async with scripted("vllm", *turns, is_streamed=is_streamed, tools=[reader.tool]) as (
        _,
        runtime,
        session,
    ):
        result = await session.ask("Go.")
        assert_retold(runtime, session, result)
        after = await session.ask("Go on.")
    assert (result.status, result.incomplete, result.text, result.rounds) == ("complete", "unparsed", raw, 2)
    assert (after.text, after.incomplete, reader.ran) == ("Hi.", None, 0)


@over_ways
@pytest.mark.parametrize("about", ["inline code", "a fence", "quotes"])
async def test_an_answer_about_chat_templates_is_left_alone(about: str, is_streamed: bool) -> None:
    text = ABOUT_CALLS[about]
    turn = Turn(Say(text), fragment=3)
    async with scripted("vllm", turn, is_streamed=is_streamed, tools=[Reader().tool]) as (_, _, session):
        result = await session.ask("How do they mark calls?")
    assert (result.status, result.incomplete, result.text, result.rounds) == ("complete", None, text, 1)


async def test_without_tools_a_call_as_text_is_an_answer() -> None:
    raw = RAW_CALLS["qwen"]
    async with scripted("vllm", Turn(Say(raw))) as (_, _, session):
        result = await session.ask("How do they mark calls?")
    assert (result.status, result.incomplete, result.text, result.rounds) == ("complete", None, raw, 1)


async def test_a_real_call_beside_one_as_text_runs_and_nothing_is_said_of_the_other() -> None:
    reader = Reader()
    turns = Turn(Say(RAW_CALLS["qwen"]), Call("read")), Turn(Say("Done."))
    async with scripted("vllm", *turns, tools=[reader.tool]) as (_, runtime, session):
        result = await session.ask("Go.")
        assert told(log(runtime, session)) == []
    assert (result.text, result.incomplete, reader.ran) == ("Done.", None, 1)


@pytest.mark.parametrize("name", ["anthropic", "openai_responses", "gemini"])
async def test_an_answer_that_is_cut_is_not_asked_for_again(name: str) -> None:
    stop = {"anthropic": "max_tokens", "openai_responses": "max_output_tokens", "gemini": "MAX_TOKENS"}[name]
    async with scripted(name, Turn(Think("I could"), stop=stop)) as (_, _, session):
        result = await session.ask("Go.")
    assert (result.status, result.incomplete, result.rounds) == ("complete", "length", 1)


async def test_what_a_providers_own_tool_did_is_content() -> None:
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


async def test_a_forced_tool_is_forced_again_where_the_answer_was_empty() -> None:
    server, reader = anthropic(Turn(), Turn(Call("read")), Turn(Say("Done."))), Reader()
    async with hosting(a=server) as runtime:
        session = await runtime.open("a", tools=[reader.tool])
        result = await session.ask("Go.", tool_choice="required")
    assert result.text == "Done."
    choices = [body.get("tool_choice") for body in bodies(server)]
    assert choices == [{"type": "any"}, {"type": "any"}, None]


async def test_a_conversation_that_was_handed_over_is_not_handed_over_again_for_an_empty_answer() -> None:
    to_b = handoff("to_b", "Hand over to B.", target="b")
    above, other = openai(Turn(Call("to_b"))), anthropic(Turn(), Turn(Say("Here is B.")))
    async with hosting(a=above, b=other) as runtime:
        session = await runtime.open("a", tools=[to_b])
        result = await session.ask("Go.")
        bound = [event.binding.backend for event in log(runtime, session) if isinstance(event, TurnStarted)]
    assert (result.status, result.text, bound) == ("complete", "Here is B.", ["a", "b"])


async def test_a_turn_that_was_told_of_its_empty_answer_and_waits_knows_where_it_began() -> None:
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
    async with hosting(a=server) as runtime:
        session = await runtime.open("a", tools=[count, look])
        waits = await session.ask("Go.")
        assert [told(log(runtime, session)), waits.status] == [[NUDGE], "awaiting"]
        result = await session.ask(results={waits.pending_calls[0].id: "found"})
    assert (result.status, result.text, lengths) == ("complete", "Done.", [1, 1])


async def test_a_subagent_without_an_answer_fails_its_call() -> None:
    reader = Reader()
    research = subagent("research", "Find out.", target="b", tools=[reader.tool])
    above = openai(Turn(Call("research", {"task": "Look."})), Turn(Say("It failed.")))
    below = anthropic(Turn(Call("read")), Turn(), Turn())
    async with hosting(a=above, b=below) as runtime:
        session = await runtime.open("a", tools=[research])
        result = await session.ask("Go.")
        (answer,) = results(bodies(above)[-1]).values()
        assert_paired(bodies(above)[-1])
    assert result.text == "It failed."
    assert answer == f"ERROR: SubagentFailed: research gave no answer: {EMPTY}"


async def test_an_answer_of_a_form_is_asked_for_again_where_it_is_empty() -> None:
    server = anthropic(Turn(), Turn(Say('{"value": 3}')))
    async with hosting(a=server) as runtime:
        session = await runtime.open("a")
        result = await session.ask("How many?", output=int)
        assert told(log(runtime, session)) == []
    assert (result.status, result.output, result.rounds) == ("complete", 3, 2)


async def test_of_a_call_as_text_no_value_is_read() -> None:
    raw = '<tool_call>{"value": 7}</tool_call>'
    server = anthropic(Turn(Say(raw)), Turn(Say('{"value": 3}')))
    async with hosting(a=server) as runtime:
        session = await runtime.open("a", tools=[Reader().tool])
        result = await session.ask("How many?", output=int)
    assert (result.status, result.output) == ("complete", 3)


async def test_an_ask_that_may_call_nothing_is_told_so() -> None:
    server = anthropic(Turn(Say(RAW_CALLS["llama"])), Turn(Say("Hi.")))
    async with hosting(a=server) as runtime:
        session = await runtime.open("a", tools=[Reader().tool])
        result = await session.ask("Go.", tool_choice="none")
        assert told(log(runtime, session)) == [UNPARSED_TOOLS_OFF]
    assert (result.status, result.text, result.incomplete) == ("complete", "Hi.", None)
    assert [body["tool_choice"] for body in bodies(server)] == [{"type": "none"}, {"type": "none"}]


async def test_a_budget_counts_both_requests_and_may_end_the_ask_between_them() -> None:
    async with hosting(a=openai(Turn(), Turn(Say("Hi.")))) as runtime:
        session = await runtime.open("a", budget=Budget(rounds=1))
        result = await session.ask("Go.", check=False)
        assert_retold(runtime, session, result)
    assert (result.status, result.rounds, result.incomplete) == ("failed", 1, "empty")
    assert "budget" in result.error


async def test_wherever_a_host_is_killed_the_rest_of_its_log_is_a_session_that_goes_on() -> None:
    reader = Reader()
    script = [Turn(), Turn(Say(RAW_CALLS["qwen"]))]
    async with hosting(a=openai(*script)) as runtime:
        session = await runtime.open("a", id="trip", tools=[reader.tool])
        whole = await session.ask("Go.")
        events = log(runtime, session)
    assert (whole.status, whole.incomplete, whole.rounds) == ("complete", "unparsed", 2)
    (asked_at,) = (at for at, event in enumerate(events) if isinstance(event, TurnStarted))
    for stop in range(asked_at + 1, len(events)):
        server, storage = openai(Turn(Say("Hi."))), MemoryStorage()
        copied(events[:stop], storage)
        async with serving(server) as made, made(storage) as runtime:
            session = await runtime.resume("trip", tools=[reader.tool])
            assert retold(runtime, session).status == "interrupted"
            assert (await session.ask("Go on.")).text == "Hi."
            await assert_rebuilds(runtime, session)
        assert server.refusals == []


@pytest.mark.parametrize("name", ["template-tokens-kimi", "template-tokens-qwen", "template-tokens-harmony"])
async def test_a_reported_answer_of_template_tokens_is_told_and_then_reported(name: str) -> None:
    case, reader = reported(name), Reader()
    result, instructed = await asked(case, reader)
    assert (result.status, result.incomplete, reader.ran, instructed) == (
        "complete",
        "unparsed",
        0,
        [UNPARSED],
    )


@pytest.mark.parametrize("name", ["no-answer-thoughts", "no-answer-nothing"])
async def test_a_reported_answer_of_nothing_is_tried_again_and_then_fails(name: str) -> None:
    result, instructed = await asked(reported(name), Reader())
    assert (result.status, result.incomplete, result.rounds, instructed) == ("failed", "empty", 2, [])


def reported(name: str) -> dict[str, Any]:  # Any: JSON
    case: dict[str, Any] = json.loads((CASES / f"{name}.json").read_text())
    return case


async def asked(case: dict[str, Any], reader: Reader) -> tuple[AskResult, list[str]]:  # Any: JSON
    """Answer an ask with the events of a case, twice, and the next one with words."""
    lines = [f"data: {json.dumps(event)}\n\n" for event in case["events"]]
    garbage = Garbage("".join((*lines, "data: [DONE]\n\n")).encode())
    name = "kimi" if case["dialect"] == "kimi" else "vllm"
    host = strict_host(name, Script([Turn(Say("Hi."))]))
    host.faults = {0: garbage, 1: garbage}
    async with scripted(host, tools=[reader.tool]) as (_, runtime, session):
        result = await session.ask("Go.", check=False)
        assert_retold(runtime, session, result)
        instructed = told(log(runtime, session))
        assert (await session.ask("Go on.")).text == "Hi."
    return result, instructed
