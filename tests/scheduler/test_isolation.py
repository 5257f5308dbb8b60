"""Hostile tools: whatever a tool does affects only its own call."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import partial
from typing import Annotated, Any

import anyio
import pytest
import trio
from pydantic import AfterValidator

from actors.errors import ReentrantCall
from actors.strict.server import LoopbackServer
from actors.testing import Call, Say, Turn
from actors.tools import Tool, tool
from tests.runtime_support import (
    Gate,
    anthropic,
    assert_paired,
    bodies,
    openai,
    restarted_actors,
    results,
    runtime_with,
    wait_for_result,
)

pytestmark = pytest.mark.anyio

MakeServer = Callable[..., LoopbackServer]
SERVERS = pytest.mark.parametrize("make_server", [openai, anthropic])


class Unprintable(Exception):
    """An error whose text cannot be read."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


class HostileStr(str):
    """A string with overridden methods."""

    def __format__(self, spec: str) -> str:
        raise RuntimeError("no format")

    def __len__(self) -> int:
        raise RuntimeError("no length")


class HostileTextError(Exception):
    def __str__(self) -> str:
        return HostileStr("odd")


def stray_cancellation() -> BaseException:
    """Return a cancellation of the running event loop that no scope requested."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return trio.Cancelled._create(source="unknown")
    return asyncio.CancelledError("stray")


RAISES: dict[str, Callable[[], BaseException]] = {
    "exception": lambda: ValueError("boom"),
    "group": lambda: BaseExceptionGroup("several", [KeyboardInterrupt(), ValueError("x")]),
    "plain_group": lambda: ExceptionGroup("several", [ValueError("x"), OSError(5)]),
    "keyboard": KeyboardInterrupt,
    "exit": lambda: SystemExit(3),
    "generator_exit": GeneratorExit,
    "stop_iteration": StopIteration,
    "stop_async": StopAsyncIteration,
    "cancelled": stray_cancellation,
    "unprintable": Unprintable,
    "odd": HostileTextError,
    "recursion": lambda: RecursionError("deep"),
    "memory": MemoryError,
    "timeout": TimeoutError,
    "closed": anyio.ClosedResourceError,
    "surrogate": lambda: ValueError("\ud800 alone"),
}


class Unreadable:
    """An object that raises on every access."""

    def __repr__(self) -> str:
        raise RuntimeError("no words")

    def __getattr__(self, name: str) -> object:
        raise RuntimeError("no attributes")


async def _count() -> AsyncIterator[int]:
    for number in range(3):
        yield number


async def _never() -> str:
    return "never awaited"


FORGOTTEN: list[Coroutine[Any, Any, str]] = []
"""Coroutines that are never awaited. A fixture closes them to prevent Python's warning."""


def _unawaited_coroutine() -> object:
    FORGOTTEN.append(_never())
    return FORGOTTEN[-1]


@pytest.fixture(autouse=True)
def close_unawaited() -> Iterator[None]:
    yield
    for coroutine in FORGOTTEN:
        coroutine.close()
    FORGOTTEN.clear()


def circular() -> object:
    value: list[object] = []
    value.append(value)
    return value


RETURNS: dict[str, Callable[[], object]] = {
    "circular": circular,
    "huge": lambda: "x" * 3_000_000,
    "fifty_megabytes": lambda: "x" * 50_000_000,
    "deep": lambda: _deep(10_000),
    "nan": lambda: [math.nan, math.inf, -math.inf],
    "bytes": lambda: b"\xff\x00",
    "surrogates": lambda: "\ud83d \udc00",
    "keys": lambda: {1: "a", None: "b", (2, 3): "c"},
    "object": object,
    "none": lambda: None,
    "empty": lambda: "",
    "unspeakable": Unreadable,
    "listed_unspeakable": lambda: [Unreadable(), {"a": Unreadable()}],
    "generator": lambda: (number for number in range(3)),
    "async_generator": lambda: _count(),
    "coroutine": lambda: _unawaited_coroutine(),
    "control": lambda: "\x00\x1b[31m\r\n",
    "quotes": lambda: '"}]}],"x":{"',
}


def _deep(levels: int) -> object:
    value: object = "bottom"
    for _ in range(levels):
        value = [value]
    return value


@tool
async def raises(kind: str) -> str:
    """Raise."""
    raise RAISES[kind]()


@tool
def raises_in_a_thread(kind: str) -> str:
    """Raise, in a thread."""
    raise RAISES["exception" if kind == "cancelled" else kind]()


@tool
async def returns(kind: str) -> Any:  # Any: any value
    """Return an unusual value."""
    return RETURNS[kind]()


@tool
async def spoils(items: list[int]) -> str:
    """Change the arguments."""
    items.clear()
    items.extend([6, 6, 6])
    return "spoiled"


@tool
async def cancels_itself(kind: str) -> str:
    """Cancel the task of this call."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    if task is not None:
        task.cancel()
        await asyncio.sleep(0)
    return kind


@tool
async def leaves_a_scope_open(kind: str) -> str:
    """Enter a cancel scope and never leave it."""
    anyio.CancelScope().__enter__()
    return kind


@tool
async def waits_for_an_exit(kind: str) -> str:
    """Wait for a future that ends with GeneratorExit."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        raise GeneratorExit(kind) from None
    future: asyncio.Future[str] = loop.create_future()
    loop.call_soon(future.set_exception, GeneratorExit(kind))
    return await future


def _refuse(value: str) -> str:
    raise KeyError(value)


@tool
async def unreadable(kind: Annotated[str, AfterValidator(_refuse)]) -> str:
    """Accept a value whose type raises."""
    return kind


HOSTILE = [
    *[Call("raises", {"kind": kind}) for kind in RAISES],
    *[Call("raises_in_a_thread", {"kind": kind}) for kind in RAISES],
    *[Call("returns", {"kind": kind}) for kind in RETURNS],
    Call("spoils", {"items": [1, 2]}),
    Call("cancels_itself", {"kind": "x"}),
    Call("unreadable", {"kind": "x"}),
    Call("leaves_a_scope_open", {"kind": "x"}),
    Call("waits_for_an_exit", {"kind": "x"}),
]
TOOLS: list[Tool[..., Any]] = [  # Any: any function
    *(
        raises,
        raises_in_a_thread,
        returns,
        spoils,
        cancels_itself,
        unreadable,
        leaves_a_scope_open,
        waits_for_an_exit,
    )
]


@SERVERS
@pytest.mark.requirement("PROMISE-8", "REQ-915-038", "REQ-915-005")
async def test_a_misbehaving_tool_affects_only_the_result_of_its_call(make_server: MakeServer) -> None:
    gate = Gate()
    gate.open("a")
    server = make_server(
        Turn(Call("work", {"name": "a"}), *HOSTILE, Call("work", {"name": "a"})), Turn(Say("Well."))
    )
    calm = openai(*[Turn(Call("work", {"name": "a"})), Turn(Say("calm"))] * 5)
    async with runtime_with(a=server, calm=calm) as runtime:
        other = await runtime.open("calm", tools=[gate.tool])
        others: list[str] = []
        on_asyncio = isinstance(stray_cancellation(), asyncio.CancelledError)

        async def go_on() -> None:
            for _ in range(5):
                others.append((await other.ask("Go on.")).text)

        session = await runtime.open("a", tools=[gate.tool, *TOOLS])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(go_on)
            answer = await session.ask("Do it.")
        assert (answer.status, answer.text) == ("complete", "Well.")
        assert others == ["calm"] * 5
        assert gate.runs.count("a") == 7
        ledger = await session.ledger()
        ends = {item.call_id: item.status for item in ledger.interactions()}
        assert set(ends.values()) == {"complete", "error"}
        assert sum(status == "error" for status in ends.values()) == 2 * len(RAISES) + 2 + on_asyncio
        (spoiled,) = [item for item in ledger.interactions() if item.tool == "spoils"]
        assert spoiled.arguments == b'{"items":[1,2]}'
        assert (await session.ask("And now?")).status == "complete"
        assert restarted_actors(runtime) == []
    assert server.refusals == calm.refusals == []
    body = bodies(server)[-1]
    assert_paired(body)
    told = list(results(body).values())
    assert len(told) == len(HOSTILE) + 2
    assert told[0] == told[-1] == "a is done"


@pytest.mark.requirement("PROMISE-8")
async def test_a_hanging_tool_blocks_only_its_own_session() -> None:
    begun, released = anyio.Event(), anyio.Event()

    @tool
    async def hangs(name: str) -> str:
        """Hang."""
        with anyio.CancelScope(shield=True):
            begun.set()
            await released.wait()
        return name

    gate = Gate()
    gate.open("a")
    deaf = openai(Turn(Call("hangs", {"name": "a"})))
    calm = openai(*[Turn(Call("work", {"name": "a"})), Turn(Say("calm"))] * 3)
    async with runtime_with(deaf=deaf, calm=calm) as runtime:
        stuck = await runtime.open("deaf", tools=[hangs])
        other = await runtime.open("calm", tools=[gate.tool])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stuck.ask, "Do it.")
            await begun.wait()
            for _ in range(3):
                assert (await other.ask("Go on.")).text == "calm"
            assert await stuck.cancel()
        assert (await stuck.ask("And now?")).status == "complete"
        released.set()
        await wait_for_result(stuck, "hist_tool_1")


@pytest.mark.requirement("PROMISE-8")
async def test_a_tool_may_open_and_ask_a_child_session() -> None:
    outer = openai(Turn(Call("delegate", {"words": "hello"})), Turn(Say("done")))
    middle = openai(Turn(Call("delegate", {"words": "deeper"})), Turn(Say("from the middle")))
    async with runtime_with(outer=outer, middle=middle, inner=openai(Turn(Say("from inside")))) as runtime:

        @tool
        async def delegate(words: str) -> str:
            """Ask another session."""
            is_first = words == "hello"
            below = await runtime.open("middle" if is_first else "inner", tools=[delegate])
            answer = await below.ask(words)
            await below.close()
            return answer.text

        session = await runtime.open("outer", tools=[delegate])
        assert (await session.ask("Do it.")).status == "complete"
    assert list(results(bodies(outer)[-1]).values()) == ["from the middle"]
    assert list(results(bodies(middle)[-1]).values()) == ["from inside"]


@pytest.mark.requirement("PROMISE-8", "PROMISE-12")
async def test_a_tool_that_uses_its_own_session_gets_an_error_without_details() -> None:
    server = openai(Turn(Call("reflect", {"words": "hello"})), Turn(Say("done")))
    refused: list[str] = []
    async with runtime_with(a=server) as runtime:

        @tool
        async def reflect(words: str) -> str:
            """Use the tool's own session in every way."""
            own = runtime.session("own")
            uses = (own.history, own.ledger, own.cancel, own.close, partial(runtime.journal.delete, "own"))
            for use in (*uses, partial(own.switch, "a"), partial(own.preview, "a")):
                with pytest.raises(ReentrantCall) as error:
                    await use()
                refused.append(str(error.value))
            return (await own.ask(words)).text

        session = await runtime.open("a", tools=[reflect], id="own")
        assert (await session.ask("Do it.")).status == "complete"
    assert len(refused) == 7
    assert all("session 'own'" in words for words in refused)
    (told,) = results(bodies(server)[-1]).values()
    assert told == "ERROR: The tool failed because of an error in the program that runs it."


@pytest.mark.requirement("PROMISE-12")
async def test_a_tool_cannot_close_a_parent_session_or_ask_a_sibling() -> None:
    outer = openai(Turn(Call("delegate", {"words": "hello"})), Turn(Say("done")))
    inner = openai(Turn(Call("meddle", {"words": "x"})), Turn(Say("from inside")))
    refused: list[str] = []
    async with runtime_with(outer=outer, inner=inner, beside=openai()) as runtime:
        beside = await runtime.open("beside")

        @tool
        async def meddle(words: str) -> str:
            """Use other sessions."""
            for use in (runtime.session("top").close, beside.history):
                with pytest.raises(ReentrantCall) as error:
                    await use()
                refused.append(str(error.value))
            return words

        @tool
        async def delegate(words: str) -> str:
            """Ask another session."""
            return (await (await runtime.open("inner", tools=[meddle])).ask(words)).text

        session = await runtime.open("outer", tools=[delegate], id="top")
        assert (await session.ask("Do it.")).status == "complete"
    assert len(refused) == 2
    assert list(results(bodies(outer)[-1]).values()) == ["from inside"]


@pytest.mark.requirement("PROMISE-8")
async def test_a_tool_may_ask_a_session_of_another_runtime() -> None:
    inner = openai(Turn(Say("from inside")))
    outer = openai(Turn(Call("delegate", {"words": "hello"})), Turn(Say("done")))
    async with runtime_with(inner=inner) as below, runtime_with(outer=outer) as above:
        helper = await below.open("inner")

        @tool
        async def delegate(words: str) -> str:
            """Ask another session."""
            return (await helper.ask(words)).text

        session = await above.open("outer", tools=[delegate])
        assert (await session.ask("Do it.")).status == "complete"
    assert list(results(bodies(outer)[-1]).values()) == ["from inside"]
