"""Move the sessions of a runtime to other hosts of the same journal.

    hand_over    one session                    to the host at an address
    drain        all sessions                   to the serving hosts with the fewest sessions
    rebalance    idle sessions above the mean   to the serving hosts with the fewest sessions

`drain` and `rebalance` limit how many sessions move per second and at the same time; each movement has a time limit
(`actors.runtime.departure`). A host without an address receives no sessions, because callers could not find them.
`drain` and `rebalance` include unopened sessions: sessions that were handed over to this host, but that no caller has
claimed yet.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing, suppress
from functools import partial
from math import ceil

import anyio

from actors.core.data.record import replace
from actors.errors import ActorsError, ConfigError, HostUnavailable, ReentrantCall
from actors.journal.commands import AssignSession, ListHosts, ListOwned, ReleaseSession, RenewLease
from actors.journal.storage.hosts import ClaimedSession, Host, Movement
from actors.runtime import departure
from actors.runtime.lifecycle import SessionLifecycle
from actors.runtime.registry import SessionRegistry
from actors.runtime.session_host import SessionHost
from actors.runtime.validation import check_nonnegative, checked_session_id
from actors.scheduler.executor import sessions_in_call

AT_ONCE = 64
"""Maximum number of sessions that move at the same time."""
PASSES = 3
"""Maximum number of passes of `drain` over the open sessions. Sessions may still be opened during the first pass."""
TRIES = 3
"""Maximum number of hosts to try for one session, if a host ends or starts to drain during the movement."""
PAGES = 1000
"""Maximum number of pages of unopened sessions."""
REFRESH = 1.0
"""Seconds between two reads of the list of hosts. In between, moved sessions are added to the counts in the list."""
EVEN = 0.2
"""The load counts as even if each host's number of sessions differs from the mean by at most this fraction of it."""


class OtherHosts:
    """The serving hosts to which sessions can be handed over, with each host's number of sessions.

    Args:
        host: This host.
    """

    def __init__(self, host: SessionHost) -> None:
        self._host = host
        self._others: dict[str, Host] = {}
        # the number of sessions that are moving to each host; the journal may not count them yet
        self._moving = Counter[str]()
        self._refreshing = anyio.Lock()
        self._until = 0.0
        self.own: Host | None = None
        """The row of this host; None if this storage is not a host yet."""

    @property
    def all(self) -> list[Host]:
        """The other serving hosts that have an address, as of the last `refresh`."""
        return [*self._others.values()]

    async def refresh(self) -> None:
        """Read the list of hosts."""
        found = {host.name: host for host in await self._host.journal.ask(ListHosts())}
        self.own = found.pop(self._host.storage.host, None)
        self._others = {
            name: replace(host, sessions=host.sessions + self._moving[name])
            for name, host in found.items()
            if host.state == "serving" and host.address
        }
        self._until = anyio.current_time() + REFRESH

    async def choose(self, below: float | None = None) -> Host | None:
        """Return the host with the fewest sessions, and count one more session for it. Return None if there is no host.

        Call `finish` after the movement.

        Args:
            below: Return only a host that has fewer sessions than this number.
        """
        async with self._refreshing:
            if anyio.current_time() >= self._until:
                await self.refresh()
        least = min(self._others.values(), key=lambda host: host.sessions, default=None)
        if least is None or (below is not None and least.sessions >= below):
            return None
        self._others[least.name] = replace(least, sessions=least.sessions + 1)
        self._moving[least.name] += 1
        return least

    def finish(self, other: Host) -> None:
        """Record that the movement of a session to a chosen host has ended, whether it succeeded or failed."""
        self._moving[other.name] -= 1

    def drop(self, other: Host) -> None:
        """Remove a host that did not accept a session."""
        self._others.pop(other.name, None)


class SessionMover:
    """Moves a host's sessions to other hosts, and records the ids of the moved sessions.

    Args:
        host: The host.
        registry: The open sessions of the host.
        rate: Maximum number of sessions per second.
        timeout: Seconds to wait for the turn of a session before the turn is cancelled.

    Only hosts with fewer sessions than the attribute `below` receive sessions; if there is no such host, the session
    stays. If `below` is None, every other host receives sessions; if there is no other host, the session is released.
    """

    below: float | None = None

    def __init__(self, host: SessionHost, registry: SessionRegistry, rate: float, timeout: float) -> None:
        self._host, self._registry, self._timeout = host, registry, timeout
        self._pause, self._due = 1 / rate, 0.0
        self._slots = anyio.Semaphore(AT_ONCE)
        self.others: OtherHosts = OtherHosts(host)
        self._handed_over, self._released = list[str](), list[str]()

    @property
    def movement(self) -> Movement:
        """The sessions that were moved, and the sessions that are still open on this host."""
        return Movement(tuple(self._handed_over), tuple(self._released), tuple(self._registry.open))

    async def move(self, names: Iterable[str]) -> None:
        """Move the open sessions with these ids."""
        async with anyio.create_task_group() as tasks:
            for name in names:
                await self._slots.acquire()
                await self._keep_rate()
                tasks.start_soon(self._move_open, name)

    async def move_unopened(self, sessions: Iterable[ClaimedSession]) -> None:
        """Move sessions that belong to this host and are not open."""
        for claimed in sessions:
            await self._keep_rate()
            assign, release = partial(self._assign, claimed), partial(self._release, claimed)
            # A session that a caller has claimed in the meantime, or that cannot be moved, stays.
            with suppress(ActorsError):
                await self._transfer(claimed.id, assign, release)

    async def _assign(self, claimed: ClaimedSession, other: Host) -> None:
        await self._host.journal.ask(AssignSession(claimed.id, claimed.fence, other.name))

    async def _release(self, claimed: ClaimedSession) -> None:
        await self._host.journal.ask(ReleaseSession(claimed.id, claimed.fence))

    async def unopened(self) -> AsyncGenerator[Sequence[ClaimedSession]]:
        """Yield the sessions that belong to this host and are not open, in pages."""
        after = ""
        for _ in range(PAGES):
            page = await self._host.journal.ask(ListOwned(after=after))
            if not page:
                return
            yield [owned for owned in page if not self._registry.is_taken(owned.id)]
            after = page[-1].id

    async def _keep_rate(self) -> None:
        """Wait until the next session may be moved."""
        now = anyio.current_time()
        self._due = max(self._due, now)
        await anyio.sleep(self._due - now)
        self._due += self._pause

    async def _move_open(self, name: str) -> None:
        try:
            if (session := self._registry.open.get(name)) is not None:
                moving, timeout = session._lifecycle, self._timeout
                # A session that cannot be moved stays, and `movement` lists it.
                with suppress(ActorsError):
                    await self._transfer(
                        name,
                        lambda other: departure.hand_over(moving, other, timeout),
                        lambda: departure.release(moving, timeout),
                    )
        finally:
            self._slots.release()

    async def _transfer(
        self, name: str, hand_over: Callable[[Host], Awaitable[None]], release: Callable[[], Awaitable[None]]
    ) -> None:
        """Hand a session over to the host with the fewest sessions. If there is no other host, release or keep the
        session.

        Raises:
            ActorsError: The session was not moved.
        """
        for _ in range(TRIES):
            if (other := await self.others.choose(self.below)) is None:
                break
            try:
                await hand_over(other)
            except HostUnavailable:
                self.others.drop(other)
            else:
                self._handed_over.append(name)
                return
            finally:
                self.others.finish(other)
        if self.below is None:
            await release()
            self._released.append(name)


class SessionMovement:
    """The methods of `Runtime` that move sessions to other hosts of the journal."""

    _registry: SessionRegistry

    def _running_host(self) -> SessionHost:
        """Return the host of the runtime's sessions. Raises `KernelError` if the runtime is not running."""
        raise NotImplementedError

    async def hand_over(
        self,
        id: str,  # noqa: A002  callers expect the name `id`
        /,
        to: str,
        *,
        timeout: float = 30.0,
    ) -> None:
        """Make another host the owner of an open session, so that no caller has to wait until a lease expires.

        The method first waits for the turn in flight. Queued asks end with `SessionLeased`. A turn that waits for its
        caller stays open in the log. Once all events are written, the journal assigns the session to the other host in
        one step. After that, this session's handle raises `SessionLeased` with the `address` of the other host, and
        `Runtime.claim` on that host resumes the session. If the caller is cancelled, the handover continues.

        Args:
            id: Id of a session that is open in this runtime.
            to: The `address` of another runtime with the same journal.
            timeout: Seconds to wait for the turn in flight before its ask is cancelled. An ask with a `key` can be
                repeated on the other host, where it continues.

        Raises:
            ConfigError: An argument has a wrong type or value.
            SessionClosed, SessionLeased: No session with this id is open, or the session ended during the call.
            HostUnavailable: No other live host with this address accepts sessions. The session stays in this runtime.
            ReentrantCall: A tool of this session called this method. The handover would have to wait for the tool.
            JournalError: The session cannot be handed over. Unless the error is `Fenced`, the session stays usable.
            ShuttingDown: The handover itself was cancelled, because the runtime exited.
        """
        host = self._running_host()
        host.check_event_loop()
        check_nonnegative(timeout=timeout)
        session = self._registry.ids[checked_session_id(id)]
        session._check_caller()
        others = OtherHosts(host)
        await others.refresh()
        found = [other for other in others.all if other.address == to]
        if not found:
            addresses = ", ".join(sorted(other.address for other in others.all)) or "none"
            raise HostUnavailable(
                f"Session {id!r} stays on this host: no other host serves at {to!r}; serving addresses: {addresses}"
            )
        await departure.hand_over(
            session._lifecycle, max(found, key=lambda other: other.remaining_lease or 0.0), timeout
        )

    async def drain(self, *, rate: float = 10.0, timeout: float = 30.0) -> Movement:
        """Move all sessions to other hosts, and open no more sessions. Call this method before you exit the runtime.

        From then on, `open`, `resume` and `claim` open no session: they raise `SessionLeased` if another host owns the
        session already, otherwise `HostDraining`. Other hosts no longer hand sessions over to this runtime. Each open
        session is handed over, as by `hand_over`, to the serving host with the fewest sessions; until then, it can be
        used. If no other host with an address is serving, the session is released, as by `Session.release`. If you exit
        a runtime without calling this method, all sessions are released at once.

        With a journal in memory, sessions stay in this runtime, because no other host could read them.

        Args:
            rate: Maximum number of sessions that are moved per second. A limit gives the other hosts time to resume
                them.
            timeout: Seconds to wait for the turn of each session, as in `hand_over`.

        Returns:
            The ids of the sessions that were moved, and of the sessions that could not be moved.

        Raises:
            ConfigError: `rate` or `timeout` is not a number that is 0 or more, or `rate` is 0.
            ReentrantCall: A tool of a session of this runtime called this method. The drain would have to wait for the
                tool.
            JournalError: The journal cannot record that this host is draining. Call the method again.
        """
        mover = self._mover(rate, timeout)
        host, registry = self._running_host(), self._registry
        _check_not_in_call(host)
        host.state = "draining"
        await host.journal.ask(RenewLease(status=host.status))
        if not host.is_durable:
            return mover.movement
        for _ in range(PASSES):
            with anyio.move_on_after(timeout):
                await registry.wait_settled()
            if not registry.open:
                break
            await mover.move(_first_to_move(registry))
        async with aclosing(mover.unopened()) as pages:
            async for page in pages:
                await mover.move_unopened(page)
        return mover.movement

    async def rebalance(self, *, most: int = 100, rate: float = 10.0, timeout: float = 30.0) -> Movement:
        """Move idle sessions to other hosts, if this host has more sessions than the mean of the serving hosts.

        Sessions are moved as by `hand_over`, least recently used first, to hosts that have fewer sessions than the
        mean. Sessions with an ask in flight, or with a turn that waits for its caller, are not moved. If every host's
        number of sessions is within 20 % of the mean, no session is moved. Call this method on every host from time to
        time, for example a minute after a host has joined.

        Args:
            most: Maximum number of sessions that this call moves.
            rate: Maximum number of sessions that are moved per second.
            timeout: Seconds to wait for a turn that starts before its session is moved, as in `hand_over`.

        Returns:
            The ids of the sessions that were moved, and of the sessions that are still open in this runtime.

        Raises:
            ConfigError: An argument is not a number that is 0 or more, or `rate` is 0.
            JournalError: The journal cannot list the hosts.
        """
        check_nonnegative(most=most)
        mover = self._mover(rate, timeout)
        await mover.others.refresh()
        own, others = mover.others.own, mover.others.all
        if own is None or not others or own.state == "draining":
            return mover.movement
        mean = (own.sessions + sum(other.sessions for other in others)) / (len(others) + 1)
        if any(abs(each.sessions - mean) > EVEN * mean for each in (own, *others)):
            mover.below = mean
            await self._move_idle(mover, min(own.sessions - ceil(mean), int(most)))
        return mover.movement

    async def _move_idle(self, mover: SessionMover, most: int) -> None:
        """Move at most `most` sessions: first unopened sessions, then idle open sessions."""
        async with aclosing(mover.unopened()) as pages:
            async for page in pages:
                if most <= 0:
                    break
                await mover.move_unopened(page[:most])
                most -= len(page[:most])
        idle = _idle_sessions(self._running_host(), self._registry)
        await mover.move(idle[: max(0, most)])

    def _mover(self, rate: float, timeout: float) -> SessionMover:
        host = self._running_host()
        host.check_event_loop()
        check_nonnegative(rate=rate, timeout=timeout)
        if not rate:
            raise ConfigError("rate= takes a number of sessions per second greater than 0, not 0")
        return SessionMover(host, self._registry, rate, timeout)


def _check_not_in_call(host: SessionHost) -> None:
    """Raise `ReentrantCall` if the caller runs in a tool of one of the host's sessions."""
    if (name := next(sessions_in_call(host.system), None)) is not None:
        raise ReentrantCall(
            f"A tool of session {name!r} cannot drain its runtime, because the drain waits for the tool; drain the "
            "runtime when the ask has ended"
        )


def _first_to_move(registry: SessionRegistry) -> list[str]:
    """Return the open sessions that are not subagents. If all open sessions are subagents, return all.

    Subagents move last, because tools of their parents may use them.
    """
    parents = [name for name, session in registry.open.items() if session._lifecycle.above is None]
    return parents or [*registry.open]


def _idle_sessions(host: SessionHost, registry: SessionRegistry) -> list[str]:
    """Return the open sessions that are idle, least recently used first."""
    residency = host.residency
    names = dict.fromkeys((*residency.unused, *residency.folded, *residency.active, *registry.open))
    return [
        name
        for name in names
        if (session := registry.open.get(name)) is not None and _is_idle(session._lifecycle)
    ]


def _is_idle(lifecycle: SessionLifecycle) -> bool:
    """Return True if the session is not a subagent, and no ask, tool or reader is using it."""
    is_used = lifecycle.busy or lifecycle.runs_tools or lifecycle.name in lifecycle.host.readers.following
    return not is_used and lifecycle.above is None
