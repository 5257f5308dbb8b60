"""Claim sessions in the journal, and read and check the logs of claimed sessions.

A claim gives one host the exclusive right to write a session's log. While a claim is held, no other host can claim the
session as long as this host lives. So a claim that is not passed on to a started session is released. The journal makes
a claim even if the caller has been cancelled and does not receive the answer. So the journal's task passes each new
claim to the caller's `_PendingClaim`, which releases the claim if the caller has been cancelled.

The log of a resumed session is read and checked only after the claim, when no other host can write to it. If the log
ends with an interrupted turn, the session's actors close the turn and its calls (`actors.session.child_tasks`).
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import copy_context
from typing import Any

import anyio
from msgspec import Struct

from actors.core.log.events import Closed, LogEvent, Opened
from actors.core.session.open_asks import needs_recovery
from actors.core.session.state import SessionState
from actors.core.values.content import Message
from actors.core.values.packed import pack
from actors.errors import (
    ActorsError,
    ConfigError,
    JournalDamaged,
    SessionClosed,
    SessionClosedForGood,
    SessionExists,
    SessionLeased,
    SessionUnknown,
    ShuttingDown,
)
from actors.journal.commands import Append, ClaimSession, DeleteLog, JournalCommand, ReadLog
from actors.journal.log import Replay, read_replay
from actors.journal.pages import ReadThrottle, read_log
from actors.journal.storage import Claim
from actors.kernel import Ref
from actors.runtime.registry import SessionRegistry
from actors.runtime.session_host import SessionHost
from actors.session.output import Output, output_of
from actors.session.pending import PendingAsks, Submit
from actors.session.streams import AnswerSink

POLL = 0.1
"""Seconds between two attempts to claim a session that another host has."""


class _PendingClaim(Struct):
    """A claim that a caller has requested. `is_abandoned` is set if the caller no longer waits for the claim."""

    host: SessionHost
    session: str
    claim: Claim | None = None
    is_abandoned: bool = False

    def set_claim(self, claim: Claim) -> None:
        """Store the claim once the journal has made it. If the caller no longer waits, release it."""
        self.claim = claim
        if self.is_abandoned:
            self._release()

    def abandon(self) -> None:
        """Release the claim, now or as soon as the journal has made it."""
        self.is_abandoned = True
        self._release()

    def _release(self) -> None:
        if (
            self.claim is not None and self.claim.fence
        ):  # `fence` is 0 if nothing was claimed, because there is no log
            self.host.release(self.session, self.claim.fence)


async def claim_session(host: SessionHost, session: str, *, existing: bool = False) -> Claim:
    """Claim a session for the caller, which must release it. If the caller is cancelled, the host releases it.

    Args:
        host: The host that claims the session.
        session: Id of the session.
        existing: True to claim the session only if it has a log. If it has none, the `last` of the returned claim is 0,
            and the claim need not be released.

    Raises:
        SessionLeased: Another host has claimed the session.
        JournalError: The session cannot be claimed.
    """
    pending = _PendingClaim(host, session)
    try:
        return await host.journal.ask(ClaimSession(session, existing, pending.set_claim))
    except BaseException:
        pending.abandon()
        raise


async def claim_existing(host: SessionHost, session: str, wait: float) -> Claim:
    """Claim a session that has a log. Wait up to `wait` seconds for another host to release it.

    Raises:
        SessionLeased: Another host still has the session.
        JournalError: The session cannot be claimed.
    """
    until = anyio.current_time() + wait
    while True:
        try:
            return await claim_session(host, session, existing=True)
        except SessionLeased:
            if (left := until - anyio.current_time()) <= 0:
                raise
        await anyio.sleep(min(POLL, left))


class Claims:
    """The session ids that a caller has reserved and claimed, and the logs that the caller has written.

    A session that starts takes over its claim (`hand_over`). If the `claiming` block raises an error, the logs of
    sessions that have not started are deleted.

    Args:
        host: Claims the sessions and writes the logs.
        registry: Reserves the ids.
    """

    def __init__(self, host: SessionHost, registry: SessionRegistry) -> None:
        self._host, self._registry = host, registry
        self._reserved: list[str] = []
        self._fences: dict[str, int] = {}
        self.written: list[str] = []

    async def claim_new(self, requested_id: str | None) -> str:
        """Reserve and claim an id that has no log, and return it. Without a `requested_id`, generate one.

        Raises:
            SessionExists: The given id has a log, or the session is open.
            SessionLeased: Another host has claimed the given id.
            JournalError: The session cannot be claimed.
        """
        while True:
            name = self._reserve(requested_id)
            try:
                last = (await self._claim(name)).last
            except SessionLeased:
                if requested_id is not None:
                    raise
                last = 1  # another host uses the generated id, so generate another one
            if not last:
                return name
            if requested_id is not None:
                raise SessionExists(
                    f"Session {name!r} already has a log; pass resume=True to resume it, or use another id"
                )
            self._release(name)
            self._registry.change_suffix()

    async def claim_existing(self, requested_id: str, wait: float) -> str:
        """Reserve and claim a session that has a log. Wait up to `wait` seconds for another host to release it.

        Raises:
            SessionUnknown: The session has no log.
            SessionLeased: Another host still has the session.
            JournalError: The session cannot be claimed.
        """
        name = self._reserve(requested_id)
        claim = await claim_existing(self._host, name, wait)
        self._fences[name] = claim.fence
        if not claim.last:
            raise unknown_session_error(name)
        return name

    async def claim_any(self, requested_id: str) -> bool:
        """Reserve and claim a session. Return True if it has a log.

        A journal in memory first deletes the log of a session that has ended.
        """
        name = self._reserve(requested_id)
        claim = await self._claim(name)
        if claim.last and not self._host.is_durable and await _has_closed(self._host, name, claim.last):
            await self._host.journal.ask(DeleteLog(name))
            claim = await self._claim(name)
        return bool(claim.last)

    async def write(self, name: str, log: Sequence[LogEvent]) -> None:
        """Append the first events to a claimed session's log. Raises `JournalError` if they cannot be written."""
        self.written.append(name)
        await self._host.journal.ask(Append(name, self._fences[name], tuple(log)))

    def hand_over(self, name: str) -> int:
        """Pass a claim and its log to a session that is starting. Return the fencing number of the claim."""
        if name in self.written:
            self.written.remove(name)
        return self._fences.pop(name)

    async def roll_back(self) -> None:
        """Delete the written logs, then release all claims and ids."""
        for name in self.written:
            with suppress(ActorsError):
                await self._host.journal.ask(DeleteLog(name))
        self.release()

    def release(self) -> None:
        """Release all claims and ids."""
        for name in tuple(self._reserved):
            self._release(name)

    def _reserve(self, requested_id: str | None) -> str:
        """Reserve an id, and add it to the ids that `release` frees. Without a `requested_id`, generate one."""
        name = self._registry.reserve(requested_id)
        self._reserved.append(name)
        return name

    async def _claim(self, name: str) -> Claim:
        """Claim a reserved id, and store the claim's fencing number for later writes."""
        claim = await claim_session(self._host, name)
        self._fences[name] = claim.fence
        return claim

    def _release(self, name: str) -> None:
        """Release one id and its claim."""
        self._reserved.remove(name)
        self._registry.free(name)
        if fence := self._fences.pop(name, 0):
            self._host.release(name, fence)


@asynccontextmanager
async def claiming(host: SessionHost, registry: SessionRegistry) -> AsyncGenerator[Claims]:
    """Provide the `Claims` of a caller. If the `with` block raises an error, delete the logs that the block wrote.

    A cancelled caller does not wait for the deletion.
    """
    claims = Claims(host, registry)
    try:
        yield claims
    except BaseException as error:
        if not claims.written:
            claims.release()
        elif isinstance(error, Exception):
            with suppress(ShuttingDown):  # the caller receives the error that the block raised
                await host.carry_out(claims.roll_back, "claims")
        else:
            host.start(claims.roll_back, "claims")
        raise
    claims.release()


async def _has_closed(host: SessionHost, name: str, last_seq: int) -> bool:
    """Return True if a log's last event, which has the number `last_seq`, is `closed`."""
    page = await host.journal.ask(ReadLog(name, last_seq - 1, urgent=True))
    return bool(page.events) and isinstance(page.events[-1], Closed)


def unknown_session_error(session: str) -> SessionUnknown:
    """Return the error for a session that has no log."""
    return SessionUnknown(
        f"No session {session[:80]!r} has a log in this journal; open it, or name another journal"
    )


async def read_events(journal: Ref[JournalCommand], session: str, throttle: ReadThrottle) -> list[LogEvent]:
    """Return all events of a session's log, in order. Reading pauses while writes are pending.

    Raises:
        SessionUnknown: The session has no log.
        JournalError: The log cannot be read.
    """
    events = await read_log(journal, session, throttle=throttle)
    if not events:
        raise unknown_session_error(session)
    return events


async def resumable_replay(host: SessionHost, session: str) -> tuple[Opened, Replay]:
    """Return the first event and the replay of a claimed session's log.

    Raises:
        SessionUnknown: The session has no log.
        JournalDamaged: The first event of the log is not `opened`.
        SessionClosedForGood: The session was closed for good.
        JournalError: The log cannot be read.
    """
    replay = await read_replay(host.journal, session, host.backends.rules)
    if not replay.seq:
        raise unknown_session_error(session)
    if replay.opened is None:
        raise JournalDamaged(
            f"The log of session {session!r} does not begin with an 'opened' event", session=session, number=1
        )
    if replay.state.closed:
        raise SessionClosedForGood(
            f"Session {session!r} was closed and cannot be resumed; fork it, or open another session"
        )
    return replay.opened, replay


def awaited_output(state: SessionState, output: Any) -> Output[Any] | None:  # Any: any type, or a JSON Schema
    """Return the output type of a paused ask, from the argument `output=`.

    Without `output=`, or if no ask waits, return None.

    Raises:
        ConfigError: The waiting ask has a different schema.
    """
    if output is None or state.pause is None:
        return None
    form = output_of(output)
    if state.asked is None or state.asked.output != form.schema:
        raise ConfigError(
            "output= differs from the output type of the waiting ask; pass the same type or omit output="
        )
    return form


def unfinished_asks(
    replay: Replay, output: Output[Any] | None, max_queued: int
) -> tuple[PendingAsks | None, AnswerSink | None]:  # Any: any answer type
    """Return the pending asks of a resumed session, and the sink that receives the result of its interrupted ask.

    The interrupted ask ends as if the session's actors had crashed during the ask. If no ask was interrupted, the sink
    is None. If, in addition, `output` is None, the pending asks are None as well.

    Args:
        replay: The state, ledger and lanes rebuilt from the log.
        output: The output type of the waiting or interrupted ask.
        max_queued: Maximum number of queued asks.
    """
    if not needs_recovery(replay.state):
        return None if output is None else PendingAsks(max_queued, output_type=output), None
    name = replay.state.session
    sink = AnswerSink(lambda: SessionClosed(f"Session {name!r} could not be resumed: it crashed"))
    lost = Submit(pack(Message("user")), sink, copy_context())
    return PendingAsks(max_queued, current=lost, output_type=output), sink
