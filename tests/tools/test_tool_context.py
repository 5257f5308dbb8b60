"""`ToolContext`: tools receive it by annotation, models do not see it, and it is their only access to the session."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Annotated, Any

import anyio
import pytest

from actors import ToolContext
from actors.core.data.jsonio import JsonValue
from actors.core.history.history import History
from actors.core.log.events import Opened
from actors.core.stream_events.events import SessionEvent
from actors.core.stream_events.round_events import ToolProgressEvent
from actors.core.values.content import ToolCall
from actors.core.values.identity import CallId
from actors.errors import ToolDefinitionError
from actors.scheduler.views import CallView, TurnView
from actors.strict.server import LoopbackServer
from actors.testing import Call, Say, Turn
from actors.tools import Tool, tool
from actors.tools.context import NoSession
from tests.runtime_support import anthropic, bodies, log, openai, results, runtime_with
from tests.scripted import scripted

MakeServer = Callable[..., LoopbackServer]
SERVERS = pytest.mark.parametrize("make_server", [openai, anthropic])
SCHEMA: dict[str, JsonValue] = {"type": "object", "properties": {"path": {"type": "string"}}}
ONE = Turn(Call("work", {"name": "a"}))
TWICE = (ONE, Turn(Say("Done.")), Turn(Call("work", {"name": "b"})), Turn(Say("Done.")))


@dataclass(frozen=True)
class Shop:
    name: str


# --- by annotation


def plain(name: str, context: ToolContext[Shop]) -> str:
    """Work."""
    return name + context.deps.name


async def optional(name: str, context: ToolContext[Shop] | None = None) -> str:
    """Work."""
    return name


def annotated(name: str, *, here: Annotated[ToolContext[Shop], "where it runs"]) -> str:
    """Work."""
    return name


def bare(name: str, context: ToolContext) -> str:  # type: ignore[type-arg]  # without its type argument
    """Work."""
    return name


@pytest.mark.parametrize(
    ("function", "parameter"),
    [(plain, "context"), (optional, "context"), (annotated, "here"), (bare, "context"), (str.upper, None)],
)
def test_a_context_parameter_is_found_by_its_annotation_and_is_not_in_the_schema(
    function: Any, parameter: str | None
) -> None:  # Any: any function
    if parameter is None:
        made = Tool.from_schema("work", "Work.", SCHEMA, function)
    else:
        made = tool(function)
        assert made.schema["required"] == ["name"]
        assert list(made.schema["properties"] or ()) == ["name"]  # type: ignore[arg-type]  # an object
    assert made.context_parameter == parameter


def test_an_argument_with_the_name_of_the_context_parameter_is_rejected() -> None:
    (error,) = tool(plain).bind({"name": "a", "context": {"deps": "mine"}})  # type: ignore[misc]  # errors
    assert (error.path, error.expected) == ("context", "no such field")


def test_a_tool_takes_at_most_one_context_parameter() -> None:
    def two(a: ToolContext[Shop], b: ToolContext[Shop]) -> str:
        return ""

    with pytest.raises(
        ToolDefinitionError, match="'two' has 2 parameters for a ToolContext, a, b; keep only one"
    ):
        tool(two)


def test_a_schema_cannot_have_a_field_with_the_name_of_the_context() -> None:
    schema: dict[str, JsonValue] = {"type": "object", "properties": {"context": {"type": "string"}}}
    with pytest.raises(ToolDefinitionError, match="has a schema with a field 'context'"):
        Tool.from_schema("work", "Work.", schema, plain)


def test_an_unresolvable_annotation_is_rejected_if_it_could_be_the_context_type() -> None:
    def work(path: str, context: Any) -> str:
        return path

    work.__annotations__["context"] = "ToolContext[Nowhere]"
    with pytest.raises(ToolDefinitionError, match="'work': the annotations cannot be read"):
        Tool.from_schema("work", "Work.", SCHEMA, work)
    work.__annotations__["context"] = "Nowhere"
    assert Tool.from_schema("work", "Work.", SCHEMA, work).context_parameter is None


def test_a_tool_can_be_tested_with_a_context_created_by_hand() -> None:
    context = ToolContext(Shop("x"))
    assert tool(plain)("a", context) == "ax"
    context.progress("half", 0.5)
    assert (context.cancelled, context.remaining, len(context.history)) == (False, None, 0)
    assert "Shop" not in repr(context)  # dependencies may contain secrets


# --- in a session


class ContextRecorder:
    """A tool, async or in a thread, that records its contexts."""

    def __init__(self, is_async: bool, timeout: float | None = None) -> None:
        self.contexts: list[ToolContext[Shop]] = []
        self.remaining: list[float | None] = []
        self.histories: list[History] = []
        work = self._async if is_async else self._sync
        self.tool: Tool[..., Any] = tool(name="work", timeout=timeout)(work)  # Any: either function

    async def _async(self, name: str, context: ToolContext[Shop]) -> str:
        """Work."""
        await context.progress(f"{name} begins", 0.25)
        return self._sync(name, context)

    def _sync(self, name: str, context: ToolContext[Shop]) -> str:
        """Work."""
        self.contexts.append(context)
        self.remaining.append(context.remaining)
        self.histories.append(context.history)
        return f"{name} at {context.deps.name}"


@pytest.mark.anyio
@SERVERS
@pytest.mark.parametrize("is_async", [True, False])
async def test_a_tool_sees_its_call_and_the_dependencies_and_the_earlier_history(
    make_server: MakeServer, is_async: bool
) -> None:
    seen, server = ContextRecorder(is_async, timeout=30), make_server(*TWICE)
    async with runtime_with(a=server) as runtime:
        session = await runtime.open("a", tools=[seen.tool], deps=Shop("Oslo"))
        await session.ask("First.")
        await session.ask("Second.")
        (opened,) = [event for event in log(runtime, session) if isinstance(event, Opened)]
    first, second = seen.contexts
    assert (first.session_id, first.call_id) == (session.id, "hist_tool_1")
    assert first.idempotency_key == f"{session.id}/{opened.key}/hist_tool_1"
    assert second.idempotency_key == f"{session.id}/{opened.key}/hist_tool_2"
    assert all(left is not None and 0 < left <= 30 for left in seen.remaining)
    assert [_words(history) for history in seen.histories] == [
        ["user: First."],
        ["user: First.", "assistant: ", "tool: ", "assistant: Done.", "user: Second."],
    ]
    assert list(results(bodies(server)[-1]).values()) == ["a at Oslo", "b at Oslo"]
    assert first.history.system is None
    assert not first.cancelled


def _words(history: History) -> list[str]:
    return [f"{message.role}: {message.text}" for message in history]


@pytest.mark.anyio
async def test_sessions_with_the_same_id_have_different_idempotency_keys() -> None:
    """The id of a deleted session can be reused, but its tools have already sent requests with its keys."""
    seen = ContextRecorder(is_async=True)
    async with runtime_with(a=openai(*TWICE, *TWICE)) as runtime:
        for _ in range(2):
            session = await runtime.open("a", tools=[seen.tool], deps=Shop("x"), id="one")
            await session.ask("Go.")
            await runtime.journal.delete("one")
    one, two = seen.contexts
    assert (one.session_id, one.call_id) == (two.session_id, two.call_id)
    assert one.idempotency_key != two.idempotency_key


@pytest.mark.anyio
async def test_an_open_schema_does_not_let_the_model_pass_a_context() -> None:
    seen: list[object] = []

    def work(context: ToolContext[Shop], **given: object) -> str:
        seen.append(context)
        return "done"

    made = Tool.from_schema("work", "Work.", {"type": "object"}, work)
    async with runtime_with(a=openai(Turn(Call("work", {"context": {"deps": 1}, "x": 2})))) as runtime:
        session = await runtime.open("a", tools=[made], deps=Shop("x"))
        await session.ask("Go.")
    (context,) = seen
    assert isinstance(context, ToolContext)
    assert context.deps == Shop("x")


# --- cancellation


@pytest.mark.anyio
@pytest.mark.parametrize("how", ["cancel", "timeout"])
async def test_a_blocking_tool_sees_its_cancellation_in_the_context(how: str) -> None:
    begun, heard = threading.Event(), list[bool]()

    def work(name: str, context: ToolContext[None]) -> str:
        """Work until the call is cancelled."""
        begun.set()
        while not context.cancelled:
            threading.Event().wait(0.001)
        heard.append(True)
        return "stopped half way"

    made = tool(work) if how == "cancel" else tool(timeout=0.01)(work)
    async with scripted("openai_chat", ONE, Turn(Say("I see.")), tools=[made]) as (_, _, session):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.ask, "Go.")
            while not begun.is_set():
                await anyio.lowlevel.checkpoint()
            if how == "cancel":
                assert await session.cancel()
        (known,) = (await session.ledger()).interactions()
    assert heard == [True]
    assert known.completion is not None
    assert known.completion.content == "stopped half way"


# --- progress


async def _progress(made: Tool[..., Any]) -> list[ToolProgressEvent]:  # Any: any function
    async with scripted("openai_chat", ONE, Turn(Say("Done.")), tools=[made]) as (_, runtime, session):
        events: list[SessionEvent] = []
        async with session.stream("Go.") as stream:
            events.extend([event async for event in stream])
        assert not [event for event in log(runtime, session) if "rogress" in type(event).__name__]
    return [event for event in events if isinstance(event, ToolProgressEvent)]


@pytest.mark.anyio
async def test_progress_is_an_ephemeral_event_in_the_stream_of_an_ask() -> None:
    @tool
    async def work(name: str, context: ToolContext[None]) -> str:
        """Work."""
        await context.progress("begun")
        await context.progress("half\ud800", 0.5)
        context.progress("x" * 1000, 7)
        return name

    one, two, three = await _progress(work)
    assert one == ToolProgressEvent(1, 1, CallId("hist_tool_1"), "work", "begun", None)
    assert two.message == "half\ufffd"
    assert [event.fraction for event in (two, three)] == [0.5, 1.0]
    assert three.message == "x" * 500


@pytest.mark.anyio
@pytest.mark.parametrize("fraction", [Decimal("0.5"), Fraction(1, 2), True])
async def test_a_progress_fraction_of_any_number_type_becomes_a_float(
    fraction: Any,
) -> None:  # Any: any number
    @tool
    async def work(name: str, context: ToolContext[None]) -> str:
        """Work."""
        await context.progress("half", fraction)
        return name

    (event,) = await _progress(work)
    assert type(event.fraction) is float


@pytest.mark.anyio
async def test_each_loop_iteration_shows_only_the_latest_progress_of_a_thread() -> None:
    seen: list[SessionEvent] = []
    view = TurnView(put=seen.append)
    call = CallView(_Ongoing(), view, NoSession().subagent)
    done = threading.Event()

    def work() -> None:
        for number in range(1000):
            call.progress(f"{number} of 1000", None)
        done.set()

    threading.Thread(target=work).start()
    done.wait(20)  # blocks the event loop meanwhile
    while not seen:
        await anyio.lowlevel.checkpoint()
    assert [getattr(event, "message", None) for event in seen] == ["999 of 1000"]


@pytest.mark.anyio
async def test_progress_of_a_call_that_has_ended_is_ignored() -> None:
    seen: list[SessionEvent] = []
    ongoing = _Ongoing()
    call = CallView(ongoing, TurnView(put=seen.append), NoSession().subagent)
    call.progress("on its way", None)
    thread = threading.Thread(target=partial(call.progress, "from a thread", None))
    thread.start()
    thread.join()
    ongoing.is_closed = True
    call.progress("too late", None)
    for _ in range(10):
        await anyio.lowlevel.checkpoint()
    assert [getattr(event, "message", None) for event in seen] == ["on its way"]


class _Ongoing:
    """A running call."""

    def __init__(self) -> None:
        self.call = ToolCall("hist_tool_1", "work", {})
        self.is_stop_requested = self.is_closed = False


@pytest.mark.anyio
async def test_a_blocking_tool_reports_progress_with_a_plain_call() -> None:
    @tool
    def work(name: str, context: ToolContext[None]) -> str:
        """Work."""
        context.progress("reading", 0.1)
        return name

    (event,) = await _progress(work)
    assert (event.message, event.fraction) == ("reading", 0.1)
