"""Subagents: a session as a tool, with its own log, whose life is that of its call."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import anyio
import pytest

from actors import Session, Tool, ToolContext, subagent, tool
from actors.config import RuntimeLimits
from actors.core.log.events import AskStarted, Closed, LogEvent, Opened
from actors.core.stream_events.ask_events import CompleteEvent
from actors.core.stream_events.events import SessionEvent, SubagentEvent
from actors.core.stream_events.round_events import TextEvent
from actors.core.values.content import ToolCall
from actors.errors import ConfigError, ReentrantCall, SessionClosed, SessionError, ToolDefinitionError
from actors.runtime.runtime import Runtime
from actors.strict.server import LoopbackServer
from actors.testing import Call, OpenAIServer, Say, Status, Turn
from tests.runtime_support import (
    Gate,
    actors,
    anthropic,
    bodies,
    gather_events,
    log,
    openai,
    results,
    runtime_with,
)

pytestmark = pytest.mark.anyio

MakeServer = Callable[..., LoopbackServer]
SERVERS = pytest.mark.parametrize("make_server", [openai, anthropic])
DELEGATES = Turn(Call("helper", {"task": "Find the price."}))
DONE = Turn(Say("It costs 120."))
WORKS = Turn(Call("work", {"name": "a"}))


def helper(*tools: Tool[..., Any], **options: Any) -> Tool[..., Any]:  # Any: any functions; fields of a tool
    return subagent("helper", "Helps.", target="b", system="Be brief.", tools=tools, **options)


def log_of(runtime: Runtime, session: str) -> list[LogEvent]:
    return runtime._storage.read(session)


async def only_result(session: Session) -> str:
    """Return the result of the only call of a session."""
    (known,) = (await session.ledger()).interactions()
    assert known.completion is not None
    return str(known.completion.error or known.completion.content)


# --- a task and its answer


@SERVERS
async def test_the_answer_of_a_subagent_is_the_result_of_its_call(make_server: MakeServer) -> None:
    above, below = openai(DELEGATES, DONE), make_server(WORKS, Turn(Say("120.")))
    gate = Gate()
    gate.open("a")
    async with runtime_with(a=above, b=below) as runtime:
        session = await runtime.open("a", tools=[helper(gate.tool)], id="trip")
        result = await session.ask("What does it cost?")
        assert list(runtime.sessions) == ["trip"]
        assert [name for name in actors(runtime) if name.startswith("trip-c1")] == []
        first, *_, last = log_of(runtime, "trip-c1")
    assert (result.text, result.status) == ("It costs 120.", "complete")
    assert list(results(bodies(above)[-1]).values()) == ["120."]
    assert gate.runs == ["a"]
    assert isinstance(first, Opened)
    assert (first.session, first.target, first.system) == ("trip-c1", "b", "Be brief.")
    assert isinstance(last, Closed)


async def test_two_subagents_of_one_message_run_concurrently_and_have_their_own_logs() -> None:
    gate = Gate()
    twice = Turn(Call("helper", {"task": "One."}), Call("helper", {"task": "Two."}))

    def work_then_answer(request: dict[str, Any]) -> Turn:  # Any: a request body
        is_answered = request["messages"][-1]["role"] == "tool"
        return Turn(Say("Found.")) if is_answered else WORKS

    async with runtime_with(a=openai(twice, DONE), b=OpenAIServer(work_then_answer)) as runtime:
        session = await runtime.open("a", tools=[helper(gate.tool)], id="trip")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.ask, "Go.")
            while gate.runs != ["a", "a"]:
                await anyio.lowlevel.checkpoint()
            assert sorted(runtime.sessions) == ["trip", "trip-c1", "trip-c2"]
            gate.open("a")
        tasks_given = [
            event.message
            for name in ("trip-c1", "trip-c2")
            for event in log_of(runtime, name)
            if isinstance(event, AskStarted)
        ]
    assert len(tasks_given) == 2


async def test_a_failed_subagent_fails_its_call_with_the_reason() -> None:
    above = openai(DELEGATES, Turn(Say("I see.")))
    async with runtime_with(a=above, b=openai(faults={0: Status(400, message="no such model")})) as runtime:
        session = await runtime.open("a", tools=[helper()])
        result = await session.ask("Go.")
        why = await only_result(session)
    assert result.status == "complete"
    assert "SubagentFailed: helper did not complete (failed): " in why
    assert "no such model" in why


async def test_a_subagent_with_an_output_type_returns_a_structured_result() -> None:
    @dataclass
    class Price:
        amount: int

    made = subagent("helper", "Helps.", target="b", output=Price)
    async with runtime_with(a=openai(DELEGATES, DONE), b=openai(Turn(Say('{"amount": 120}')))) as runtime:
        session = await runtime.open("a", tools=[made])
        await session.ask("Go.")
        (known,) = (await session.ledger()).interactions()
    assert known.completion is not None
    assert known.completion.content == {"amount": 120}


async def test_a_tool_may_ask_a_subagent_several_times() -> None:
    @tool
    async def talk(context: ToolContext[str]) -> list[str]:
        """Talk."""
        async with context.subagent() as child:
            told = [(await child.ask(words)).text for words in ("One?", "Two?")]
        async with context.subagent("b", tools=[tell]) as other:
            told.append((await other.ask("Three?")).text)
            told += [child.id, other.id]
        with pytest.raises(SessionClosed):
            await child.ask("More?")
        return told

    @tool
    async def tell(context: ToolContext[str]) -> str:
        """Tell."""
        return context.deps

    below = openai(Turn(Call("tell")), Turn(Say("3")))
    above = openai(Turn(Call("talk")), Turn(Say("1")), Turn(Say("2")), DONE)
    async with runtime_with(a=above, b=below) as runtime:
        session = await runtime.open("a", tools=[talk], deps="Oslo", id="x")
        await session.ask("Go.")
        assert await only_result(session) == "['1', '2', '3', 'x-c1', 'x-c1-2']"
    assert list(results(bodies(below)[-1]).values()) == ["Oslo"]


async def test_a_subagent_does_not_reuse_the_id_of_an_earlier_log() -> None:
    async with runtime_with(a=openai(DELEGATES, DONE), b=openai(Turn(Say("120.")))) as runtime:
        earlier = await runtime.open("b", id="trip-c1")
        await earlier.close()
        session = await runtime.open("a", tools=[helper()], id="trip")
        await session.ask("Go.")
        assert sorted(each.id for each in runtime._storage.sessions()) == ["trip", "trip-c1", "trip-c1-2"]


# --- limits


def test_an_external_tool_is_rejected_when_its_subagent_is_defined() -> None:
    click = Tool.external("click", "Click.", {"type": "object"})
    with pytest.raises(ToolDefinitionError, match="'helper' has the external tool 'click'"):
        helper(click)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"tools": [None]}, "tools= contains a value of type NoneType"),
        (
            {"tools": Tool.from_schema("look", "", {"type": "object"}, print)},
            "tools= takes a list, such as [look]",
        ),
        ({"tools": "files"}, "tools= takes a list, such as ['files']"),
        ({"system": 5}, "system= takes a string, not int"),
        ({"target": 5}, "target= takes a string, not int"),
    ],
    ids=["none", "tool", "text", "system", "target"],
)
def test_invalid_options_are_rejected_when_a_subagent_is_defined(
    options: Any, says: str
) -> None:  # Any: any value that a program may pass
    with pytest.raises(ConfigError) as refused:
        subagent("helper", "Helps.", **options)
    assert says in str(refused.value)


async def test_a_context_without_a_session_opens_no_subagent() -> None:
    with pytest.raises(SessionError, match="without a session cannot open a subagent"):
        ToolContext(None).subagent()


@pytest.mark.parametrize("approves", [True, False, None])
async def test_calls_of_a_subagent_use_the_approval_of_its_parent(
    approves: bool | None,
) -> None:
    asked: list[ToolCall] = []

    def approve(call: ToolCall) -> bool:
        asked.append(call)
        return bool(approves)

    @tool(approval="ask")
    async def work(name: str) -> str:
        """Work."""
        return "done"

    below = openai(WORKS, Turn(Say("120.")))
    async with runtime_with(a=openai(DELEGATES, DONE), b=below) as runtime:
        session = await runtime.open("a", tools=[helper(work)], approve=None if approves is None else approve)
        assert (await session.ask("Go.")).status == "complete"
    (answer,) = results(bodies(below)[-1]).values()
    assert (answer == "done") == bool(approves)
    assert len(asked) == (approves is not None)


@pytest.mark.parametrize("depth", [0, 2])
async def test_the_depth_of_subagents_is_limited(depth: int) -> None:
    """Each level delegates to the next, until the limit rejects one."""

    @tool
    async def deeper(context: ToolContext[None]) -> str:
        """Delegate further."""
        async with context.subagent(tools=[deeper]) as child:
            return (await child.ask("Go.")).text

    def delegate_or_report(request: dict[str, Any]) -> Turn:  # Any: a request body
        last = request["messages"][-1]
        return Turn(Say(str(last["content"]))) if last["role"] == "tool" else Turn(Call("deeper"))

    async with runtime_with(
        a=OpenAIServer(delegate_or_report), limits=RuntimeLimits(max_subagent_depth=depth)
    ) as runtime:
        session = await runtime.open("a", tools=[deeper], id="x")
        text = (await session.ask("Go.")).text
        assert sorted(each.id for each in runtime._storage.sessions()) == [
            "x" + "-c1" * level for level in range(depth + 1)
        ]
    assert "SubagentDepthExceeded: A subagent of session" in text
    assert f"{depth + 1} levels deep; limits.max_subagent_depth is {depth}" in text


async def test_a_tool_of_a_subagent_may_not_ask_the_parent() -> None:
    found: list[BaseException] = []

    async def work(name: str) -> str:
        """Work."""
        try:
            await runtime.session("trip").ask("Well?")
        except SessionError as error:
            found.append(error)
        return "done"

    async with runtime_with(a=openai(DELEGATES, DONE), b=openai(WORKS, Turn(Say("120.")))) as runtime:
        session = await runtime.open("a", tools=[helper(tool(work))], id="trip")
        await session.ask("Go.")
    assert [type(error) for error in found] == [ReentrantCall]


# --- its events


async def test_the_stream_of_the_parent_shows_events_of_a_subagent_with_their_path() -> None:
    gate = Gate()
    gate.open("a")
    async with runtime_with(a=openai(DELEGATES, DONE), b=openai(WORKS, Turn(Say("120.")))) as runtime:
        session = await runtime.open("a", tools=[helper(gate.tool)], id="trip")
        seen = await gather_events(session, "Go.")
        numbers = {*range(1, len(log_of(runtime, "trip-c1")) + 1)}
    shown = [event for event in seen if isinstance(event, SubagentEvent)]
    assert {(event.path, event.session) for event in shown} == {(("hist_tool_1",), "trip-c1")}
    inner: list[SessionEvent] = [event.event for event in shown]
    assert [event.text for event in inner if isinstance(event, TextEvent)] == ["120."]
    assert isinstance(inner[-1], CompleteEvent)
    assert {seq for event in inner if (seq := getattr(event, "seq", None)) is not None} <= numbers
    assert [type(event) for event in seen].count(CompleteEvent) == 1
    assert isinstance(seen[-1], CompleteEvent)
    assert seen[-1].result.text == "It costs 120."


async def test_a_nested_subagent_has_the_complete_path() -> None:
    inner = subagent("inner", "Helps.", target="c")
    middle = Turn(Call("inner", {"task": "Deeper."}))
    async with runtime_with(
        a=openai(DELEGATES, DONE), b=openai(middle, Turn(Say("B."))), c=openai(Turn(Say("C.")))
    ) as runtime:
        session = await runtime.open("a", tools=[helper(inner)], id="trip")
        seen = await gather_events(session, "Go.")
    said = {
        event.event.text: (event.path, event.session)
        for event in seen
        if isinstance(event, SubagentEvent) and isinstance(event.event, TextEvent)
    }
    assert said == {
        "C.": (("hist_tool_1", "hist_tool_1"), "trip-c1-c1"),
        "B.": (("hist_tool_1",), "trip-c1"),
    }


async def test_a_late_subscriber_of_the_parent_reads_the_log_of_the_subagent() -> None:
    async with runtime_with(a=openai(DELEGATES, DONE), b=openai(Turn(Say("120.")))) as runtime:
        session = await runtime.open("a", tools=[helper()], id="trip")
        await gather_events(session, "Go.")
        late = [event async for event in session.events(follow=False)]
    assert not any(isinstance(event, SubagentEvent) for event in late)
    assert runtime._storage.read("trip-c1")


async def test_a_subagent_whose_events_are_not_read_publishes_no_events() -> None:
    async with runtime_with(a=openai(DELEGATES, DONE), b=openai(Turn(Say("120.")))) as runtime:
        seen: list[object] = []

        @tool
        async def look(task: str, context: ToolContext[None]) -> str:
            """Look."""
            async with context.subagent("b") as child:
                seen.append(runtime.session(child.id)._lifecycle.parent_call.show)  # type: ignore[union-attr]  # the subagent has a parent
                return (await child.ask(task)).text

        session = await runtime.open("a", tools=[subagent("unused", "Unused."), _rename(look)])
        await session.ask("Go.")
        assert [event for event in log(runtime, session) if isinstance(event, Closed)] == []
    assert seen == [None]


def _rename(made: Tool[..., Any]) -> Tool[..., Any]:  # Any: any function
    return tool(name="helper", description="Helps.")(made.function)
