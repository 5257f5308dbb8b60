"""Define the directory of a storage: the data on each session that is available without reading its log."""

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
from actors.core.settings.labels import (
    Metadata,
    Scalar,
    contains_all,
    fold_title,
    metadata_entries,
    metadata_text,
)

State: TypeAlias = Literal["idle", "running", "awaiting", "closed"]
"""What the log's end says: no turn is open; one is; one waits for its caller; the session has ended."""

Page: TypeAlias = tuple[float, str]
"""A place in the directory: behind which session a page begins."""


BUCKET = 64
"""Seconds of last use that have the same number in the indexes of a directory, so that most events change none."""
NO_BUCKET = -1
"""The number of a session that has no log."""


def bucket_of(used: float) -> int:
    """Return the number of the period in which a session was last used."""
    return int(used // BUCKET)


def lifecycle_of(state: State) -> str:
    """Return the indexed form of a state. States that change with every turn are combined."""
    return state if state in ("awaiting", "closed") else "open"


class StoredSession(Struct, frozen=True):
    """A session that has a log, whether it is open or not.

    Args:
        id: Its id.
        tenant: Its tenant.
        target: The target of its next ask.
        events: The number of events in its log.
        bytes: The size of its records, blobs included.
        opened: The time at which its log was created. Seconds since 1970, for people; nothing depends on it.
        used: The time of the last write to its log, likewise.
        owner: The host that owns it; None without one. A gone host stays the owner until the next claim.
        state: The state at the end of its log.
        title: The title that its host passed to `open`; empty without one.
        metadata: The metadata that its host passed to `open`.
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
        """The value of `sessions(after=)` that continues after this session."""
        return (-self.used, self.id)


class SessionFilter(Struct, frozen=True):
    """The conditions of a list of sessions, all of which must be met.

    Args:
        tenant: The tenant; None for any, `""` for sessions without one.
        state: The state; None for any.
        title: Words that the title contains, ignoring case; empty for any title.
        metadata: Keys and values that the metadata contains; values must have equal types too.
    """

    tenant: str | None = None
    state: State | None = None
    title: str = ""
    metadata: Metadata = ()

    @property
    def folded(self) -> str:
        """The words as a directory looks for them in folded titles."""
        return fold_title(self.title)

    @property
    def entries(self) -> tuple[str, ...]:
        """The parts that the text of a session's metadata must have."""
        return metadata_entries(self.metadata)

    def takes(self, session: StoredSession) -> bool:
        """Return True if a session meets every condition."""
        return (
            self.tenant in (None, session.tenant)
            and self.state in (None, session.state)
            and self.folded in fold_title(session.title)
            and contains_all(metadata_text(tuple(session.metadata.items())), self.entries)
        )


EVERY = SessionFilter()
"""All sessions that have a log."""


class Summary(Struct):
    """The directory's data on a log, used for comparison: `folded` is the title, `metadata` a text."""

    tenant: str = ""
    target: str = ""
    state: State = "idle"
    title: str = ""
    folded: str = ""
    metadata: str = ""

    def take(self, events: Iterable[LogEvent]) -> bool:
        """Update the summary with events; return True if it changed."""
        before = astuple(self)
        for event in events:
            if (kind := type(event)) in _STATES:
                self.state = _STATES[kind]
            if isinstance(event, Opened):
                self.tenant, self.target = event.tenant, event.target
                self.title, self.folded = event.title, fold_title(event.title)
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
