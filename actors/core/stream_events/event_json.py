"""Convert stream events to JSON objects and to frames of server-sent events, and generate the schema of the objects.

`actors run --json`, exported sessions and servers use this format. The keys are the fields of the event structs. Only
values with an internal representation, such as messages and bindings, have a converter in this module. A later release
may add fields and event types without changing `VERSION`, so a reader should ignore names that it does not know.

The schema is generated from the annotations of the structs. It forbids additional properties, so the tests detect a
field that is missing from the schema. Programs that read events should accept unknown fields nevertheless.
"""

from collections.abc import Callable
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from msgspec import Struct, json

from actors.core.data.jsonio import JsonValue, dump
from actors.core.stream_events.ask_events import AskResult, AskStatus, DurableEvent, PendingCall
from actors.core.stream_events.events import OwnEvent, SessionEvent, SubagentEvent
from actors.core.stream_events.round_events import TextEvent, ThinkingEvent
from actors.core.transcript.diagnostics import Report
from actors.core.values.content import Message, Text, Thinking, ToolCall
from actors.core.values.identity import Binding
from actors.core.values.progress import Attempt
from actors.core.values.stream import Cut, Usage

VERSION: Final = 1
"""The version of the JSON format. It increases when a field is removed or changes its meaning."""
Fields = dict[str, Any]  # Any: `JsonValue` would need casts
_encode = json.Encoder().encode
Schema = dict[str, Any]  # Any: `JsonValue` would need casts
_STRING: Final[Schema] = {"type": "string"}
_COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
_COUNTS: Final[Schema] = {"type": "object", "additionalProperties": _COUNT}
_PLAIN: Final[dict[Any, Schema]] = {  # Any: no type covers all annotations
    str: _STRING,
    bool: {"type": "boolean"},
    int: _COUNT,
    float: {"type": "number", "minimum": 0},
    NoneType: {"type": "null"},
}


_Value: TypeAlias = "Struct | tuple[_Value, ...] | JsonValue"


def event_json(event: SessionEvent) -> Fields:
    """Return an event as a JSON object with its `type`, and the version of the format as `v`.

    A durable event has the same JSON when it is received live and when it is replayed from the log.
    """
    fields = _struct_fields(event)
    if isinstance(event, SubagentEvent):
        fields["event"] = event_json(event.event)
    return {"v": VERSION, "type": event.type, **fields}


def sse_frame(event: SessionEvent) -> bytes:
    """Return an event as a frame of server-sent events. The frame's `id` is the event's sequence number.

    If several events share a number, only the last frame has an `id`. A client that disconnects between these events
    and reconnects with `Last-Event-ID` therefore receives all of them again.
    """
    if (prefix := _DELTA_PREFIXES.get(type(event))) is not None:
        try:  # deltas are frequent, and msgspec encodes them directly, ten times as fast as through a dictionary
            return prefix + _encode(event)[1:] + b"\n\n"
        except UnicodeEncodeError:  # the text contains a lone surrogate, which `dump` replaces
            pass
    can_resume = isinstance(event, DurableEvent) and not getattr(event, "more", False)
    id_line = b"id: %d\n" % event.seq if isinstance(event, DurableEvent) and can_resume else b""
    return b"%bevent: %b\ndata: %b\n\n" % (id_line, event.type.encode(), dump(event_json(event)))


_DELTA_PREFIXES: Final[dict[type, bytes]] = {
    kind: b'event: %b\ndata: {"v":%d,' % (kind.type.encode(), VERSION) for kind in (TextEvent, ThinkingEvent)
}


def _struct_fields(value: Struct) -> Fields:
    return {name: _to_json(getattr(value, name)) for name in value.__struct_fields__}


def _to_json(value: _Value) -> Any:  # Any: `JsonValue` would need casts
    if (convert := _CONVERTERS.get(type(value))) is not None:
        return convert(value)
    if isinstance(value, Struct):
        return _struct_fields(value)
    return [_to_json(item) for item in value] if isinstance(value, tuple) else value


def _message_json(message: Message) -> Fields:
    """Return a message as JSON, with its text, visible reasoning and tool calls, and the kinds of its other blocks."""
    return {
        "text": message.text,
        "thinking": "".join(block.text for block in message.blocks if isinstance(block, Thinking)),
        "calls": [_call_json(call) for call in message.calls],
        "blocks": [type(block).__name__.lower() for block in message.blocks if not isinstance(block, Text)],
    }


def _call_json(call: ToolCall) -> Fields:
    fields: Fields = {"id": call.id, "name": call.name, "arguments": call.arguments}
    return fields if call.raw is None else {**fields, "raw": call.raw}


def _pending_json(pending: PendingCall) -> Fields:
    return {**_call_json(pending.call), "kind": pending.kind, "digest": pending.digest}


def _report_json(report: Report) -> Fields:
    """Return a render report as a JSON object."""
    return {
        "dialect": report.dialect,
        "calls": list(report.calls),
        "emitted_calls": list(report.emitted_calls),
        "emitted_results": list(report.emitted_results),
        "synthetic": [{"id": call_id, "reason": reason} for call_id, reason in report.synthetic],
        "dedupe": [{"id": call_id, "reason": reason} for call_id, reason in report.dedupe],
        "losses": dict(report.losses),
        "fillers": dict(report.fillers),
    }


def _result_json(result: AskResult) -> Fields:
    """Return a result as JSON, with only the fields that the log contains. So live and replayed events are equal."""
    return {
        "status": result.status,
        "text": result.text,
        "error": result.error,
        "binding": str(result.binding),
        "attempts": _to_json(result.attempts),
        "turn": result.turn,
        "rounds": result.rounds,
        "finish_reason": result.finish_reason,
        "incomplete": result.incomplete,
        "dropped": dict(result.dropped),
        "pending_calls": _to_json(result.pending_calls),
        "usage": _struct_fields(result.usage),
    }


_CONVERTERS: Final[dict[type, Callable[[Any], Any]]] = {  # Any: each converter takes one of the types
    Binding: str,
    Message: _message_json,
    ToolCall: _call_json,
    PendingCall: _pending_json,
    Report: _report_json,
    AskResult: _result_json,
}
"""The converter of each type whose JSON does not simply list the type's fields."""


def _list_schema(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _object_schema(fields: dict[str, Schema], optional: tuple[str, ...] = ()) -> Schema:
    required = [name for name in fields if name not in optional]
    return {"type": "object", "properties": fields, "required": required, "additionalProperties": False}


def schema_of(hint: Any) -> Schema:  # Any: no type covers all annotations
    """Return the JSON Schema of a type annotation, such as `tuple[str, ...]` or `Usage | None`."""
    hint = getattr(hint, "__supertype__", hint)  # replaces a NewType by its base type
    if (known := _PLAIN.get(hint) or _converted_schemas().get(hint)) is not None:
        return known
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return {"anyOf": [schema_of(argument) for argument in arguments]}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is tuple:
        return _list_schema(schema_of(arguments[0]))
    if origin is dict:
        return _COUNTS if arguments[1] is int else {"type": "object"}
    return _object_schema(_field_schemas(hint))


def _field_schemas(kind: type[Struct]) -> dict[str, Schema]:
    hints = get_type_hints(kind)
    return {name: schema_of(hints[name]) for name in kind.__struct_fields__}


@cache
def _converted_schemas() -> dict[Any, Schema]:  # Any: no type covers all annotations
    """Return the schemas of the types for which `event_json` has a converter, by type."""
    called = {"id": _STRING, "name": _STRING, "arguments": {"type": "object"}, "raw": _STRING}
    call = _object_schema(called, ("raw",))
    reasons = _list_schema(_object_schema({"id": _STRING, "reason": _STRING}))
    ids = _list_schema(_STRING)
    message = {"text": _STRING, "thinking": _STRING, "calls": _list_schema(call), "blocks": ids}
    pending = {**called, "kind": {"enum": ["external", "approval"]}, "digest": _STRING}
    report = {
        "dialect": _STRING,
        "calls": ids,
        "emitted_calls": ids,
        "emitted_results": ids,
        "synthetic": reasons,
        "dedupe": reasons,
        "losses": _COUNTS,
        "fillers": _COUNTS,
    }
    return {
        Binding: _STRING,
        ToolCall: call,
        Message: _object_schema(message),
        PendingCall: _object_schema(pending, ("raw",)),
        Report: _object_schema(report),
    }


def _result_schema() -> Schema:
    return _object_schema(
        {
            "status": schema_of(AskStatus),
            "text": _STRING,
            "error": _STRING,
            "binding": _STRING,
            "attempts": _list_schema(schema_of(Attempt)),
            "turn": _COUNT,
            "rounds": _COUNT,
            "finish_reason": schema_of(str | None),
            "incomplete": schema_of(Cut | None),
            "dropped": _COUNTS,
            "pending_calls": _list_schema(schema_of(ToolCall)),
            "usage": schema_of(Usage),
        }
    )


EVENT_TYPES: Final[tuple[type[Struct], ...]] = (*get_args(OwnEvent), SubagentEvent)
"""All classes of stream events, in the order in which the reference page lists them."""


def _event_schema(kind: type[Struct], **overrides: Schema) -> Schema:
    tag: dict[str, Schema] = {"v": {"const": VERSION}, "type": {"const": kind.__struct_config__.tag}}
    hints = get_type_hints(kind)
    own = {name: overrides.get(name) or schema_of(hints[name]) for name in kind.__struct_fields__}
    return {"title": kind.__name__, **_object_schema({**tag, **own})}


def _build_schema() -> Schema:
    result = {"$ref": "#/$defs/result"}
    own = [
        _event_schema(kind, result=result) if "result" in kind.__struct_fields__ else _event_schema(kind)
        for kind in EVENT_TYPES[:-1]
    ]
    subagent = _event_schema(SubagentEvent, event={"$ref": "#/$defs/own"})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "SessionEvent",
        "oneOf": [{"$ref": "#/$defs/own"}, subagent],
        "$defs": {"own": {"oneOf": own}, "result": _result_schema()},
    }


SCHEMA: Final[Schema] = _build_schema()
"""The JSON Schema that every stream event satisfies."""
