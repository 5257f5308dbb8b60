"""A session as a tool: with a log of its own, below the session whose call it works for, and over with that call."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import anyio
import pytest

from actors import Session, Tool, ToolContext, subagent, tool
from actors.config import RuntimeLimits
from actors.core.log.events import AskStarted, Closed, LogEvent, Opened
from actors.core.stream_events.events import CompleteEvent, SessionEvent, SubagentEvent, TextEvent
from actors.core.values.content import ToolCall
from actors.errors import ConfigError, ReentrantCall, SessionClosed, SessionError, ToolDefinitionError
from actors.runtime.runtime import Runtime
from actors.strict.server import LoopbackServer
from actors.testing import Call, OpenAIServer, Say, Status, Turn
from tests.runtime_support import Gate, actors, anthropic, bodies, gathered, hosting, log, openai, results

pytestmark = pytest.mark.anyio

Made = Callable[..., LoopbackServer]
MADE = pytest.mark.parametrize("made", [openai, anthropic])
DELEGATES = Turn(Call("helper", {"task": "Find the price."}))
DONE = Turn(Say("It costs 120."))
WORKS = Turn(Call("work", {"name": "a"}))


def helper(*tools: Tool[..., Any], **options: Any) -> Tool[..., Any]:  # Any: any functions; fields of a tool
    return subagent("helper", "Helps.", target="b", system="Be brief.", tools=tools, **options)


def events(runtime: Runtime, session: str) -> list[LogEvent]:
    return runtime._storage.read(session)


async def only(session: Session) -> str:
    """Return what answered the one call of a session."""
    (known,) = (await session.ledger()).interactions()
    assert known.completion is not None
    return str(known.completion.error or known.completion.content)


# --- a task and its answer -------------------------------------------------------------------------------


@MADE
async def test_a_subagent_is_given_a_task_and_its_answer_is_the_calls_result(made: Made) -> None:
    above, below = openai(DELEGATES, DONE), made(WORKS, Turn(Say("120.")))
    gate = Gate()
    gate.open("a")
    async with hosting(a=above, b=below) as runtime:
        session = await runtime.open("a", tools=[helper(gate.tool)], id="trip")
        result = await session.ask("What does it cost?")
        assert list(runtime.sessions) == ["trip"]
        assert [name for name in actors(runtime) if name.startswith("trip-c1")] == []
        first, *_, last = events(runtime, "trip-c1")
    assert (result.text, result.status) == ("It costs 120.", "complete")
    assert list(results(bodies(above)[-1]).values()) == ["120."]
    assert gate.runs == ["a"]
    assert isinstance(first, Opened)
    assert (first.session, first.target, first.system) == ("trip-c1", "b", "Be brief.")
    assert isinstance(last, Closed)


async def test_two_subagents_of_one_message_work_side_by_side_and_each_has_a_log() -> None:
    gate = Gate()
    twice = Turn(Call("helper", {"task": "One."}), Call("helper", {"task": "Two."}))

    def says(request: dict[str, Any]) -> Turn:  # Any: a request body
        is_answered = request["messages"][-1]["role"] == "tool"
        return Turn(Say("Found.")) if is_answered else WORKS

    async with hosting(a=openai(twice, DONE), b=OpenAIServer(says)) as runtime:
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
            for event in events(runtime, name)
            if isinstance(event, AskStarted)
        ]
    assert len(tasks_given) == 2


async def test_a_subagent_that_fails_fails_its_call_and_the_model_is_told_why() -> None:
    above = openai(DELEGATES, Turn(Say("I see.")))
    async with hosting(a=above, b=openai(faults={0: Status(400, message="no such model")})) as runtime:
        session = await runtime.open("a", tools=[helper()])
        result = await session.ask("Go.")
        why = await only(session)
    assert result.status == "complete"
    assert "SubagentFailed: helper did not complete (failed): " in why
    assert "no such model" in why


async def test_an_answer_of_a_form_is_the_calls_result_as_a_value() -> None:
    @dataclass
    class Price:
        amount: int

    made = subagent("helper", "Helps.", target="b", output=Price)
    async with hosting(a=openai(DELEGATES, DONE), b=openai(Turn(Say('{"amount": 120}')))) as runtime:
        session = await runtime.open("a", tools=[made])
        await session.ask("Go.")
        (known,) = (await session.ledger()).interactions()
    assert known.completion is not None
    assert known.completion.content == {"amount": 120}


async def test_a_tool_may_hold_a_conversation_with_a_subagent_of_its_own() -> None:
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
    async with hosting(a=above, b=below) as runtime:
        session = await runtime.open("a", tools=[talk], deps="Oslo", id="x")
        await session.ask("Go.")
        assert await only(session) == "['1', '2', '3', 'x-c1', 'x-c1-2']"
    assert list(results(bodies(below)[-1]).values()) == ["Oslo"]


async def test_a_log_that_is_kept_takes_no_id_from_a_later_subagent() -> None:
    async with hosting(a=openai(DELEGATES, DONE), b=openai(Turn(Say("120.")))) as runtime:
        earlier = await runtime.open("b", id="trip-c1")
        await earlier.close()
        session = await runtime.open("a", tools=[helper()], id="trip")
        await session.ask("Go.")
        assert sorted(each.id for each in runtime._storage.sessions()) == ["trip", "trip-c1", "trip-c1-2"]


# --- what it may not -------------------------------------------------------------------------------------


def test_an_external_tool_is_refused_where_the_subagent_is_defined() -> None:
    click = Tool.external("click", "Click.", {"type": "object"})
    with pytest.raises(ToolDefinitionError, match="'helper' has the external tool 'click'"):
        helper(click)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"tools": [None]}, "tools= has a value of type NoneType"),
        (
            {"tools": Tool.from_schema("look", "", {"type": "object"}, print)},
            "tools= takes a list, as [look]",
        ),
        ({"tools": "files"}, "tools= takes a list, as ['files']"),
        ({"system": 5}, "system= takes a text, not int"),
        ({"target": 5}, "target= takes a text, not int"),
    ],
    ids=["none", "tool", "text", "system", "target"],
)
def test_what_a_subagent_cannot_have_is_refused_where_it_is_defined(
    options: Any, says: str
) -> None:  # Any: what a program may give
    with pytest.raises(ConfigError) as refused:
        subagent("helper", "Helps.", **options)
    assert says in str(refused.value)


async def test_a_context_made_by_hand_opens_no_subagent() -> None:
    with pytest.raises(SessionError, match="without a session cannot open a subagent"):
        ToolContext(None).subagent()


@pytest.mark.parametrize("approves", [True, False, None])
async def test_a_subagents_calls_are_approved_as_those_of_the_session_above_or_denied(
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
    async with hosting(a=openai(DELEGATES, DONE), b=below) as runtime:
        session = await runtime.open("a", tools=[helper(work)], approve=None if approves is None else approve)
        assert (await session.ask("Go.")).status == "complete"
    (answer,) = results(bodies(below)[-1]).values()
    assert (answer == "done") == bool(approves)
    assert len(asked) == (approves is not None)


@pytest.mark.parametrize("depth", [0, 2])
async def test_subagents_stand_no_deeper_than_the_limit(depth: int) -> None:
    """Each level gives its task to the next, until one may not; it tells the one above."""

    @tool
    async def deeper(context: ToolContext[None]) -> str:
        """Go deeper."""
        async with context.subagent(tools=[deeper]) as child:
            return (await child.ask("Go.")).text

    def says(request: dict[str, Any]) -> Turn:  # Any: a request body
        last = request["messages"][-1]
        return Turn(Say(str(last["content"]))) if last["role"] == "tool" else Turn(Call("deeper"))

    async with hosting(a=OpenAIServer(says), limits=RuntimeLimits(max_subagent_depth=depth)) as runtime:
        session = await runtime.open("a", tools=[deeper], id="x")
        text = (await session.ask("Go.")).text
        assert sorted(each.id for each in runtime._storage.sessions()) == [
            "x" + "-c1" * level for level in range(depth + 1)
        ]
    assert "SubagentDepthExceeded: A subagent of session" in text
    assert f"{depth + 1} levels deep; limits.max_subagent_depth is {depth}" in text


async def test_a_subagents_tool_may_not_ask_the_session_above() -> None:
    found: list[BaseException] = []

    async def work(name: str) -> str:
        """Work."""
        try:
            await runtime.session("trip").ask("Well?")
        except SessionError as error:
            found.append(error)
        return "done"

    async with hosting(a=openai(DELEGATES, DONE), b=openai(WORKS, Turn(Say("120.")))) as runtime:
        session = await runtime.open("a", tools=[helper(tool(work))], id="trip")
        await session.ask("Go.")
    assert [type(error) for error in found] == [ReentrantCall]


# --- its events ------------------------------------------------------------------------------------------


async def test_the_stream_above_shows_its_events_with_their_path() -> None:
    gate = Gate()
    gate.open("a")
    async with hosting(a=openai(DELEGATES, DONE), b=openai(WORKS, Turn(Say("120.")))) as runtime:
        session = await runtime.open("a", tools=[helper(gate.tool)], id="trip")
        seen = await gathered(session, "Go.")
        numbers = {*range(1, len(events(runtime, "trip-c1")) + 1)}
    shown = [event for event in seen if isinstance(event, SubagentEvent)]
    assert {(event.path, event.session) for event in shown} == {(("hist_tool_1",), "trip-c1")}
    inner: list[SessionEvent] = [event.event for event in shown]
    assert [event.text for event in inner if isinstance(event, TextEvent)] == ["120."]
    assert isinstance(inner[-1], CompleteEvent)
    assert {seq for event in inner if (seq := getattr(event, "seq", None)) is not None} <= numbers
    assert [type(event) for event in seen].count(CompleteEvent) == 1
    assert isinstance(seen[-1], CompleteEvent)
    assert seen[-1].result.text == "It costs 120."


async def test_a_subagent_of_a_subagent_has_the_whole_path() -> None:
    inner = subagent("inner", "Helps.", target="c")
    middle = Turn(Call("inner", {"task": "Deeper."}))
    async with hosting(
        a=openai(DELEGATES, DONE), b=openai(middle, Turn(Say("B."))), c=openai(Turn(Say("C.")))
    ) as runtime:
        session = await runtime.open("a", tools=[helper(inner)], id="trip")
        seen = await gathered(session, "Go.")
    said = {
        event.event.text: (event.path, event.session)
        for event in seen
        if isinstance(event, SubagentEvent) and isinstance(event.event, TextEvent)
    }
    assert said == {
        "C.": (("hist_tool_1", "hist_tool_1"), "trip-c1-c1"),
        "B.": (("hist_tool_1",), "trip-c1"),
    }


async def test_a_late_reader_of_the_session_above_reads_the_subagents_own_log() -> None:
    async with hosting(a=openai(DELEGATES, DONE), b=openai(Turn(Say("120.")))) as runtime:
        session = await runtime.open("a", tools=[helper()], id="trip")
        await gathered(session, "Go.")
        late = [event async for event in session.events(follow=False)]
    assert not any(isinstance(event, SubagentEvent) for event in late)
    assert runtime._storage.read("trip-c1")


async def test_of_a_subagent_nobody_watches_nothing_is_shown() -> None:
    async with hosting(a=openai(DELEGATES, DONE), b=openai(Turn(Say("120.")))) as runtime:
        seen: list[object] = []

        @tool
        async def look(task: str, context: ToolContext[None]) -> str:
            """Look."""
            async with context.subagent("b") as child:
                seen.append(runtime.session(child.id)._lifecycle.above.show)  # type: ignore[union-attr]  # it has one
                return (await child.ask(task)).text

        session = await runtime.open("a", tools=[subagent("unused", "Unused."), _renamed(look)])
        await session.ask("Go.")
        assert [event for event in log(runtime, session) if isinstance(event, Closed)] == []
    assert seen == [None]


def _renamed(made: Tool[..., Any]) -> Tool[..., Any]:  # Any: any function
    return tool(name="helper", description="Helps.")(made.function)
