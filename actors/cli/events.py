"""A session's events as JSON objects, for `run --json`. The fields are in docs/reference/cli.md."""

from typing import Any, assert_never

from actors.core.content import Message, Text, Thinking, ToolCall
from actors.core.diagnostics import Report
from actors.core.feed import (
    CompleteEvent,
    ErrorEvent,
    Sent,
    SessionEvent,
    StatusEvent,
    TextEvent,
    ThinkingEvent,
    ToolCallEvent,
    TurnResult,
)

Fields = dict[str, Any]  # Any: JSON values


def as_json(event: SessionEvent) -> Fields:
    """Return an event as a JSON object; `type` says which."""
    match event:
        case TextEvent() | ThinkingEvent():
            place = {"turn": event.turn, "round": event.round, "offset": event.offset}
            return {"type": event.type, "text": event.text, **place}
        case ToolCallEvent():
            call = {"id": event.call_id, "name": event.name, "arguments": event.arguments}
            return {"type": event.type, **call, **_place(event)}
        case StatusEvent():
            return {"type": event.type, "status": event.status, **_place(event), **_details(event)}
        case CompleteEvent(result=result) | ErrorEvent(result=result):
            return {"type": event.type, "seq": event.seq, **_result(result)}
        case _:
            assert_never(event)


def _place(event: ToolCallEvent | StatusEvent) -> Fields:
    return {"seq": event.seq, "turn": event.turn, "round": event.round}


def _details(event: StatusEvent) -> Fields:
    details: Fields = {"detail": event.detail}
    if event.message is not None:
        left_out = dict(event.left_out)
        details["message"] = {**message(event.message), "cut": event.cut, "left_out": left_out}
    if event.results:
        details["results"] = [{"id": call_id, "end": end} for call_id, end in event.results]
    if event.sent is not None:
        details["request"] = _sent(event.sent)
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
    usage = result.usage
    return {
        "status": result.status,
        "text": result.text,
        "why": result.why,
        "served_by": str(result.served_by),
        "attempts": [
            {"binding": str(attempt.binding), "status": attempt.status, "why": attempt.why}
            for attempt in result.attempts
        ],
        "rounds": result.rounds,
        "finish": result.finish,
        "cut": result.cut,
        "left_out": dict(result.left_out),
        "usage": {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens},
    }
