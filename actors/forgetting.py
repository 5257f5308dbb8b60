"""Forgetting: which logs go with a session's own: those of its subagents, and of theirs.

A log names its calls, and the id of a subagent follows from its call. Its first event says whom it was opened for, so a
session that a program gave such an id is left alone.
"""

from contextlib import suppress
from itertools import count

from actors.children import Above
from actors.core.events import Event, Opened, Started
from actors.errors import JournalError
from actors.journal import Erase, JournalCommand, ReadLog
from actors.kernel import Ref

Log = list[Event]


async def erased(journal: Ref[JournalCommand], session: str) -> list[str]:
    """Erase the logs of a session and of all below it; return whose.

    The lowest goes first, so what could not be erased is found again. Of a log that cannot be read, nothing below is.

    Raises:
        JournalError: A log cannot be erased.
    """
    names = await _with_subagents(journal, session)
    for name in names:
        await journal.ask(Erase(name))
    return names


async def _with_subagents(journal: Ref[JournalCommand], session: str) -> list[str]:
    found, waiting = list[str](), [(session, await _read(journal, session))]
    while waiting:
        name, log = waiting.pop()
        found.append(name)
        waiting += await _below(journal, name, log)
    return found[::-1]


async def _below(journal: Ref[JournalCommand], session: str, log: Log) -> list[tuple[str, Log]]:
    if not log or not isinstance(opened := log[0], Opened):
        return []
    found = []
    for call_id in dict.fromkeys(event.call_id for event in log if isinstance(event, Started)):
        above = Above(session, call_id, 0)
        for number in count(1):
            name = above.named(number)
            if not (below := await _read(journal, name)):
                break
            if isinstance(first := below[0], Opened) and first.above == opened.key:
                found.append((name, below))
    return found


async def _read(journal: Ref[JournalCommand], session: str) -> Log:
    with suppress(JournalError):
        return await journal.ask(ReadLog(session))
    return []
