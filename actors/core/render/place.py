"""Pass 5, place: put the results of a group directly after its calls, in call order.

In:  messages in which every tool call has exactly one result, anywhere.
Out: each model message with calls followed at once by one message with its results, in call order; what
     had slipped between (a steering text, an early answer) comes after the group, in its own order.

Every provider accepts this shape, and most accept no other (rulebook OAC-01, ANT-01, ANT-03).
"""

from actors.core.content import Message, ToolResult
from actors.core.identity import CallId


def place(tail: list[Message]) -> list[Message]:
    """Return `tail` with each group of calls and its results together. Placing twice is placing once."""
    answers: dict[CallId, ToolResult] = {
        result.call_id: result for message in tail if message.speaker == "tool" for result in message.results
    }
    if not answers:
        return tail
    placed: list[Message] = []
    for message in tail:
        if message.speaker == "tool":
            continue
        placed.append(message)
        if message.speaker == "model" and (calls := message.calls):
            results = tuple(answers[call.id] for call in calls)
            placed.append(Message("tool", results, message.turn, message.origin))
    return placed
