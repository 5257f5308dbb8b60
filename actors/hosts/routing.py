"""Choose the next step of one request for a session: try a host, wait, or give up.

In:  the id of a session, the live hosts of the journal, and the outcome of the last attempt.
Out: the address of the next host, the seconds to wait, or the error of the last attempt.

A request goes to the owner of its session. The owner is known from an earlier answer, or from the host that was tried:
a host that does not own the session names the owner. A session without an owner goes to the host that `place` chooses.

    kind of the last rejection, and its errors           next host
    leased       SessionLeased: another host owns the    the owner that the host named
                 session
    refused      HostDraining, ShuttingDown,             another host; the owner again if no other host can claim the
                 TooManySessions, JournalUnavailable     session
    ended        SessionClosed, Fenced: the session      the host that now owns the session, at most `MAX_ENDED` times
                 ended on this host during the request
    unreachable  (no connection to the host)             another host, which can claim the session once the lease has
                                                         expired
    lost         (the host did not answer a request      another host, as for unreachable; after `MAX_LOST` hosts have
                 that was sent)                          lost the request, it is given up, because it may crash hosts

All other errors are answers, which a router returns to its client. One of them is `SessionClosedForGood`, because no
host can serve such a session.

A host that was unreachable is excluded for a bounded time. A request tries each host once without a delay. Before each
further attempt at the same host, the request waits, so hosts that name each other as the owner cause no busy loop.

Routers call this module; it has no clock, so the time is an argument.
"""

from collections import OrderedDict
from collections.abc import Sequence
from hashlib import sha256
from math import inf, isfinite
from typing import Literal, TypeAlias, TypeVar

from msgspec import Struct

from actors.errors import (
    ActorsError,
    ConfigError,
    Fenced,
    JournalUnavailable,
    RequestLost,
    SessionClosed,
    SessionClosedForGood,
    SessionLeased,
    ShuttingDown,
    TooManySessions,
)
from actors.journal.storage.directory import Host

RejectionKind: TypeAlias = Literal["leased", "refused", "ended", "unreachable", "lost"]
FIRST_DELAY = 0.02
"""Seconds of the first wait. Each further wait is twice as long, up to `RouterLimits.max_delay`."""
MAX_ENDED = 4
"""A request is given up after this number of attempts during which the session ended. A session that was released or
moved can be claimed again; a session that was closed cannot."""
MAX_LOST = 3
"""A request is given up after this number of hosts have lost it. A process that is restarted at the same address counts
as another host."""
MAX_EXCLUSIONS = 1000
"""Maximum number of hosts that are excluded at the same time."""
STALE_FRACTION = 0.5
"""A host has not renewed its lease in time if less than this fraction of the longest remaining lease remains. Hosts
renew their lease each third of its duration."""


class RouterLimits(Struct, frozen=True, kw_only=True):
    """The limits of a router. All times are in seconds.

    Args:
        max_attempts: Maximum number of hosts that are tried for one request, including repeated attempts at one host.
        deadline: Maximum time that a request spends on waiting and on connecting to hosts, over all attempts. The time
            during which a host works on the request is not counted. The deadline should exceed the lease of the
            journal, because the sessions of a killed host are free only after its lease has expired.
        max_delay: Maximum delay before a host is tried again for the same request.
        exclusion_time: Time for which a host is not tried after it was unreachable. A host that refused a session
            receives no further sessions for the same time.
        max_lag: Maximum delay of a host's event loop. While other hosts are faster, a slower host receives no further
            sessions.
        max_owners: Maximum number of sessions whose owner is remembered.
        max_body: Maximum size in bytes of the body of a request for a session. The body is kept in memory, so that the
            request can be repeated.
        connect_timeout: Maximum time to connect to a host.
        idle_timeout: Maximum time without a byte from the host that answers a request.

    Raises:
        ConfigError: A limit is not a number greater than 0.
    """

    max_attempts: int = 200
    deadline: float = 30.0
    max_delay: float = 0.25
    exclusion_time: float = 2.0
    max_lag: float = 1.0
    max_owners: int = 10_000
    max_body: int = 10 * 1024 * 1024
    connect_timeout: float = 2.0
    idle_timeout: float = 600.0

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if not isinstance(value, int | float) or not isfinite(value) or value <= 0:
                raise ConfigError(f"RouterLimits({name}=) takes a number greater than 0, not {value!r}")


class Rejection(Struct, frozen=True):
    """The reason why a host did not serve a request, which may now be sent to another host.

    Args:
        kind: `leased`: another host owns the session. `refused`: the host accepts no more sessions. `ended`: the
            session ended on this host. `unreachable`: the host did not receive the request. `lost`: the host may have
            received the request, and ended or stopped answering.
        error: The error for the client if no further host is tried.
        owner: The address of the owner, if the kind is `leased` and the address is known; otherwise empty.
    """

    kind: RejectionKind
    error: ActorsError
    owner: str = ""


def rejection_of(error: BaseException) -> Rejection | None:
    """Return the rejection that corresponds to an error, or None if the error is an answer to the request."""
    if isinstance(error, SessionLeased):
        return Rejection("leased", error, error.address)
    if isinstance(error, ShuttingDown | TooManySessions | JournalUnavailable):
        return Rejection("refused", error)
    if isinstance(error, SessionClosed | Fenced) and not isinstance(error, SessionClosedForGood):
        return Rejection("ended", error)
    return None


class SendTo(Struct, frozen=True):
    """Send the request to the host at this address."""

    address: str


class Wait(Struct, frozen=True):
    """Wait for a number of seconds, and then request the next step."""

    seconds: float


class GiveUp(Struct, frozen=True):
    """Return this error to the client."""

    error: ActorsError


Step: TypeAlias = SendTo | Wait | GiveUp

V = TypeVar("V")


class RoutingTable:
    """The state that all requests of one router share: the owners of sessions, and the excluded hosts.

    The numbers of owners and of excluded hosts are bounded. The least recently used entries are dropped first.
    """

    def __init__(self, limits: RouterLimits) -> None:
        self.limits = limits
        self._owners = OrderedDict[str, str]()
        self._unreachable = OrderedDict[str, float]()
        self._refusing = OrderedDict[str, float]()

    def owner(self, session: str) -> str | None:
        """Return the address of the session's owner, if it is known."""
        if (address := self._owners.get(session)) is not None:
            self._owners.move_to_end(session)
        return address

    def reachable_owner(self, session: str, now: float) -> str | None:
        """Return the address of the session's owner, if it is known and was not unreachable recently."""
        owner = self.owner(session)
        return None if owner in self.unreachable(now) else owner

    def record_owner(self, session: str, address: str) -> None:
        """Remember the address of the session's owner."""
        _store(self._owners, session, address, self.limits.max_owners)

    def forget_owner(self, session: str, address: str) -> None:
        """Forget the owner of a session, if it is the host at this address."""
        if self._owners.get(session) == address:
            del self._owners[session]

    def record(self, address: str, rejection: Rejection, now: float) -> None:
        """Exclude an unreachable host from all attempts, and exclude a host that refused a session from `place`."""
        until = now + self.limits.exclusion_time
        if rejection.kind == "unreachable":
            _store(self._unreachable, address, until, MAX_EXCLUSIONS)
        elif rejection.kind == "refused":
            _store(self._refusing, address, until, MAX_EXCLUSIONS)

    def unreachable(self, now: float) -> frozenset[str]:
        """Return the addresses of the hosts that were unreachable recently."""
        return _current(self._unreachable, now)

    def refusing(self, now: float) -> frozenset[str]:
        """Return the addresses of the hosts that refused a session recently."""
        return _current(self._refusing, now)


class RequestRoute:
    """The attempts of one request for a session.

    Args:
        session: Id of the session.
        here: The address of this host; empty if it has none.
        table: The state that all requests of the router share.
        now: The time in seconds.
    """

    def __init__(self, session: str, here: str, table: RoutingTable, now: float) -> None:
        self._session, self._here, self._table = session, here, table
        self._limits = table.limits
        self._rejection: Rejection | None = None
        self._tried = set[str]()
        self._attempts = self._ended = self._waits = 0
        self._name = ""  # of the current host; empty if the list of hosts does not contain its address
        self._lost = set[tuple[str, str]]()  # address and name of each host that has lost the request
        self._avoided = OrderedDict[str, float]()
        self._idle, self._since = 0.0, now
        self._has_waited = False

    def next_step(self, hosts: Sequence[Host], now: float) -> Step:
        """Return the next step.

        Args:
            hosts: The live hosts of the journal. The list may be empty if the owner is this host and has not lost the
                request recently.
            now: The time in seconds.
        """
        self._count_idle(now)
        if len(self._lost) >= MAX_LOST or (len(self._lost) > 1 and self._idle >= self._limits.deadline):
            return GiveUp(RequestLost(_lost_text(self._session, len(self._lost))))
        if self._rejection is not None and self._is_exhausted():
            return GiveUp(self._rejection.error)
        address = self._choose(hosts, now)
        if address in self._tried and not self._has_waited:
            return self._wait()
        self._has_waited = False
        self._attempts += 1
        self._tried.add(address)
        self._name = next((host.name for host in hosts if host.address == address), "")
        return SendTo(address)

    def record(self, address: str, rejection: Rejection, now: float) -> None:
        """Record that the host at this address rejected the request."""
        self._count_idle(now, self._limits.connect_timeout)  # in a longer attempt, the host was working
        self._rejection = rejection
        self._ended += rejection.kind == "ended"
        if rejection.kind == "lost":
            self._count_loss(address)
            self._avoided[address] = now + self._limits.exclusion_time
        self._table.forget_owner(self._session, address)
        self._table.record(address, rejection, now)
        if rejection.kind == "leased" and rejection.owner:
            self._table.record_owner(self._session, rejection.owner)

    def _count_loss(self, address: str) -> None:
        """Record that the host has lost the request. A host counts once, even if its name was unknown at one loss."""
        if self._name:
            self._lost.discard((address, ""))
        elif any(lost == address for lost, _ in self._lost):
            return
        self._lost.add((address, self._name))

    def avoids(self, address: str, now: float) -> bool:
        """Return True if the host at this address recently lost the request, so it is not tried."""
        return address in _current(self._avoided, now)

    def record_answer(self, address: str) -> None:
        """Record that the host at this address answered the request, so it owns the session."""
        self._table.record_owner(self._session, address)

    def _count_idle(self, now: float, limit: float = inf) -> None:
        """Count the time since the last step, up to `limit` seconds, as time in which no host worked on the request."""
        self._idle += min(limit, max(0.0, now - self._since))
        self._since = now

    def _is_exhausted(self) -> bool:
        limits = self._limits
        return (
            self._attempts >= limits.max_attempts or self._idle >= limits.deadline or self._ended >= MAX_ENDED
        )

    def _choose(self, hosts: Sequence[Host], now: float) -> str:
        """Return the address of the next host. Excluded hosts are chosen only if no other host is left."""
        table, avoided = self._table, _current(self._avoided, now)
        owner = table.reachable_owner(self._session, now)
        if owner is not None and owner not in avoided:
            return owner
        unreachable = table.unreachable(now) | avoided
        excluded = unreachable | table.refusing(now)
        for each in (excluded, unreachable):
            if (address := place(self._session, hosts, each, self._limits.max_lag)) is not None:
                return address
        if self._here not in unreachable:
            return self._here
        return place(self._session, hosts, frozenset(), self._limits.max_lag) or self._here

    def _wait(self) -> Wait:
        seconds = min(self._limits.max_delay, FIRST_DELAY * 2 ** min(self._waits, 10))
        self._waits += 1
        self._has_waited = True
        return Wait(seconds)


def _lost_text(session: str, count: int) -> str:
    return (
        f"A request for session {session!r} was given up: {count} hosts ended or stopped answering after it was sent "
        "to them. The request may be the cause, so read the logs of the hosts before you repeat it"
    )


def _current(exclusions: OrderedDict[str, float], now: float) -> frozenset[str]:
    """Remove the exclusions that have ended, and return the addresses of the others."""
    for address in [each for each, until in exclusions.items() if until <= now]:
        del exclusions[address]
    return frozenset(exclusions)


def _store(entries: OrderedDict[str, V], key: str, value: V, limit: int) -> None:
    """Add an entry as the newest, and drop the oldest entries above the limit."""
    entries[key] = value
    entries.move_to_end(key)
    while len(entries) > limit:
        entries.popitem(last=False)


def place(session: str, hosts: Sequence[Host], excluded: frozenset[str], lag: float) -> str | None:
    """Return the address of the host for a session that no host owns. Return None if no host can be used.

    Healthy hosts are preferred to hosts that are slow or did not renew their lease.

    Args:
        session: Id of the session.
        hosts: The live hosts of the journal.
        excluded: Addresses of hosts that must not be used.
        lag: Maximum lag of a healthy host, in seconds.
    """
    usable = [
        host for host in hosts if host.state == "serving" and host.address and host.address not in excluded
    ]
    longest = max((host.remaining_lease or 0.0 for host in usable), default=0.0)
    healthy = [host for host in usable if _is_healthy(host, longest, lag)]
    addresses = {host.address for host in healthy or usable}
    return max(addresses, key=lambda address: _score(address, session), default=None)


def _is_healthy(host: Host, longest_lease: float, lag: float) -> bool:
    renews = host.remaining_lease is None or host.remaining_lease >= STALE_FRACTION * longest_lease
    return renews and host.lag <= lag


def _score(address: str, session: str) -> bytes:
    return sha256(f"{address} {session}".encode()).digest()
