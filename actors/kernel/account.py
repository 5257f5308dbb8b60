"""What became of every message: counters and dead letters.

The law: sent = handled + dead + queued + running. Every message that was offered to an actor is in exactly
one of these places, a refused one among the dead; every ask ends exactly once.
"""

from collections import Counter, deque
from typing import Literal, TypeAlias

from msgspec import Struct, field

State: TypeAlias = Literal["running", "restarting", "stopping", "stopped", "faulted"]
"""Where an actor is in its life. `faulted`: it was given up after too many crashes."""

Reason: TypeAlias = Literal["stopped", "expired", "overflow", "unhandled", "poison", "draining"]
"""Why a message was not handled.

`stopped`: the receiver had ended, or ended first. `expired`: its ask's deadline passed first. `overflow`: the mailbox
was full and the sender did not wait. `unhandled`: the receiver was given up after too many crashes. `poison`: its
handler raised. `draining`: the system took no more work.
"""

RING = 256  # dead letters remembered one by one


class DeadLetter(Struct, frozen=True):
    """One message that was not handled: its receiver and its type. It is not kept: it may be large, or private."""

    actor: str
    message: str
    reason: Reason


class Account(Struct):
    """A system's dead letters, the latest and how many for each reason; and what became of all else.

    `queued` and `running` are only known to `System.counts`; `running` is the number of messages in the hands of a
    handler: one at most, and only seen from inside of it. An ask is answered, or unanswered if it failed, timed out or
    was abandoned; the rest are pending.
    """

    recent: deque[DeadLetter] = field(default_factory=lambda: deque(maxlen=RING))
    dead: Counter[Reason] = field(default_factory=Counter)
    sent: int = 0
    handled: int = 0
    queued: int = 0
    running: int = 0
    asked: int = 0
    answered: int = 0
    unanswered: int = 0

    def bury(self, actor: str, message: object, reason: Reason) -> None:
        """Record `message` as a dead letter of `actor`."""
        self.dead[reason] += 1
        self.recent.append(DeadLetter(actor, type(message).__name__, reason))

    def refuse(self, actor: str, message: object, reason: Reason) -> None:
        """Record a message that was offered and not taken."""
        self.sent += 1
        self.bury(actor, message, reason)

    @property
    def pending(self) -> int:
        """Asks that have not ended."""
        return self.asked - self.answered - self.unanswered

    @property
    def balanced(self) -> bool:
        """Whether the law of this module holds."""
        known = self.handled + self.dead.total() + self.queued + self.running
        return self.sent == known and self.pending >= 0
