"""Define the base classes of stream events: for events that the log stores, and for events of a turn or a round."""

from msgspec import Struct


def _event_type(name: str) -> str:
    """Return the `type` of an event class: `_event_type("ToolCallEvent") == "tool_call"`."""
    words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    return words.lstrip("_").removesuffix("_event")


class StreamEvent(Struct, frozen=True, tag_field="type", tag=_event_type):
    """The base class of all stream events."""


class DurableEvent(StreamEvent, frozen=True):
    """The base class of the events that the session's log stores.

    Args:
        seq: Position in the session's log, from 1. If one log record yields several events, they share this position.
    """

    seq: int


class TurnEventBase(DurableEvent, frozen=True):
    """The base class of durable events that belong to a turn.

    Args:
        turn: Number of the turn, from 1; 0 before the session's first turn.
    """

    turn: int


class RoundEventBase(TurnEventBase, frozen=True):
    """The base class of durable events that belong to a round (one request and its answer).

    Args:
        round: Number of the round within the turn, from 1; 0 for a summary.
    """

    round: int
