"""Provide one event of each kind, with every field set to a value other than its default."""

from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from msgspec.structs import fields

from actors.core.data.jsonio import Json, JsonObject, Quoted, quote
from actors.core.data.record import StoredRecord, from_fields
from actors.core.log.events import LogEvent
from actors.core.settings.asking import StoredAskSettings
from actors.core.settings.values import ToolChoice, ToolChoiceSetting
from actors.core.values.content import (
    Code,
    Media,
    Message,
    ProviderBlock,
    ProviderState,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from actors.core.values.identity import Binding
from actors.core.values.packed import Packed, pack

MADE = Binding("b", "anthropic")
SAID = pack(
    Message(
        "assistant",
        (
            Text("Said."),
            Thinking("Thought.", ProviderState("signature", quote("s"), MADE)),
            ToolCall("c", "read", {"a": 1}, native=ProviderState("call_id", quote("n"), MADE)),
            ToolResult("c", [1], is_complete=True, media=[Media("image/png", "Ag==")]),
            Media("image/png", "A" * 4096),
            Code("1 + 1", "python"),
            ProviderBlock("search", ProviderState("item", quote("n"), MADE)),
        ),
        origin=MADE,
    )
)
_GIVEN: dict[object, object] = {
    bool: True,
    int: 7,
    float: 1.5,
    str: "word",
    bytes: b"bytes",
    Json: Json(b"[1]"),
    JsonObject: JsonObject(Json(b'{"a":1}')),
    Quoted: quote("q"),
    Packed: SAID,
    Packed | None: SAID,
    ToolChoiceSetting | None: ToolChoice("read"),
}


def every_event() -> list[LogEvent]:
    """Return them in the catalogue's order."""
    return [_sample(kind) for kind in get_args(LogEvent)]


def _sample(kind: Any) -> Any:  # Any: a type as annotated, and a value of it
    if kind in _GIVEN:
        return _GIVEN[kind]
    if kind is StoredAskSettings:
        return StoredAskSettings(**{item.name: _sample(item.type) for item in fields(kind)})
    if isinstance(kind, type) and issubclass(kind, StoredRecord):
        return from_fields(kind, *(_sample(item.type) for item in fields(kind)))
    origin, inner = get_origin(kind), get_args(kind)
    if origin is tuple:
        return (_sample(inner[0]),) if inner[-1] is ... else tuple(map(_sample, inner))
    if origin is Literal:
        return inner[-1]
    if origin in (Union, UnionType):
        return _sample(next(each for each in inner if each is not type(None)))
    return _sample(kind.__supertype__)  # the type is a NewType
