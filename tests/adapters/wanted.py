"""Build requests with every combination of settings for external checkers."""

import json
from collections.abc import Callable
from typing import Any, Literal

import pydantic

from actors.adapters.request import Settings, ToolSpec
from actors.core.data.jsonio import Json
from actors.core.dialects.dialect import Dialect
from actors.core.history.history import History
from actors.core.ledger import Ledger
from actors.core.render import ThinkingPolicy
from actors.core.settings.values import ChoiceWord, ToolChoice
from actors.core.values.content import Media, Message, Text
from actors.core.values.identity import Binding
from actors.session.output import output_of
from actors.testing.images import png
from actors.transcripts import render, request_for

READ = ToolSpec("read", "Read.", Json(b'{"type":"object","properties":{}}'))
PNG = Media.from_bytes(png(), "image/png")
PDF = Media.from_bytes(b"%PDF-1.7", "application/pdf")
PARTS: list[Text | Media] = [Text("What are these?"), PNG, PDF, Text("Be brief.")]
"""A message in parts, as a caller may ask with it."""


class Row(pydantic.BaseModel):
    kind: Literal["row"]
    cells: list[str | int | None]
    note: str | None = pydantic.Field(default=None, description="If any.")


class Table(pydantic.BaseModel):
    kind: Literal["table"]
    rows: list[Row]
    first: Row | None = None


FORMS: tuple[Any, ...] = (
    None,
    Row,
    Row | Table,
    dict[str, Row],
    list[int],
    None,
)  # types; None for any answer
TEMPERATURES = (None, 0.0, 0.7, 1.0)
TOPS = (None, None, 0.96)
STOPS: tuple[tuple[str, ...], ...] = ((), ("END",), ("a", "b", "c", "d"))
LIMITS = (None, 1, 5000)
EFFORTS = (None, None, "low", "high")
CHOICES: tuple[ChoiceWord | None, ...] = ("auto", "required", "none", None)  # None: the tool by its name
THINKING: tuple[Literal["default", "adaptive", "off"], ...] = ("default", "adaptive", "off", "default")
REST: tuple[dict[str, Any], ...] = (  # Any: each setting has its own type
    {},
    {"top_k": 40, "seed": 7, "user": "u-1"},
    {"frequency_penalty": 0.5, "presence_penalty": -0.5, "parallel_tool_calls": False},
    {},
    {"logprobs": 2, "verbosity": "low", "service_tier": "auto"},
    {"display": "summarized", "metadata": (("team", "blue"),), "parallel_tool_calls": True},
    {"display": "omitted", "logprobs": 0},
)
CACHES: tuple[Literal["default", "long", "off"], ...] = ("default", "long", "off")


def settings_for(seed: int, model: str = "m", *, tool: ToolSpec = READ, stream: bool = True) -> Settings:
    """Return the settings of a seed. Their cycle lengths are nearly coprime, so many combinations occur."""
    form = FORMS[seed // 3 % len(FORMS)]
    return Settings(
        model=model,
        system="Be brief.",
        tools=() if seed % 5 == 4 else (tool,),
        tool_choice=CHOICES[seed % 4] or ToolChoice(tool.name),
        max_tokens=LIMITS[seed // 2 % 3],
        temperature=TEMPERATURES[seed // 5 % 4],
        top_p=TOPS[seed // 7 % 3],
        stop=STOPS[seed // 11 % 3],
        **REST[seed % len(REST)],
        thinking=THINKING[seed // 2 % 4],
        effort=EFFORTS[seed // 3 % 4],
        cache=CACHES[seed // 7 % 3],
        output=None if form is None else output_of(form).schema,
        stream=stream,
    )


def names_a_tool(body: dict[str, Any]) -> bool:  # Any: JSON
    """Return True if a body forces a tool by name."""
    config = body.get("toolConfig", {})
    choice = [body.get("tool_choice"), config.get("toolChoice"), config.get("functionCallingConfig")]
    return f'"{READ.name}"' in json.dumps(choice)


def conversation(history: Callable[[int], tuple[list[Message], Ledger]], seed: int) -> tuple[History, Ledger]:
    """Return a conversation; every second conversation ends with a message of several parts."""
    messages, ledger = history(seed)
    if seed % 2:
        turn = max((message.turn for message in messages), default=0) + 1
        messages = [*messages, Message("user", PARTS, turn)]
    return History(messages, ledger), ledger


def body(
    history: Callable[[int], tuple[list[Message], Ledger]],
    seed: int,
    dialect: Dialect,
    binding: Binding,
    *,
    rendering: ThinkingPolicy = "native",
    **more: Any,  # as `wanted` takes them
) -> dict[str, Any]:  # Any: JSON
    """Return the request of a conversation and the settings of its number."""
    said, ledger = conversation(history, seed)
    rendered = render(said, ledger, dialect, binding=binding, thinking=rendering)
    made: dict[str, Any] = json.loads(request_for(rendered, settings_for(seed, **more), "lane").body)
    return made
