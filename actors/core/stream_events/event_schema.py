"""The JSON Schema of an event: what `event_json` may give, said to a program.

It is closed, so that a test finds a field that is not in it. A reader of events should not be: a version may gain
fields.
"""

from typing import Any, Final, get_args

from actors.core.schemas.repair import RepairKind
from actors.core.stream_events.event_json import VERSION
from actors.core.stream_events.feed import STATUSES, AskStatus

Schema = dict[str, Any]  # Any: JSON values

_STRING: Final[Schema] = {"type": "string"}
_COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
_WORD_OR_NONE: Final[Schema] = {"type": ["string", "null"]}
_COUNTS: Final[Schema] = {"type": "object", "additionalProperties": _COUNT}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _object(optional: tuple[str, ...] = (), **fields: Schema) -> Schema:
    required = [name for name in fields if name not in optional]
    return {"type": "object", "properties": fields, "required": required, "additionalProperties": False}


_CALLED: Final[dict[str, Schema]] = {
    "id": _STRING,
    "name": _STRING,
    "arguments": {"type": "object"},
    "raw": _STRING,
}
_CALL = _object(("raw",), **_CALLED)
_PENDING = _object(("raw",), **_CALLED, kind={"enum": ["external", "approval"]}, digest=_STRING)
_PROGRESS = _object(
    id=_STRING, name=_STRING, fraction={"type": ["number", "null"], "minimum": 0, "maximum": 1}
)
_MESSAGE = _object(
    text=_STRING,
    thinking=_STRING,
    calls=_list(_CALL),
    blocks=_list(_STRING),
    cut=_WORD_OR_NONE,
    left_out=_COUNTS,
)
_REASONED = _list(_object(id=_STRING, reason=_STRING))
_REQUEST = _object(
    binding=_STRING,
    epoch=_COUNT,
    bytes_as_before=_COUNT,
    bytes=_COUNT,
    dialect=_STRING,
    calls=_list(_STRING),
    emitted_calls=_list(_STRING),
    emitted_results=_list(_STRING),
    synthetic=_REASONED,
    dedupe=_REASONED,
    losses=_COUNTS,
    fillers=_COUNTS,
)
_CAUSE = _object(kind=_STRING, status={"type": ["integer", "null"]})
_REPAIR = _object(kind={"enum": list(get_args(RepairKind))}, path=_STRING, id=_WORD_OR_NONE)
_SECONDS: Final[Schema] = {"type": "number", "minimum": 0}
_ATTEMPT = _object(
    binding=_STRING, status=_STRING, why=_STRING, cause={"anyOf": [{"type": "null"}, _CAUSE]}, wait=_SECONDS
)
_USAGE = _object(
    input_tokens=_COUNT, output_tokens=_COUNT, cache_read_tokens=_COUNT, cache_write_tokens=_COUNT
)
_PLACE: Final[dict[str, Schema]] = {
    "seq": {"type": ["integer", "null"], "minimum": 0},
    "more": {"type": "boolean"},
    "turn": _COUNT,
    "round": _COUNT,
}


def _kind(*names: str, optional: tuple[str, ...] = (), **fields: Schema) -> Schema:
    return _object(optional, v={"const": VERSION}, type={"enum": list(names)}, **fields)


_OWN: Final[tuple[Schema, ...]] = (
    _kind("text", "thinking", text=_STRING, turn=_COUNT, round=_COUNT, offset=_COUNT),
    _kind("tool_call", optional=(), id=_STRING, name=_STRING, arguments={"type": "object"}, **_PLACE),
    _kind(
        "status",
        optional=(
            "message",
            "results",
            "pending",
            "progress",
            "tools_off",
            "omitted",
            "cause",
            "request",
            "repaired",
            "repeated",
            "usage",
            "wait",
        ),
        status={"enum": list(STATUSES)},
        detail=_STRING,
        **_PLACE,
        message=_MESSAGE,
        results=_list(_object(id=_STRING, end=_STRING)),
        pending=_PENDING,
        progress=_PROGRESS,
        tools_off={"const": True},
        omitted=_list(_STRING),
        cause=_CAUSE,
        request=_REQUEST,
        repaired=_list(_REPAIR),
        repeated=_COUNT,
        usage=_USAGE,
        wait=_SECONDS,
    ),
    _kind(
        "complete",
        "error",
        seq=_COUNT,
        status={"enum": list(get_args(AskStatus))},
        text=_STRING,
        why=_STRING,
        served_by=_STRING,
        attempts=_list(_ATTEMPT),
        turn=_COUNT,
        rounds=_COUNT,
        finish=_WORD_OR_NONE,
        cut=_WORD_OR_NONE,
        left_out=_COUNTS,
        awaiting=_list(_CALL),
        usage=_USAGE,
    ),
)
"""Of what happens in the session itself."""

KINDS: Final[tuple[Schema, ...]] = (
    *_OWN,
    _kind("subagent", path=_list(_STRING), session=_STRING, event={"oneOf": list(_OWN)}),
)
"""One for each kind of event."""

SCHEMA: Final[Schema] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "An event of a session",
    "oneOf": list(KINDS),
}
"""Of any event."""
