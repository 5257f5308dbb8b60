"""Count every message of a system, and record the unhandled messages as dead letters.

Every message sent to an actor is in exactly one state: handled, dead, queued or running. So `sent = handled + dead +
queued + running` always holds. A rejected message counts as dead. An ask is a query whose caller waits for the answer.
It is counted as answered or unanswered when it ends.
"""

from collections import Counter, deque
from typing import Literal, TypeAlias

from msgspec import Struct, field

State: TypeAlias = Literal["running", "restarting", "stopping", "stopped", "faulted"]
"""The state of an actor. A `faulted` actor crashed too often and is not restarted."""

Reason: TypeAlias = Literal["stopped", "expired", "overflow", "unhandled", "poison", "draining"]
"""The reason why a message was not handled.

`stopped`: the receiver had ended, or ended before it handled the message. `expired`: the query's deadline passed.
`overflow`: the mailbox was full and the sender did not wait. `unhandled`: the receiver crashed too often. `poison`:
the handler raised. `draining`: the system was shutting down.
"""

RECENT_LETTERS = 256  # maximum number of dead letters that are kept


class DeadLetter(Struct, frozen=True):
    """A record of one unhandled message: the receiver's name, the message's type, and the reason.

    The message itself is dropped, because it may be large or private.
    """

    actor: str
    message: str
    reason: Reason


class Account(Struct):
    """The counters of a system, its latest dead letters, and the number of dead letters by reason.

    `queued` and `running` are set only in the result of `System.counts`. `running` is 1 if `counts` was called by a
    handler, otherwise 0. `unanswered` counts asks that failed, timed out or were cancelled.
    """

    recent: deque[DeadLetter] = field(default_factory=lambda: deque(maxlen=RECENT_LETTERS))
    dead: Counter[Reason] = field(default_factory=Counter[Reason])
    sent: int = 0
    handled: int = 0
    queued: int = 0
    running: int = 0
    asked: int = 0
    answered: int = 0
    unanswered: int = 0

    def record_dead_letter(self, actor: str, message: object, reason: Reason) -> None:
        """Record `message` as a dead letter. `actor` is the name of the receiver."""
        self.dead[reason] += 1
        self.recent.append(DeadLetter(actor, type(message).__name__, reason))

    def record_rejection(self, actor: str, message: object, reason: Reason) -> None:
        """Record a message that an actor rejected. It counts as sent and as dead."""
        self.sent += 1
        self.record_dead_letter(actor, message, reason)

    @property
    def pending(self) -> int:
        """Number of asks that have not ended."""
        return self.asked - self.answered - self.unanswered

    @property
    def is_balanced(self) -> bool:
        """True if `sent` equals the sum of the handled, dead, queued and running messages."""
        known = self.handled + self.dead.total() + self.queued + self.running
        return self.sent == known and self.pending >= 0
