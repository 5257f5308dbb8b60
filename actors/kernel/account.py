"""Account for every message of a system: counters and dead letters.

The invariant: sent = handled + dead + queued + running. Every message offered to an actor is counted in exactly one
of these, a rejected one as dead; every ask ends exactly once.
"""

from collections import Counter, deque
from typing import Literal, TypeAlias

from msgspec import Struct, field

State: TypeAlias = Literal["running", "restarting", "stopping", "stopped", "faulted"]
"""The state of an actor. `faulted`: it crashed too often and is not restarted."""

Reason: TypeAlias = Literal["stopped", "expired", "overflow", "unhandled", "poison", "draining"]
"""Why a message was not handled.

`stopped`: the receiver had ended, or ended before it handled the message. `expired`: the deadline of its ask passed.
`overflow`: the mailbox was full and the sender did not wait. `unhandled`: the receiver crashed too often. `poison`:
the handler raised. `draining`: the system was shutting down.
"""

RING = 256  # individual dead letters that are kept


class DeadLetter(Struct, frozen=True):
    """One unhandled message: its receiver and its type. The message itself is dropped: it may be large, or private."""

    actor: str
    message: str
    reason: Reason


class Account(Struct):
    """The counters of a system, with its latest dead letters and their number by reason.

    Only `System.counts` fills in `queued` and `running`. `running` counts messages in a handler: at most one, and
    only visible from inside it. An ask is answered, or unanswered if it failed, timed out or was abandoned; the
    others are pending.
    """

    recent: deque[DeadLetter] = field(default_factory=lambda: deque(maxlen=RING))
    dead: Counter[Reason] = field(default_factory=Counter[Reason])
    sent: int = 0
    handled: int = 0
    queued: int = 0
    running: int = 0
    asked: int = 0
    answered: int = 0
    unanswered: int = 0

    def dead_letter(self, actor: str, message: object, reason: Reason) -> None:
        """Record `message` as a dead letter of `actor`."""
        self.dead[reason] += 1
        self.recent.append(DeadLetter(actor, type(message).__name__, reason))

    def refuse(self, actor: str, message: object, reason: Reason) -> None:
        """Record a message that was offered and rejected."""
        self.sent += 1
        self.dead_letter(actor, message, reason)

    @property
    def pending(self) -> int:
        """Asks that have not ended."""
        return self.asked - self.answered - self.unanswered

    @property
    def is_balanced(self) -> bool:
        """True if the invariant of this module holds."""
        known = self.handled + self.dead.total() + self.queued + self.running
        return self.sent == known and self.pending >= 0
