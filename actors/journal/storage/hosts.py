"""Define the data that hosts publish about themselves in a journal. A host is a storage object that writes sessions."""

from typing import Literal, TypeAlias

from msgspec import Struct

from actors.errors import HostUnavailable

HostState: TypeAlias = Literal["serving", "draining"]
"""`serving`: the host accepts more sessions. `draining`: it accepts none, and moves its sessions to other hosts."""


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
