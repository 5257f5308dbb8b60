"""Move the sessions of a host to other hosts of the same journal, for `actors.runtime.session_access`.

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
from math import ceil, inf

import anyio

from actors.core.data.record import replace
from actors.errors import ActorsError, HostUnavailable, ReentrantCall
from actors.journal.commands import AssignSession, ListHosts, ListOwned, ReleaseSession, RenewLease
from actors.journal.storage.directory import ClaimedSession, Host, Movement
from actors.runtime import departure
from actors.runtime.handle import Session
from actors.runtime.lifecycle import SessionLifecycle
from actors.runtime.registry import SessionRegistry
from actors.runtime.session_host import SessionHost
from actors.scheduler.executor import sessions_in_call

MAX_CONCURRENT = 64
"""Maximum number of sessions that move at the same time."""
PASSES = 3
"""Maximum number of passes of `drain` over the open sessions. Sessions may still be opened during the first pass."""
TRIES = 3
"""Maximum number of hosts to try for one session, if a host ends or starts to drain during the movement."""
PAGES = 1000
"""Maximum number of pages of unopened sessions."""
REFRESH_INTERVAL = 1.0
"""Seconds between two reads of the list of hosts. In between, moved sessions are added to the counts in the list."""
TOLERANCE = 0.2
"""The load counts as even if each host's number of sessions differs from the mean by at most this fraction of the mean.
"""


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
        """This host in the list of hosts; None if the storage has not registered this host yet."""

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
        self._until = anyio.current_time() + REFRESH_INTERVAL

    async def choose(self, below: float | None = None) -> Host | None:
        """Return the host with the fewest sessions, and count one more session for that host.

        Return None if there is no host. Call `finish` after the movement.

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
        timeout: Seconds to wait for the turn of a session before the turn is cancelled.
        rate: Maximum number of sessions per second.

    Only hosts with fewer sessions than the attribute `below` receive sessions; if there is no such host, the session
    stays. If `below` is None, every other host receives sessions; if there is no other host, the session is released.
    """

    below: float | None = None

    def __init__(
        self, host: SessionHost, registry: SessionRegistry, timeout: float, rate: float = inf
    ) -> None:
        self._host, self._registry, self._timeout = host, registry, timeout
        self._pause, self._due = 1 / rate, 0.0
        self._slots = anyio.Semaphore(MAX_CONCURRENT)
        self.others: OtherHosts = OtherHosts(host)
        self._handed_over, self._released = list[str](), list[str]()

    @property
    def movement(self) -> Movement:
        """The sessions that were moved, and the sessions that are still open on this host."""
        return Movement(tuple(self._handed_over), tuple(self._released), tuple(self._registry.open))

    async def hand_over(self, session: Session, address: str) -> None:
        """Hand an open session over to the host at an address. See `Runtime.hand_over`."""
        await self.others.refresh()
        found = [other for other in self.others.all if other.address == address]
        if not found:
            addresses = ", ".join(sorted(other.address for other in self.others.all)) or "none"
            raise HostUnavailable(
                f"Session {session.id!r} stays on this host: no other host serves at {address!r}; "
                f"serving addresses: {addresses}"
            )
        await departure.hand_over(
            session._lifecycle, max(found, key=lambda other: other.remaining_lease or 0.0), self._timeout
        )

    async def drain(self) -> Movement:
        """Move all sessions, and accept no more sessions. See `Runtime.drain`."""
        host, registry = self._host, self._registry
        _check_not_in_call(host)
        host.state = "draining"
        await host.journal.ask(RenewLease(status=host.status))
        if not host.is_durable:
            return self.movement
        for _ in range(PASSES):
            with anyio.move_on_after(self._timeout):
                await registry.wait_settled()
            if not registry.open:
                break
            await self.move(_first_to_move(registry))
        async with aclosing(self.unopened()) as pages:
            async for page in pages:
                await self.move_unopened(page)
        return self.movement

    async def rebalance(self, limit: int) -> Movement:
        """Move at most `limit` idle sessions to hosts with fewer sessions. See `Runtime.rebalance`."""
        await self.others.refresh()
        own, others = self.others.own, self.others.all
        if own is None or not others or own.state == "draining":
            return self.movement
        mean = (own.sessions + sum(other.sessions for other in others)) / (len(others) + 1)
        if any(abs(each.sessions - mean) > TOLERANCE * mean for each in (own, *others)):
            self.below = mean
            await self._move_idle(min(own.sessions - ceil(mean), int(limit)))
        return self.movement

    async def _move_idle(self, limit: int) -> None:
        """Move at most `limit` sessions: first unopened sessions, then idle open sessions."""
        async with aclosing(self.unopened()) as pages:
            async for page in pages:
                if limit <= 0:
                    break
                await self.move_unopened(page[:limit])
                limit -= len(page[:limit])
        idle = _idle_sessions(self._host, self._registry)
        await self.move(idle[: max(0, limit)])

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
        """Hand a session over to the host with the fewest sessions.

        If there is no host to choose, release the session, or keep it if `below` is set.

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
    parents = [name for name, session in registry.open.items() if session._lifecycle.parent_call is None]
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
    is_used = lifecycle.busy or lifecycle.runs_tools or lifecycle.name in lifecycle.host.readers.subscribers
    return not is_used and lifecycle.parent_call is None
