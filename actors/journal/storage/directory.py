"""The directory of a storage: what is known of each session without reading its log."""

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import astuple

from actors.core.log.events import (
    Closed,
    LogEvent,
    Opened,
    SwitchApplied,
    TurnEnded,
    TurnPaused,
    TurnResumed,
    TurnStarted,
)
from actors.core.settings.labels import Metadata, Scalar, folded, has_all, metadata_entries, metadata_text

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
        title: Its title, as its host gave it to `open`; empty for none.
        metadata: What its host noted of it there.
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
    title: str = ""
    metadata: dict[str, Scalar] = {}

    @property
    def page(self) -> Page:
        """What `sessions(after=)` takes to go on behind this one."""
        return (-self.used, self.id)


class SessionFilter(Struct, frozen=True):
    """Which sessions a list has: those that meet every condition that is given.

    Args:
        tenant: Whose; None for everybody's, `""` for those of none.
        state: In which state; None for any.
        title: Words that their titles contain, in any case; empty for any title.
        metadata: Keys that they have, with these values, which are equal in type too.
    """

    tenant: str | None = None
    state: State | None = None
    title: str = ""
    metadata: Metadata = ()

    @property
    def folded(self) -> str:
        """The words as a directory looks for them in folded titles."""
        return folded(self.title)

    @property
    def entries(self) -> tuple[str, ...]:
        """The parts that the text of a session's metadata must have."""
        return metadata_entries(self.metadata)

    def takes(self, session: StoredSession) -> bool:
        """Return True if a session meets every condition."""
        return (
            self.tenant in (None, session.tenant)
            and self.state in (None, session.state)
            and self.folded in folded(session.title)
            and has_all(metadata_text(tuple(session.metadata.items())), self.entries)
        )


EVERY = SessionFilter()
"""All sessions that have a log."""


class Summary(Struct):
    """What a log says that the directory shows, and compares: `folded` is the title, `metadata` a text."""

    tenant: str = ""
    target: str = ""
    state: State = "idle"
    title: str = ""
    folded: str = ""
    metadata: str = ""

    def take(self, events: Iterable[LogEvent]) -> bool:
        """Go on with the log; say whether anything changed."""
        before = astuple(self)
        for event in events:
            if (kind := type(event)) in _STATES:
                self.state = _STATES[kind]
            if isinstance(event, Opened):
                self.tenant, self.target = event.tenant, event.target
                self.title, self.folded = event.title, folded(event.title)
                self.metadata = metadata_text(event.metadata)
            elif isinstance(event, SwitchApplied):
                self.target = event.target
        return before != astuple(self)


_STATES: Mapping[type[LogEvent], State] = {
    Opened: "idle",
    TurnStarted: "running",
    TurnPaused: "awaiting",
    TurnResumed: "running",
    TurnEnded: "idle",
    Closed: "closed",
}
"""The state that each of these events leaves a session in; no other changes it."""
