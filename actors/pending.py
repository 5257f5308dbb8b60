"""The asks a session has accepted and not ended: the one in flight, and those that wait for it."""

from collections import deque
from contextvars import Context as Variables
from dataclasses import dataclass, field
from typing import Any

from actors.core.asking import Asked
from actors.core.feed import Sink, TurnResult
from actors.core.packed import Packed
from actors.kernel import Query
from actors.output import Output


@dataclass(frozen=True)
class Submit(Query[None]):
    """Begin an ask, or let it wait. Answered when it is accepted; `Busy` if too many wait.

    Args:
        message: The user's message.
        sink: Where its events go. It is closed without a terminal one if the session ends before the ask.
        variables: The caller's context variables, for the tools.
        asked: Settings of this ask alone.
        output: The form of its answer; its schema is in `asked`.
    """

    message: Packed
    sink: Sink
    variables: Variables
    asked: Asked | None = None
    output: Output[Any] | None = None  # Any: its values


@dataclass(slots=True)
class PendingAsks:
    """The asks a session has accepted and not ended. One for a session's life, whatever crashes meanwhile.

    Args:
        most_waiting: How many may wait behind the one in flight.
        current: The one in flight.
        outcome: How it came out, and the number of its last event, as soon as that is in the log.
    """

    most_waiting: int = 8
    waiting: deque[Submit] = field(default_factory=deque)
    current: Submit | None = None
    outcome: tuple[TurnResult, int] | None = None

    def ended(self, result: TurnResult, seq: int) -> None:
        """Note how the ask in flight came out."""
        self.outcome = (result, seq)

    def drop_waiting(self) -> None:
        """End the streams of the asks that wait."""
        for submit in self.waiting:
            submit.sink.close()
        self.waiting.clear()

    def clear(self) -> None:
        """End every stream: the session is gone."""
        self.drop_waiting()
        if self.current is not None:
            self.current.sink.close()
            self.current = None
