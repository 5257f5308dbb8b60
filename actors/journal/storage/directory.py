"""Define a storage's directory: data about sessions and hosts that can be read without reading logs.

A host is a storage object that writes sessions, and publishes data about itself. A deletion returns the deleted
sessions, and any of their data that is not removed yet.
"""

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
from actors.errors import HostUnavailable

State: TypeAlias = Literal["idle", "running", "awaiting", "closed"]
"""The state of a session at the end of its log.

`idle`: no turn is open. `running`: a turn is open. `awaiting`: a turn is paused. `closed`: the session has
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
HostState: TypeAlias = Literal["serving", "draining"]
"""`serving`: the host accepts more sessions. `draining`: it accepts none, and moves its sessions to other hosts."""


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
    def lowercase_title(self) -> str:
        """The words of `title` in lower case, in the form in which the directory stores titles for searches."""
        return fold_title(self.title)

    @property
    def entries(self) -> tuple[str, ...]:
        """The strings that the encoded metadata of a session must contain."""
        return metadata_entries(self.metadata)

    def matches(self, session: StoredSession) -> bool:
        """Return True if a session meets every condition."""
        return (
            self.tenant in (None, session.tenant)
            and self.state in (None, session.state)
            and self.lowercase_title in fold_title(session.title)
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


class HostStatus(Struct, frozen=True):
    """The data that a host reports about itself with each renewal of its lease.

    Args:
        address: The address at which other programs reach the host; empty if unknown.
        state: Whether the host accepts more sessions.
        lag: Seconds by which the host's event loop delayed the last renewal of the lease.
    """

    address: str = ""
    state: HostState = "serving"
    lag: float = 0.0


class Host(Struct, frozen=True):
    """A live host of a journal: a runtime that writes sessions.

    Args:
        name: The unique name of the host, as in `StoredSession.owner`.
        address: The `address` of the host's `Runtime`; empty if none was given.
        state: `serving`, or `draining` if the host accepts no more sessions.
        sessions: The number of sessions that the host owns; 0 if they were not counted.
        lag: Seconds by which the host's event loop delayed the last renewal of the lease.
        remaining_lease: Seconds until the host's lease expires unless it is renewed; None if the journal has no leases.
    """

    name: str
    address: str
    state: HostState
    sessions: int
    lag: float
    remaining_lease: float | None


class Movement(Struct, frozen=True):
    """The result of `Runtime.drain` and `Runtime.rebalance`.

    Args:
        handed_over: Ids of the sessions that other hosts own now.
        released: Ids of the sessions that no host owns now.
        left: Ids of the sessions that are still open in this runtime.
    """

    handed_over: tuple[str, ...] = ()
    released: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


class ClaimedSession(Struct, frozen=True):
    """A session that a host has claimed.

    Args:
        id: The session's id.
        fence: The fencing number of the host's claim.
    """

    id: str
    fence: int


def no_host_error(session: str, host: str) -> HostUnavailable:
    """Return the error for a session that cannot be handed over, because the host `host` is gone or draining."""
    return HostUnavailable(
        f"Session {session!r} stays on this host: host {host[:80]} is gone or accepts no more sessions; choose another "
        "host from journal.hosts()"
    )


class RemainingData(Struct, frozen=True):
    """Data of deleted sessions that a storage still contains.

    Args:
        place: The file or database table that contains the data.
        reason: Why the data is still there, and how to remove it.
        bytes: Size of the file or table; None if unknown.
        is_temporary: Whether a later attempt may succeed, after a reader has finished or an outage has ended.
    """

    place: str
    reason: str
    bytes: int | None = None
    is_temporary: bool = False

    def __str__(self) -> str:
        size = "" if self.bytes is None else f" ({self.bytes:,} bytes)"
        return f"{self.place}{size}: {self.reason}"


class Deletion(Struct, frozen=True):
    """The outcome of `JournalAdmin.delete`.

    Args:
        sessions: Ids of the deleted sessions, subagents included. After a dry run, the ids of sessions that would be
            deleted.
        remaining: Data of deleted sessions that the journal's storage still contains; empty if all data is gone.
    """

    sessions: tuple[str, ...]
    remaining: tuple[RemainingData, ...] = ()

    @property
    def is_complete(self) -> bool:
        """True if the journal's storage contains no data of the deleted sessions any more."""
        return not self.remaining
