"""Delete the log of a session together with the logs of all its direct and indirect subagents.

A session's log contains the session's tool calls, and the ids of the subagents are derived from these calls. The first
event of a subagent's log contains the key of the parent session. A session whose id only looks like that of a subagent
is not deleted, because a program may have chosen the id.

Sessions that are open in this runtime are closed first. Their ids are reserved in the meantime, so that no caller opens
the sessions.
"""

from collections.abc import Awaitable, Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, count
from typing import TypeAlias

import anyio
from msgspec import Struct

from actors.core.log.events import LogEvent, Opened
from actors.core.session.state import split_id, started_calls, subagent_id
from actors.core.values.identity import CallId
from actors.errors import (
    ActorsError,
    JournalDamaged,
    JournalError,
    JournalUnavailable,
    ReentrantCall,
    SessionExists,
    SessionLeased,
)
from actors.journal.commands import (
    ClaimSession,
    DeleteLog,
    FindSession,
    JournalCommand,
    ReadLog,
    ReleaseSession,
)
from actors.journal.pages import LogPages, ReadThrottle
from actors.journal.storage import Claim
from actors.journal.storage.directory import StoredSession
from actors.kernel import Ref
from actors.runtime.registry import SessionRegistry
from actors.runtime.session_host import SessionHost
from actors.scheduler.executor import is_called_from_tool
from actors.telemetry import logger

OnEvents: TypeAlias = Callable[[str, Sequence[LogEvent]], Awaitable[None]]
"""Called with the id of a session and the events of one page of its log."""


async def was_used_before(journal: Ref[JournalCommand], session: str, time: float) -> bool:
    """Return True if a session was last used before `time` (seconds since 1970), or has no entry in the journal."""
    entry = await journal.ask(FindSession(session))
    return entry is None or entry.used < time


async def delete_logs(journal: Ref[JournalCommand], session: str, throttle: ReadThrottle) -> list[str]:
    """Delete the logs of a session and all its subagents; return their ids.

    The session is claimed first, so nothing is deleted if another host has claimed it. Subagents are deleted before
    their parents, so that a later call can still find logs that could not be deleted. If a log cannot be read, the
    subagents of its session are not found.

    Args:
        journal: The journal actor.
        session: Id of the session.
        throttle: Makes the search for subagents pause while writes are pending.

    Raises:
        SessionLeased: Another host has claimed the session or one of its subagents.
        JournalError: A log cannot be deleted.
    """
    claim: Claim = await journal.ask(ClaimSession(session, existing=True))
    try:
        names = [branch.name for branch in reversed(await read_with_subagents(journal, session, throttle))]
        for name in names:
            await journal.ask(DeleteLog(name))
    except BaseException:
        if claim.fence:
            with anyio.CancelScope(shield=True), suppress(ActorsError):
                await journal.ask(ReleaseSession(session, claim.fence))
        raise
    return [name for name in names if name != session or claim.last]


async def delete_unused(
    journal: Ref[JournalCommand],
    sessions: Mapping[str, int],
    reserve: Callable[[Sequence[str]], bool],
    throttle: ReadThrottle,
) -> list[str]:
    """Delete the logs of many sessions, with their subagents, in one transaction; return the deleted ids.

    A session is kept if one of its subagents is in use in this runtime, if another host has claimed it, or if it was
    used since it was listed. If the transaction fails, each session is deleted in a separate transaction, and failures
    are logged.

    Args:
        journal: The journal actor.
        sessions: Maps the id of each session to the number that its last event had when the session was listed.
        reserve: Reserves ids in this runtime, so that the sessions are not opened. Returns False, and reserves nothing,
            if one of the ids is in use.
        throttle: Makes the search for subagents pause while writes are pending.

    Raises:
        JournalUnavailable: The journal cannot be written.
        KernelError: The journal has ended.
    """
    claims, deleted = await _claim_unused(journal, sessions), list[str]()
    try:
        found = [
            [branch.name for branch in reversed(await read_with_subagents(journal, each, throttle))]
            for each in claims
        ]
        below = [names for names in found if reserve(names)]
        if not below:
            return deleted
        try:
            deleted += await _delete_logs(journal, list(chain.from_iterable(below)))
        except JournalUnavailable:
            raise
        except (SessionLeased, JournalError):
            for names in below:
                with _logging_failure():
                    deleted += await _delete_logs(journal, names)
    finally:
        await _release_claims(journal, {each: claim for each, claim in claims.items() if each not in deleted})
    return deleted


async def _delete_logs(journal: Ref[JournalCommand], names: Sequence[str]) -> Sequence[str]:
    """Delete the logs of these sessions in one transaction, and return the ids."""
    await journal.ask(DeleteLog(names[0], tuple(names[1:])))
    return names


async def _claim_unused(journal: Ref[JournalCommand], sessions: Mapping[str, int]) -> dict[str, Claim]:
    """Claim these sessions concurrently, and return the claims.

    Sessions that another host has claimed, or that were used since they were listed, are skipped.
    """
    claims, failures = dict[str, Claim](), list[ActorsError]()

    async def claim(session: str) -> None:
        try:
            with _logging_failure():
                claims[session] = await journal.ask(ClaimSession(session, existing=True))
        except ActorsError as error:  # not raised here, because a task group would wrap it
            failures.append(error)

    async with anyio.create_task_group() as claiming:
        for session in sessions:
            claiming.start_soon(claim, session)
    unused = {each: claim for each, claim in claims.items() if claim.last == sessions[each] and not failures}
    await _release_claims(journal, {each: claim for each, claim in claims.items() if each not in unused})
    if failures:
        raise failures[0]
    return unused


async def _release_claims(journal: Ref[JournalCommand], claims: Mapping[str, Claim]) -> None:
    """Release the claims of sessions that still exist, even if the caller is cancelled."""
    with anyio.CancelScope(shield=True), suppress(ActorsError):
        for session, claim in claims.items():
            if claim.fence:
                await journal.ask(ReleaseSession(session, claim.fence))


@contextmanager
def _logging_failure() -> Generator[None]:
    """Log and suppress errors of the `with` block that concern a single session.

    A `SessionLeased` error is suppressed without a log entry. A `JournalUnavailable` error concerns all sessions, so it
    is raised again.
    """
    try:
        yield
    except JournalUnavailable:
        raise
    except SessionLeased:
        pass
    except JournalError as error:
        logger.retention_failed(error)


async def ids_with_subagents(journal: Ref[JournalCommand], session: str, throttle: ReadThrottle) -> list[str]:
    """Return the ids of a session and all its subagents, or an empty list if the session has no log."""
    with suppress(JournalDamaged):  # a session can be deleted even if its entry is damaged
        if await journal.ask(FindSession(session)) is None:
            return []
    return [branch.name for branch in await read_with_subagents(journal, session, throttle)]


async def existing_parent(journal: Ref[JournalCommand], session: str) -> str | None:
    """Return the id of a subagent's parent.

    Return None if the parent has no log, or if the session is not a subagent.
    """
    beginning, behind = split_id(session)
    if not behind:
        return None
    opened = await _opening_event(journal, session)
    if opened is None or not opened.parent_key:
        return None
    above = await _opening_event(journal, beginning)
    return beginning if above is not None and above.key == opened.parent_key else None


class Branch(Struct, frozen=True):
    """The values from a session's log that are needed to find its subagents.

    Args:
        name: Id of the session.
        last: Number of the last readable event of its log; 0 if there is no log.
        key: The session's key, which the logs of its subagents contain as their parent's key.
        calls: The calls that may have opened subagents.
    """

    name: str
    last: int
    key: str
    calls: tuple[CallId, ...]


async def read_with_subagents(
    journal: Ref[JournalCommand],
    session: str,
    throttle: ReadThrottle,
    on_events: OnEvents | None = None,
) -> list[Branch]:
    """Read the logs of a session and all its direct and indirect subagents. Each session precedes its subagents.

    `on_events` is called with the id and the events of each session, page by page. Without `on_events`, a session whose
    log cannot be read counts as having no subagents.

    Raises:
        JournalError: With `on_events`, a log cannot be read.
    """
    found, waiting = list[Branch](), [session]
    while waiting:
        found.append(branch := await _read_branch(journal, waiting.pop(), throttle, on_events))
        waiting += reversed(await _subagent_ids(journal, branch))
    return found


async def _subagent_ids(journal: Ref[JournalCommand], branch: Branch) -> list[str]:
    """Return the ids of the subagents that a session's calls opened.

    The subagents of a call are numbered, so ids are tried in order until one has no log.
    """
    found: list[str] = []
    for call_id in branch.calls:
        for number in count(1):
            name = subagent_id(branch.name, call_id, number)
            if (opened := await _opening_event(journal, name)) is None:
                break
            if opened.parent_key == branch.key:
                found.append(name)
    return found


async def _read_branch(
    journal: Ref[JournalCommand], session: str, throttle: ReadThrottle, on_events: OnEvents | None
) -> Branch:
    """Read a session's log page by page, and return the values that are needed to find its subagents."""
    last, key, calls = 0, "", dict[CallId, None]()
    try:
        async for page in LogPages(journal, session, throttle=throttle):
            if on_events is not None:
                await on_events(session, page.events)
            if not page.after and isinstance(opened := page.events[0], Opened):
                key = opened.key
            last = page.end
            calls.update(dict.fromkeys(started_calls(page.events)))
    except JournalError:
        if on_events is not None:
            raise
        calls.clear()
    return Branch(session, last, key, tuple(calls))


async def _opening_event(journal: Ref[JournalCommand], session: str) -> Opened | None:
    """Return the first event of a log; None if there is no log, or if it is unreadable."""
    with suppress(JournalError):
        page = await journal.ask(ReadLog(session, limit=1))
        if page.events and isinstance(opened := page.events[0], Opened):
            return opened
    return None


class SessionRemoval:
    """Deletes sessions of a host, including open sessions.

    Args:
        host: The host of the sessions.
        registry: The session ids that are in use.
        on_deleted: Called with the ids of deleted sessions, even if the caller is cancelled.
    """

    def __init__(
        self,
        host: SessionHost,
        registry: SessionRegistry,
        on_deleted: Callable[[Collection[str]], None],
    ) -> None:
        self._host, self._registry, self._on_deleted = host, registry, on_deleted

    async def delete(self, name: str, before: float | None) -> Collection[str]:
        """Close a session, delete its log and the logs of its subagents, and return the deleted ids.

        With `before`, a session that was used at or after this time (in seconds since 1970) is kept. See
        `JournalAdmin.delete`.
        """
        host, registry = self._host, self._registry
        if is_called_from_tool(host.system, name):
            raise ReentrantCall(
                f"A tool of session {name!r} cannot delete that session, because the deletion waits for the tool; "
                "delete it when the ask has ended"
            )
        if registry.is_reserved(name):
            raise SessionExists(f"Session {name!r} is being opened or deleted by another caller; try again")
        registry.reserve_for_deletion(name)
        deleted: list[str] = []

        async def delete_session() -> None:
            try:
                if before is not None and not await was_used_before(host.journal, name, before):
                    return
                if (session := registry.open.get(name)) is not None:
                    await session._lifecycle.close()
                deleted.extend(await delete_logs(host.journal, name, host.readers.throttle))
                self._on_deleted(deleted)
            finally:
                registry.free(name)

        await host.carry_out(delete_session, f"{name}/delete")
        return deleted

    async def delete_unused(self, stored: Iterable[StoredSession]) -> Collection[str]:
        """Delete the logs of listed sessions and their subagents, and return the deleted ids.

        A session is kept if it is open in this runtime, or was used after it was listed.
        """
        host, registry = self._host, self._registry
        names = {each.id: each.events for each in stored if not registry.is_taken(each.id)}
        registry.reserve_for_deletion(*names)
        held, deleted = {*names}, list[str]()

        def reserve(ids: Sequence[str]) -> bool:
            below = {*ids} - held
            if any(map(registry.is_taken, below)):
                return False
            registry.reserve_for_deletion(*below)
            held.update(below)
            return True

        async def delete_sessions() -> None:
            try:
                deleted.extend(await delete_unused(host.journal, names, reserve, host.readers.throttle))
                self._on_deleted(deleted)
            finally:
                registry.free(*held)

        await host.carry_out(delete_sessions, "journal/retention/delete")
        return deleted
