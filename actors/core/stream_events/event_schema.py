"""Generate the JSON Schema of stream events from the annotations of their structs.

The schema describes the output of `event_json`. It forbids additional properties, so the tests detect a field that is
missing from the schema. Programs that read events should accept unknown fields nevertheless, because later releases may
add fields.
"""

from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from msgspec import Struct

from actors.core.stream_events.event_json import VERSION
from actors.core.stream_events.events import OwnEvent, SubagentEvent
from actors.core.stream_events.results import AskStatus, PendingCall
from actors.core.transcript.diagnostics import Report
from actors.core.values.content import Message, ToolCall
from actors.core.values.identity import Binding
from actors.core.values.progress import Attempt
from actors.core.values.stream import Cut, Usage

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
