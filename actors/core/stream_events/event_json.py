"""An event of a stream as a JSON object, for `run --json`, server-sent events and the export of a session alike.

The fields are in docs/reference/events.md. A version (`v`) may gain fields, kinds and statuses: a reader passes over
those it does not know. An event of a subagent stands whole in one of type `subagent`, so that none is taken for one of
the session that is read.
"""

from typing import Any, Final, assert_never

from actors.core.data.jsonio import dump
from actors.core.schemas.repair import Repair
from actors.core.stream_events.feed import (
    CompleteEvent,
    ErrorEvent,
    Sent,
    SessionEvent,
    StatusEvent,
    SubagentEvent,
    TextEvent,
    ThinkingEvent,
    ToolCallEvent,
    TurnResult,
)
from actors.core.transcript.diagnostics import Report
from actors.core.values.content import Message, Text, Thinking, ToolCall
from actors.core.values.progress import Attempt, Cause
from actors.core.values.stream import Usage

VERSION: Final = 1
"""Of the form; raised when a field goes or changes its meaning."""

Fields = dict[str, Any]  # Any: JSON values


def event_json(event: SessionEvent) -> Fields:
    """Return an event as a JSON object; `type` says which, `v` in which version of the form.

    What is durable has the same object wherever it is read: in an ask's stream, and in a session's events later on.
    """
    return {"v": VERSION, "type": event.type, **_fields(event)}


def sse_frame(event: SessionEvent) -> bytes:
    """Return an event as a frame of server-sent events, `id` being its sequence number.

    Of several events of one number only the last has an id. So a client that was cut off among them and says what it
    saw last (`Last-Event-ID`) is shown all of them again.
    """
    seq = None if isinstance(event, TextEvent | ThinkingEvent | SubagentEvent) else event.seq
    is_whole = seq is not None and not (isinstance(event, ToolCallEvent | StatusEvent) and event.more)
    is_place = is_whole and not (isinstance(event, StatusEvent) and event.status == "resync")
    place = f"id: {seq}\n" if is_place else ""
    return f"{place}event: {event.type}\ndata: {dump(event_json(event)).decode()}\n\n".encode()


def _fields(event: SessionEvent) -> Fields:
    match event:
        case TextEvent() | ThinkingEvent():
            return {"text": event.text, "turn": event.turn, "round": event.round, "offset": event.offset}
        case ToolCallEvent():
            call = {"id": event.call_id, "name": event.name, "arguments": event.arguments}
            return {**call, **_place(event)}
        case StatusEvent():
            return {"status": event.status, **_place(event), **_details(event)}
        case CompleteEvent(result=result) | ErrorEvent(result=result):
            return {"seq": event.seq, **_result(result)}
        case SubagentEvent(path=path, session=session, event=inner):
            return {"path": list(path), "session": session, "event": event_json(inner)}
        case _:
            assert_never(event)


def _place(event: ToolCallEvent | StatusEvent) -> Fields:
    return {"seq": event.seq, "more": event.more, "turn": event.turn, "round": event.round}


def _details(event: StatusEvent) -> Fields:
    details: Fields = {"detail": event.detail}
    if event.message is not None:
        left_out = dict(event.left_out)
        details["message"] = {**message(event.message), "cut": event.cut, "left_out": left_out}
    if event.results:
        details["results"] = [{"id": call_id, "end": end} for call_id, end in event.results]
    if (pending := event.pending) is not None:
        details["pending"] = {**_call(pending.call), "kind": pending.kind, "digest": pending.digest}
    if (progress := event.progress) is not None:
        details["progress"] = {
            "id": progress.call_id,
            "name": progress.tool,
            "fraction": progress.fraction,
        }
    optional = {
        "tools_off": event.tools_off,
        "omitted": list(event.omitted),
        "repaired": [_repair(each) for each in event.repaired],
        "repeated": event.repeated,
    }
    details |= {name: value for name, value in optional.items() if value}
    if event.cause is not None:
        details["cause"] = _cause(event.cause)
    if event.sent is not None:
        details["request"] = _sent(event.sent)
    if event.usage is not None:
        details["usage"] = _usage(event.usage)
    if event.wait is not None:
        details["wait"] = event.wait
    return details


def message(said: Message) -> Fields:
    """Return a model's message: its words, its visible reasoning and its calls."""
    return {
        "text": said.text,
        "thinking": "".join(block.text for block in said.blocks if isinstance(block, Thinking)),
        "calls": [_call(block) for block in said.blocks if isinstance(block, ToolCall)],
        "blocks": [type(block).__name__.lower() for block in said.blocks if not isinstance(block, Text)],
    }


def _call(call: ToolCall) -> Fields:
    fields: Fields = {"id": call.id, "name": call.name, "arguments": call.arguments}
    return fields if call.raw is None else {**fields, "raw": call.raw}


def _sent(sent: Sent) -> Fields:
    lane = {"epoch": sent.epoch, "bytes_as_before": sent.kept, "bytes": sent.size}
    return {"binding": str(sent.binding), **lane, **report(sent.report)}


def report(made: Report) -> Fields:
    """Return what a render did, and why."""
    return {
        "dialect": made.dialect,
        "calls": list(made.calls),
        "emitted_calls": list(made.emitted_calls),
        "emitted_results": list(made.emitted_results),
        "synthetic": [{"id": call_id, "reason": reason} for call_id, reason in made.synthetic],
        "dedupe": [{"id": call_id, "reason": reason} for call_id, reason in made.dedupe],
        "losses": dict(made.losses),
        "fillers": dict(made.fillers),
    }


def _result(result: TurnResult) -> Fields:
    return {
        "status": result.status,
        "text": result.text,
        "why": result.why,
        "served_by": str(result.served_by),
        "attempts": [_attempt(attempt) for attempt in result.attempts],
        "turn": result.turn,
        "rounds": result.rounds,
        "finish": result.finish,
        "cut": result.cut,
        "left_out": dict(result.left_out),
        "awaiting": [_call(call) for call in result.awaiting],
        "usage": _usage(result.usage),
    }


def _usage(usage: Usage) -> Fields:
    return {name: getattr(usage, name) for name in usage.__struct_fields__}


def _repair(repair: Repair) -> Fields:
    return {"kind": repair.kind, "path": repair.path, "id": repair.call_id}


def _cause(cause: Cause) -> Fields:
    return {"kind": cause.kind, "status": cause.status}


def _attempt(attempt: Attempt) -> Fields:
    return {
        "binding": str(attempt.binding),
        "status": attempt.status,
        "why": attempt.why,
        "cause": attempt.cause and _cause(attempt.cause),
        "wait": attempt.wait,
    }
