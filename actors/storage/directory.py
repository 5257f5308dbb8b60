"""The directory of a storage: what is known of each session without reading its log."""

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from actors.core.events import Awaited, Bound, Closed, Event, Opened, Resumed, SwitchApplied, TurnEnded

State: TypeAlias = Literal["idle", "running", "awaiting", "closed"]
"""What the log's end says: no turn is open; one is; one waits for its caller; the session has ended."""

Page: TypeAlias = tuple[float, str]
"""A place in the directory: behind which session a page begins."""


BUCKET = 64
"""Seconds of last use that have the same number in the indexes of a directory, so that most events change none."""
NO_BUCKET = -1
"""The number of a session that has no log."""


def bucket_of(used: float) -> int:
    """Return the number of the seconds in which a session was last used."""
    return int(used // BUCKET)


def lifecycle_of(state: State) -> str:
    """Return what the indexes say of a state: those that come and go with every turn are one."""
    return state if state in ("awaiting", "closed") else "open"


class StoredSession(Struct, frozen=True):
    """A session that has a log, whether it is open or not.

    Args:
        id: Its name.
        tenant: Whose it is.
        target: Whom its next ask goes to.
        events: How many are in its log.
        bytes: Of its records, blobs included.
        opened: When its log was begun. Seconds since 1970, for people; nothing depends on it.
        used: When its log was last written, likewise.
        owner: The host it belongs to now; None if to none. One that is gone is still named until somebody claims it.
        state: What its log ends in.
    """

    id: str
    tenant: str
    target: str
    events: int
    bytes: int
    opened: float
    used: float
    owner: str | None
    state: State

    @property
    def page(self) -> Page:
        """What `sessions(after=)` takes to go on behind this one."""
        return (-self.used, self.id)


class Summary(Struct):
    """What a log says that the directory shows."""

    tenant: str = ""
    target: str = ""
    state: State = "idle"

    def take(self, events: Iterable[Event]) -> bool:
        """Go on with the log; say whether anything changed."""
        before = self.tenant, self.target, self.state
        for event in events:
            if (kind := type(event)) in _STATES:
                self.state = _STATES[kind]
            if isinstance(event, Opened):
                self.tenant, self.target = event.tenant, event.target
            elif isinstance(event, SwitchApplied):
                self.target = event.target
        return before != (self.tenant, self.target, self.state)


_STATES: Mapping[type[Event], State] = {
    Opened: "idle",
    Bound: "running",
    Awaited: "awaiting",
    Resumed: "running",
    TurnEnded: "idle",
    Closed: "closed",
}
"""The state that each of these events leaves a session in; no other changes it."""
