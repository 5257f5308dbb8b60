"""Every public value and every public error survives pickling and copying with all its data."""

import copy
import inspect
import pickle
from collections.abc import Callable, Iterator
from typing import Any, get_args

import pytest
from msgspec import Struct

import actors
from actors import (
    Binding,
    Budget,
    Code,
    Compaction,
    CompactionResult,
    Media,
    Message,
    Price,
    Text,
    Thinking,
    ToolCall,
    ToolChoice,
    ToolFailure,
    ToolResult,
    Usage,
    errors,
    tool,
)
from actors.core.data.jsonio import Json
from actors.core.dialects.profiles import PROFILES
from actors.core.log.call_events import ToolCallRecord
from actors.core.stream_events.ask_events import SwitchOutcome
from actors.core.stream_events.events import SessionEvent
from actors.core.values.content import Block
from actors.core.values.identity import CallId
from actors.testing import Call, Say, Turn
from actors.transcripts import (
    History,
    Ledger,
    ProviderBlock,
    ProviderState,
    RedactedRequest,
    dialect,
    from_wire,
)
from tests.runtime_support import openai, runtime_with

Value = Any  # any public value

BINDING = Binding("a", "anthropic", "https://example.com", "acme", "claude", "up")
SEAL = ProviderState("signature", Json(b'"s"'), BINDING)
TRANSCRIPT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Weather?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{"}}],
    },
    {"role": "tool", "tool_call_id": "c", "content": "rain"},
    {"role": "tool", "tool_call_id": "stray", "content": "sun"},
]
NOT_VALUES = frozenset(
    """ActorsError AskFailed AskSettings Dialect LiveTools Runtime Session SessionEvent Tool ToolContext
    ToolSource""".split()  # noqa: SIM905  as a list it is a page
)
"""Base classes, protocols, unions and dicts, and classes that hold functions, connections or actors."""


@tool
def weather(city: str) -> str:
    """Return the weather."""
    return f"rain in {city}"


def constructed_values() -> list[Value]:
    history, ledger = from_wire({"messages": TRANSCRIPT}, "openai_chat")
    blocks: list[Block] = [
        Text("Hé"),
        Thinking("hm", SEAL),
        ToolCall("c", "f", raw="{", native=SEAL),
        ToolResult("c", {"a": [1, None]}),
        Code("print()", "python"),
        ProviderBlock("x", SEAL),
        Media("image/png", url="https://example.com/a.png"),
    ]
    return [
        history,
        ledger,
        history[1],
        history.report,
        Ledger(),
        *blocks,
        Message("assistant", blocks[:3], 3, BINDING),
        BINDING,
        SEAL,
        ToolCallRecord(CallId("c")),
        Budget(rounds=1, per="day"),
        ToolChoice("f"),
        Compaction(),
        CompactionResult(2, error="x"),
        Price(1.0, 2.0),
        Usage(10, 5),
        SwitchOutcome("a", "applied"),
        SwitchOutcome("a", "queued", 2),
        RedactedRequest("s", "a", "anthropic", "judge", "ANT-1", "rendering", "x", b"{}", True),
        *map(dialect, PROFILES),
    ]


async def values_of_asks() -> list[Value]:
    """Return the values that asks produce; one of the last asks fails."""
    values: list[Value] = []
    turns = [Turn(Say("I look."), Call("weather", {"city": "Rome"})), Turn(Say("It rains."))]
    server = openai(*turns, *turns)
    async with runtime_with(a=server, on_refusal=values.append) as runtime:
        session = await runtime.open("a", tools=[weather], metadata={"user": "7"})
        values += [session.metadata, *await runtime.journal.list()]
        values.append(await session.preview("a"))
        values.append(await session.ask("Weather in Rome?"))
        for words in ("And now?", "And tomorrow?"):
            async with session.stream(words) as events:
                values += [event async for event in events]
        values += [await session.history(), await session.ledger(), *(await session.ledger()).interactions()]
        values.append(runtime.stats())
    return values


def copies(value: Value) -> Iterator[Value]:
    ways: tuple[Callable[[Value], Value], ...] = (copy.copy, copy.deepcopy)
    for way in ways:
        yield way(value)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        yield pickle.loads(pickle.dumps(value, protocol))


@pytest.mark.anyio
async def test_every_public_value_survives_pickling_and_copying() -> None:
    values = [*constructed_values(), *await values_of_asks()]
    for value in values:
        for made in copies(value):
            assert type(made) is type(value)
            assert made == value
    kinds = {type(value).__name__ for value in values}
    public = {name for name in actors.__all__ if isinstance(getattr(actors, name), type)}
    assert public - NOT_VALUES - kinds == {"ToolFailure"} - kinds  # which contains the error of a tool
    shown = {kind.__name__ for kind in get_args(SessionEvent)}
    assert shown & kinds >= {"TextEvent", "ToolCallEvent", "MessageEvent", "CompleteEvent"}


def test_an_unpickled_history_can_grow() -> None:
    history, ledger = from_wire({"messages": TRANSCRIPT}, "openai_chat")
    made, known = pickle.loads(pickle.dumps((history, ledger)))
    longer = made.append(Message("user", [Text("And?")]))
    assert longer == history.append(Message("user", [Text("And?")]))
    assert [item.call_id for item in known.interactions()] == [item.call_id for item in ledger.interactions()]
    assert isinstance(made, History)


def test_an_older_version_of_a_history_is_pickled_unchanged() -> None:
    _, ledger = from_wire({"messages": TRANSCRIPT}, "openai_chat")
    before = ledger.interactions()
    fold = from_wire({"messages": TRANSCRIPT[:3]}, "openai_chat")[0].ledger
    assert pickle.loads(pickle.dumps(fold)) == fold
    assert pickle.loads(pickle.dumps(ledger)).interactions() == before


def public_errors() -> list[type[BaseException]]:
    return [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, errors.ActorsError)
    ]


def argument(parameter: inspect.Parameter) -> Value:
    """Return a non-default value for a keyword argument of an error."""
    kinds = {"int": 7, "float": 7.5, "str": "seven", "bool": True}
    words = str(parameter.annotation)
    return next((value for kind, value in kinds.items() if kind in words), ("seven",))


@pytest.mark.parametrize("kind", public_errors(), ids=lambda kind: kind.__name__)
def test_every_public_error_survives_pickling_and_copying(kind: type[BaseException]) -> None:
    own = "__init__" in vars(kind) or any("__init__" in vars(base) for base in kind.__mro__[1:-3])
    parameters = inspect.signature(kind.__init__).parameters.values() if own else ()
    named = {each.name: argument(each) for each in parameters if each.kind is each.KEYWORD_ONLY}
    error = kind("It failed.", **named)
    for made in copies(error):
        assert type(made) is kind
        assert made.args == error.args
        assert str(made) == "It failed."
        assert vars(made) == vars(error)


def test_a_tool_error_survives_pickling() -> None:
    failure = ToolFailure("s", "c", "f", ValueError("x"))
    assert isinstance(failure, Struct)
    for made in copies(failure):
        assert (made.session, made.call_id, made.tool, str(made.error)) == ("s", "c", "f", "x")
