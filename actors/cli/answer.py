"""Describe an answer for the user: why it is missing or incomplete, and the notable events of its turn.

`actors run` and `actors chat` print the lines that this module returns.
"""

from collections.abc import Iterable, Iterator

from actors.cli.approvals import call_text
from actors.config import Config
from actors.core.stream_events.ask_events import FailoverEvent
from actors.core.stream_events.events import SessionEvent
from actors.core.stream_events.results import AskResult
from actors.core.stream_events.round_events import LaneRewrittenEvent
from actors.core.stream_events.session_events import (
    ResyncEvent,
    SwitchAppliedEvent,
    SwitchFailedEvent,
    SwitchSupersededEvent,
)
from actors.core.turn.no_content import NO_CONTENT
from actors.core.values.content import ToolCall
from actors.provider import advice


def failure_reason(result: AskResult, config: Config) -> str:
    """Return one line that explains why an ask has no complete answer, with a suggested fix."""
    return (
        pending_calls_message(result.pending_calls)
        if result.pending_calls
        else advice.no_answer_message(result, config)
    )


def pending_calls_message(calls: Iterable[ToolCall]) -> str:
    """Return one line that lists the calls for which a turn waits, because they need a result or an approval."""
    return (
        f"the turn waits for external input: {', '.join(map(call_text, calls))}; "
        "enter it with `actors chat --continue`"
    )


def incomplete_answer_notes(result: AskResult) -> Iterator[str]:
    """Yield one line for each defect of an answer, such as an empty answer, a cut answer, or dropped content."""
    if result.incomplete in NO_CONTENT:
        if result.status == "complete":  # for other statuses, `failure_reason` says the same
            yield f"no complete answer from {result.binding}: {NO_CONTENT[result.incomplete]}"
    elif result.incomplete is not None:
        yield f"the answer was cut ({result.incomplete}): {result.binding} stopped with {result.finish_reason!r}"
    if result.dropped:
        kinds = ", ".join(f"{count} x {kind}" for kind, count in result.dropped)
        yield f"dropped from the answer: {kinds}"
    if result.status == "complete" and result.error:
        yield f"{result.error}: the last calls of the model were not run"


def event_note(event: SessionEvent) -> str:
    """Return a line about an event that a user should notice, such as a failover.

    Return an empty string for other events.
    """
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
