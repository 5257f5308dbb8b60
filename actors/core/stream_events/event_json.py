"""Convert stream events to JSON objects and to frames of server-sent events.

`actors run --json`, exported sessions and servers share this form. It is generated from the fields of the event
structs; only values with an internal representation, such as messages and bindings, are converted here.
`actors.core.stream_events.event_schema` describes the same form as a JSON Schema. Within one version, the form may
gain fields and event types, so a reader ignores the ones that it does not know.
"""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from msgspec import Struct, json

from actors.core.data.jsonio import JsonValue, dump
from actors.core.stream_events.events import (
    DurableEvent,
    SessionEvent,
    SubagentEvent,
    TextEvent,
    ThinkingEvent,
)
from actors.core.stream_events.results import AskResult, PendingCall
from actors.core.transcript.diagnostics import Report
from actors.core.values.content import Message, Text, Thinking, ToolCall
from actors.core.values.identity import Binding

VERSION: Final = 1
"""The version of the form. It increases when a field is removed or changes its meaning."""

Fields = dict[str, Any]  # Any: JSON values
_Value: TypeAlias = "Struct | tuple[_Value, ...] | JsonValue"

_encode = json.Encoder().encode


def event_json(event: SessionEvent) -> Fields:
    """Return an event as a JSON object with its `type`, and the version of the form as `v`.

    A durable event has the same form live and when it is replayed from the log.
    """
    fields = _fields(event)
    if isinstance(event, SubagentEvent):
        fields["event"] = event_json(event.event)
    return {"v": VERSION, "type": event.type, **fields}


def sse_frame(event: SessionEvent) -> bytes:
    """Return an event as a frame of server-sent events. Its `id` is the sequence number.

    Of several events with one number, only the last has an id. A client that lost its connection between them and
    reconnects with `Last-Event-ID` receives all of them again.
    """
    if (prefix := _DELTA_PREFIXES.get(type(event))) is not None:
        try:  # deltas are frequent; msgspec encodes them without a dictionary, ten times as fast
            return prefix + _encode(event)[1:] + b"\n\n"
        except UnicodeEncodeError:  # a lone surrogate, which `dump` replaces
            pass
    can_resume = isinstance(event, DurableEvent) and not getattr(event, "more", False)
    place = b"id: %d\n" % event.seq if isinstance(event, DurableEvent) and can_resume else b""
    return b"%bevent: %b\ndata: %b\n\n" % (place, event.type.encode(), dump(event_json(event)))


_DELTA_PREFIXES: Final[dict[type, bytes]] = {
    kind: b'event: %b\ndata: {"v":%d,' % (kind.type.encode(), VERSION) for kind in (TextEvent, ThinkingEvent)
}


def _fields(value: Struct) -> Fields:
    return {name: _json(getattr(value, name)) for name in value.__struct_fields__}


def _json(value: _Value) -> Any:  # Any: JSON
    if (form := _FORMS.get(type(value))) is not None:
        return form(value)
    if isinstance(value, Struct):
        return _fields(value)
    return [_json(item) for item in value] if isinstance(value, tuple) else value


def message(message: Message) -> Fields:
    """Return a message: its text, its visible reasoning, its calls, and the kinds of its other blocks."""
    return {
        "text": message.text,
        "thinking": "".join(block.text for block in message.blocks if isinstance(block, Thinking)),
        "calls": [_call(call) for call in message.calls],
        "blocks": [type(block).__name__.lower() for block in message.blocks if not isinstance(block, Text)],
    }


def _call(call: ToolCall) -> Fields:
    fields: Fields = {"id": call.id, "name": call.name, "arguments": call.arguments}
    return fields if call.raw is None else {**fields, "raw": call.raw}


def _pending(pending: PendingCall) -> Fields:
    return {**_call(pending.call), "kind": pending.kind, "digest": pending.digest}


def report(report: Report) -> Fields:
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


def _result(result: AskResult) -> Fields:
    """Return the part of a result that the log keeps."""
    return {
        "status": result.status,
        "text": result.text,
        "error": result.error,
        "binding": str(result.binding),
        "attempts": _json(result.attempts),
        "turn": result.turn,
        "rounds": result.rounds,
        "finish_reason": result.finish_reason,
        "incomplete": result.incomplete,
        "dropped": dict(result.dropped),
        "pending_calls": _json(result.pending_calls),
        "usage": _fields(result.usage),
    }


_FORMS: Final[dict[type, Callable[[Any], Any]]] = {  # Any: a value of the type, and JSON
    Binding: str,
    Message: message,
    ToolCall: _call,
    PendingCall: _pending,
    Report: report,
    AskResult: _result,
}
"""The JSON form of each type that is not shown by its fields."""
