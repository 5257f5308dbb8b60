"""Messages about an answer in addition to its text: why it is missing or incomplete, and what happened on the way."""

from collections.abc import Iterable, Iterator

from actors.cli.approvals import call_text
from actors.config import Config
from actors.core.stream_events.events import (
    FailoverEvent,
    LaneRewrittenEvent,
    ResyncEvent,
    SessionEvent,
    SwitchAppliedEvent,
    SwitchFailedEvent,
    SwitchSupersededEvent,
)
from actors.core.stream_events.results import AskResult
from actors.core.turn.no_content import NO_CONTENT
from actors.core.values.content import ToolCall
from actors.provider import advice


def failure_reason(result: AskResult, config: Config) -> str:
    """Return one line about why an ask failed, and what to try."""
    return (
        pending_calls(result.pending_calls)
        if result.pending_calls
        else advice.no_answer_message(result, config)
    )


def pending_calls(calls: Iterable[ToolCall]) -> str:
    """Return one line about the calls that a turn waits for."""
    return (
        f"the turn waits for external input: {', '.join(map(call_text, calls))}; "
        "give it with `actors chat --continue`"
    )


def incomplete_parts(result: AskResult) -> Iterator[str]:
    """Yield a line for each part of the answer that is missing or was dropped."""
    if result.incomplete in NO_CONTENT:
        if result.status == "complete":  # otherwise the reason of the failure contains it
            yield f"no complete answer from {result.binding}: {NO_CONTENT[result.incomplete]}"
    elif result.incomplete is not None:
        yield f"the answer was cut ({result.incomplete}): {result.binding} stopped with {result.finish_reason!r}"
    if result.dropped:
        kinds = ", ".join(f"{count} x {kind}" for kind, count in result.dropped)
        yield f"dropped from the answer: {kinds}"
    if result.status == "complete" and result.error:
        yield f"{result.error}: the last calls of the model were not run"


def note(event: SessionEvent) -> str:
    """Return a line about an event that a person should know of, and an empty string for the others."""
    match event:
        case FailoverEvent(backend=backend):
            return f"failing over to {backend}"
        case LaneRewrittenEvent(reason=reason, detail=detail) if reason != "media":
            return f"the request is rendered again: {detail}"
        case SwitchAppliedEvent(target=target):
            return f"switched to {target}"
        case SwitchSupersededEvent(target=target):
            return f"the switch to {target} was replaced by a later one"
        case SwitchFailedEvent(error=error):
            return f"the switch failed: {error}"
        case ResyncEvent(missed=missed):
            return f"{missed} events were missed"
        case _:
            return ""
