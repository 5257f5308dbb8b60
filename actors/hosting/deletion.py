"""Deletion of a session: which logs go with its own: those of its subagents, and of theirs.

A log names its calls, and the id of a subagent follows from its call. Its first event says whom it was opened for, so a
session that a program gave such an id is left alone.
"""

from contextlib import suppress
from itertools import count

import anyio

from actors.core.below import calls_begun, name_below, split_below
from actors.core.events import Event, Opened
from actors.errors import ActorsError, JournalDamaged, JournalError, SessionExists
from actors.journal import ClaimSession, DeleteLog, FindSession, JournalCommand, ReadLog, ReleaseSession
from actors.kernel import Ref
from actors.storage import Claim

Log = list[Event]


async def delete_logs(journal: Ref[JournalCommand], session: str, last: int | None = None) -> list[str]:
    """Delete the logs of a session and of all below it; return their sessions.

    The session is claimed first, so nothing is deleted if another host has it. The lowest goes first, so logs that
    could not be deleted are found again. If a log cannot be read, those below it are not found.

    Args:
        journal: Where.
        session: Whose.
        last: The number of its last event, if it is to be deleted only where nothing has been written behind that.

    Raises:
        SessionElsewhere: Another host has it, or one below it.
        SessionExists: Something was written since.
        JournalError: A log cannot be deleted.
    """
    claim: Claim = await journal.ask(ClaimSession(session, existing=True))
    try:
        if last is not None and claim.last != last:
            raise SessionExists(f"Session {session!r} was used meanwhile")
        found = await with_subagents(journal, session, await _read(journal, session))
        names = [name for name, _ in reversed(found)]
        for name in names:
            await journal.ask(DeleteLog(name))
    except BaseException:
        if claim.fence:
            with anyio.CancelScope(shield=True), suppress(ActorsError):
                await journal.ask(ReleaseSession(session, claim.fence))
        raise
    return [name for name in names if name != session or claim.last]


async def existing_logs(journal: Ref[JournalCommand], session: str) -> list[str]:
    """Return a session and all below it, if it has a log."""
    with suppress(JournalDamaged):  # such a log is deleted too
        if await journal.ask(FindSession(session)) is None:
            return []
    return [name for name, _ in await with_subagents(journal, session, await _read(journal, session))]


async def goes_with(journal: Ref[JournalCommand], session: str) -> str | None:
    """Return the session that this one goes with: the one for a call of which it was opened, if that has a log."""
    beginning, behind = split_below(session)
    if not behind:
        return None
    log = await _read(journal, session)
    if not log or not isinstance(opened := log[0], Opened) or not opened.above:
        return None
    above = await _read(journal, beginning)
    is_there = above and isinstance(first := above[0], Opened) and first.key == opened.above
    return beginning if is_there else None


async def with_subagents(journal: Ref[JournalCommand], session: str, log: Log) -> list[tuple[str, Log]]:
    """Return a session and all below it, each with its log, each ahead of what is below it."""
    found, waiting = list[tuple[str, Log]](), [(session, log)]
    while waiting:
        found.append(waiting.pop())
        waiting += reversed(await _below(journal, *found[-1]))
    return found


async def _below(journal: Ref[JournalCommand], session: str, log: Log) -> list[tuple[str, Log]]:
    if not log or not isinstance(opened := log[0], Opened):
        return []
    found = []
    for call_id in calls_begun(log):
        for number in count(1):
            name = name_below(session, call_id, number)
            if not (below := await _read(journal, name)):
                break
            if isinstance(first := below[0], Opened) and first.above == opened.key:
                found.append((name, below))
    return found


async def _read(journal: Ref[JournalCommand], session: str) -> Log:
    with suppress(JournalError):
        return await journal.ask(ReadLog(session))
    return []
