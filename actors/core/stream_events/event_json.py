"""Convert stream events to JSON objects and to frames of server-sent events.

`actors run --json`, exported sessions and servers use this format, and `actors.core.stream_events.event_schema`
describes it as a JSON Schema. The keys are the fields of the event structs. Only values with an internal
representation, such as messages and bindings, have a converter in this module. A later release may add fields and event
types without changing `VERSION`, so a reader should ignore names that it does not know.
"""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from msgspec import Struct, json

from actors.core.data.jsonio import JsonValue, dump
from actors.core.stream_events.event_base import DurableEvent
from actors.core.stream_events.events import SessionEvent, SubagentEvent
from actors.core.stream_events.results import AskResult, PendingCall
from actors.core.stream_events.round_events import TextEvent, ThinkingEvent
from actors.core.transcript.diagnostics import Report
from actors.core.values.content import Message, Text, Thinking, ToolCall
from actors.core.values.identity import Binding

VERSION: Final = 1
"""The version of the JSON format. It increases when a field is removed or changes its meaning."""

Fields = dict[str, Any]  # Any: `JsonValue` would need casts
_Value: TypeAlias = "Struct | tuple[_Value, ...] | JsonValue"

_encode = json.Encoder().encode


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


_CONVERTERS: Final[dict[type, Callable[[Any], Any]]] = {  # Any: each converter takes another type
    Binding: str,
    Message: _message_json,
    ToolCall: _call_json,
    PendingCall: _pending_json,
    Report: _report_json,
    AskResult: _result_json,
}
"""The converter of each type whose JSON does not simply list the type's fields."""
