"""What became of every message: counters and dead letters.

The law: sent = handled + dead + queued + running. Every message that was offered to an actor is in exactly
one of these places, a refused one among the dead; every ask ends exactly once.
"""

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

Reason = Literal["stopped", "expired", "overflow", "unhandled", "poison", "draining"]

RING = 256  # dead letters remembered one by one


class ActorState(Enum):
    """Where an actor is in its life."""

    RUNNING = "running"
    RESTARTING = "restarting"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAULTED = "faulted"


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One message that was not handled.

    Args:
        actor: Name of the receiver.
        message: Name of the message's type. The message itself is not kept: it may be large, or private.
        reason: `stopped`: the receiver had ended, or ended first. `expired`: its ask's deadline passed first.
            `overflow`: the mailbox was full and the sender did not wait. `unhandled`: the receiver was given up after
            too many crashes. `poison`: its handler raised. `draining`: the system took no more work.
    """

    actor: str
    message: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """The latest dead letters, oldest first, and how many there have been for each reason."""

    recent: tuple[DeadLetter, ...]
    counts: Mapping[Reason, int]


@dataclass(frozen=True, slots=True)
class Counts:
    """One moment's totals over all actors, past and present.

    `running` is the number of messages in the hands of a handler: one at most, and only seen from inside of it.
    Asks end as one of answered, failed (an error came instead of an answer), timed_out, or abandoned (the asker was
    cancelled); the rest are pending.
    """

    sent: int
    handled: int
    dead: int
    queued: int
    running: int
    asked: int
    answered: int
    failed: int
    timed_out: int
    abandoned: int

    @property
    def pending(self) -> int:
        """Asks that have not ended."""
        return self.asked - self.answered - self.failed - self.timed_out - self.abandoned

    @property
    def balanced(self) -> bool:
        """Whether the law of this module holds."""
        return self.sent == self.handled + self.dead + self.queued + self.running and self.pending >= 0


@dataclass(slots=True)
class Tally:
    """The running totals of one system, beside those each living cell keeps itself."""

    recent: deque[DeadLetter] = field(default_factory=lambda: deque(maxlen=RING))
    dead: Counter[Reason] = field(default_factory=Counter)
    refused: int = 0
    retired_sent: int = 0
    retired_handled: int = 0
    asked: int = 0
    answered: int = 0
    failed: int = 0
    timed_out: int = 0
    abandoned: int = 0

    def bury(self, actor: str, message: object, reason: Reason) -> None:
        """Record `message` as a dead letter of `actor`."""
        self.dead[reason] += 1
        self.recent.append(DeadLetter(actor, type(message).__name__, reason))

    def refuse(self, actor: str, message: object, reason: Reason) -> None:
        """Record a message that was offered and not taken."""
        self.refused += 1
        self.bury(actor, message, reason)

    def retire(self, sent: int, handled: int) -> None:
        """Keep the totals of an actor that has ended."""
        self.retired_sent += sent
        self.retired_handled += handled
