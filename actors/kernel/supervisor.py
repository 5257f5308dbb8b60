"""What happens when an actor crashes.

A crash goes through three steps. *Down*, at once: no further message is handled, open questions fail, children are
cancelled and waited for. *Wait*: a backoff that doubles with each recent crash, with seeded jitter. *Up*: the factory
makes a new object; the mailbox is kept, the message that crashed it is not tried again. A `Group` is what goes down
and up together: several actors, or one alone. When it crashes more often than its restart intensity allows, it is given
up: its mail is dead, its watchers are told.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from actors.kernel.cell import AnyCell
    from actors.kernel.system import System


@dataclass(frozen=True, slots=True)
class Restart:
    """How often a crash is answered by a restart.

    Args:
        intensity: Restarts allowed within `period`; at one crash more the actor is given up. 0: at the first.
        period: Seconds.
        backoff: Seconds before the first restart, and at most; doubles with each crash within `period`.
    """

    intensity: int = 3
    period: float = 60.0
    backoff: tuple[float, float] = (0.05, 5.0)


RESTART = Restart()


@dataclass(slots=True, eq=False)
class Group:
    """Actors that restart together, in the order they were started. Given to `System.spawn`.

    `error`: the crash that is being dealt with. Further ones on the way down and up count as the same.
    """

    system: "System"
    restart: Restart = RESTART
    members: "list[AnyCell]" = field(default_factory=list)
    crashes: list[float] = field(default_factory=list)
    waits: bool = False  # for the delay before the restart
    error: BaseException | None = None

    def join(self, cell: "AnyCell") -> None:
        """Make `cell` a member; if the others are on their way down, it goes with them."""
        cell.group = self
        self.members.append(cell)
        if self.error is not None:
            cell.go_down(self.error)

    def leave(self, cell: "AnyCell") -> None:
        """Forget `cell`, which has ended."""
        self.members.remove(cell)
        self.settle()

    def crashed(self, error: BaseException) -> None:
        """Take all members down, at once."""
        now = self.system.now()
        self.error = error
        self.crashes = [*(when for when in self.crashes if when >= now - self.restart.period), now]
        for member in self.members:
            member.go_down(error)
        self.settle()

    def settle(self) -> None:
        """Restart the members or give them up, if all are down."""
        if self.error is None or self.waits or any(cell.life and cell.life.children for cell in self.members):
            return
        if len(self.crashes) > self.restart.intensity:
            self.error = None
            for member in tuple(reversed(self.members)):
                member.finish("faulted")
            return
        self.waits = True
        self.system.deadlines.at(self.system.now() + self.delay(len(self.crashes)), self._up)

    def delay(self, crashes: int) -> float:
        """Return the seconds before the restart after the last of so many crashes."""
        first, most = self.restart.backoff
        doubled = min(most, first * 2.0 ** (crashes - 1))
        return doubled * self.system.random.uniform(0.5, 1.0)

    def _up(self) -> None:
        self.waits = False
        self.error = None
        waiting = [cell for cell in self.members if cell.state == "restarting"]
        for cell in waiting:
            cell.state, cell.life = "running", None
            cell.restarts += 1
        for cell in waiting:
            cell.resume()
