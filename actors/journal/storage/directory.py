"""Define a storage's directory: data about each session that can be read without reading its log."""

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
"""The state of a session at the end of its log.

`idle`: no turn is open. `running`: a turn is open. `awaiting`: a turn waits for its caller. `closed`: the session has
ended.
"""

Page: TypeAlias = tuple[float, str]
"""A position in the directory, which identifies the last session of a page."""


BUCKET = 64
"""Seconds per bucket. Indexes store the bucket of the last use instead of its time, so most events do not change any
index.
"""
NO_BUCKET = -1
"""The bucket of a session without a log."""


def usage_bucket(used: float) -> int:
    """Return the number of the bucket that contains the time `used`. Each bucket lasts `BUCKET` seconds."""
    return int(used // BUCKET)


def indexed_state(state: State) -> str:
    """Return the state in the form that indexes store. `open` stands for all states that change with every turn."""
    return state if state in ("awaiting", "closed") else "open"


class StoredSession(Struct, frozen=True):
    """A session that has a log, whether or not it is open.

    Args:
        id: The session's id.
        tenant: The session's tenant; empty without a tenant.
        target: The target of the session's next ask.
        events: The number of events in the log.
        bytes: The size of the log's records, large values included.
        opened: The time at which the log was created, in seconds since 1970. Informational only; no code depends on it.
        used: The time of the last write to the log, in seconds since 1970.
        owner: The host that owns the session; None without an owner. A host that is gone remains the owner until the
            next claim.
        state: The state at the end of the log.
        title: The title that the program passed to `open`; empty without a title.
        metadata: The metadata that the program passed to `open`.
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
        """The value to pass to `sessions` as `after`, to list the sessions that follow this one."""
        return (-self.used, self.id)


class SessionFilter(Struct, frozen=True):
    """The conditions for a list of sessions. A session must meet all of them.

    Args:
        tenant: The tenant; None for any tenant, `""` for sessions without a tenant.
        state: The state; None for any state.
        title: Words that the title must contain, ignoring case; empty for any title.
        metadata: Keys and values that the metadata must contain. Values of different types are never equal.
    """

    tenant: str | None = None
    state: State | None = None
    title: str = ""
    metadata: Metadata = ()

    @property
    def folded(self) -> str:
        """The words of `title` in lower case, in the form in which the directory stores titles for searches."""
        return fold_title(self.title)

    @property
    def entries(self) -> tuple[str, ...]:
        """The strings that the encoded metadata of a session must contain."""
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
"""The filter that accepts all sessions that have a log."""


class Summary(Struct):
    """The data about a session that is derived from the events of its log.

    `folded` is the title in lower case, for searches. `metadata` is encoded as JSON.
    """

    tenant: str = ""
    target: str = ""
    state: State = "idle"
    title: str = ""
    folded: str = ""
    metadata: str = ""

    def apply_events(self, events: Iterable[LogEvent]) -> bool:
        """Update the summary with events of the log. Return True if the summary changed."""
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
"""The state of a session after each of these events. Other events do not change the state."""
