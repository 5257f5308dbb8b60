"""Pass 4, close: give every unanswered tool call of the tail a result.

In:  messages past the lane's cursor, each tool call with at most one result.
Out: the same messages, each tool call with exactly one.

Providers refuse a transcript that leaves a call unanswered, and an interrupted batch leaves several. The
ledger says why a result is missing; the blocks alone could only suggest it. A synthetic result fills a
gap. It never replaces, moves or repeats a real one, and it says what is known: that no result was
recorded, and why. Its text depends on the reason alone, so what was sealed is said again in the same words.
"""

from actors.core.content import Message, ToolCall, ToolResult
from actors.core.diagnostics import Notes
from actors.core.events import Reason
from actors.core.identity import CallId
from actors.core.jsonio import Json, quote
from actors.core.ledger import Ledger

_WHY: dict[Reason, str] = {
    "cancelled": "the call was cancelled before it finished",
    "interrupted": "the turn was interrupted before the call finished",
    "never_started": "the call was not started",
    "outcome_unknown": "the call was started, and it is not known whether it took effect",
    "compacted": "the record of it was left out when the conversation was shortened",
    "denied": "running the call was not allowed",
    "lost": "the history holds none",
}

SYNTHETIC: dict[Reason, Json] = {
    reason: quote(f"[No result was recorded for this tool call: {why}.]") for reason, why in _WHY.items()
}


def close(tail: list[Message], ledger: Ledger, notes: Notes) -> list[Message]:
    """Return `tail` with one synthetic result for each call that has none.

    Args:
        tail: Messages not yet rendered, oldest first. Groups of calls are never split by a cursor.
        ledger: Consulted only for calls without a result; a call it does not know is `lost`.
        notes: Receives the reason code of every synthetic result.

    Synthetic results follow the message that made the calls, in call order. The outcome depends on nothing
    else, so closing twice is closing once.
    """
    answered = {block.call_id for message in tail if message.speaker == "tool" for block in message.results}
    closed: list[Message] = []
    for message in tail:
        closed.append(message)
        if message.speaker == "model" and (
            missing := [call for call in message.calls if call.id not in answered]
        ):
            closed.append(Message("tool", [_synthesize(call, ledger, notes) for call in missing]))
    return closed


def why_missing(call_id: CallId, ledger: Ledger) -> Reason:
    """Return the reason code for a call without a result."""
    known = ledger.get(call_id)
    if known is None:
        return "lost"
    return known.reason or "lost"


def _synthesize(call: ToolCall, ledger: Ledger, notes: Notes) -> ToolResult:
    reason = why_missing(call.id, ledger)
    notes.synthetic.append((call.id, reason))
    return ToolResult(call.id, content_json=SYNTHETIC[reason])
