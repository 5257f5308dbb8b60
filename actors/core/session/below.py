"""What sessions that are opened for calls are called: the id of the session above, the call, and a number."""

import re
from collections.abc import Sequence

from actors.core.log.events import LogEvent, Started
from actors.core.values.identity import CallId, number_of

LONGEST_ID = 64
"""Characters of a session's id."""
_BEHIND = re.compile(r"(-c\d+)(?:-\d+)?$")


def name_below(session: str, call_id: CallId, number: int) -> str:
    """Return the id of a call's session of that number, from 1; the first has no number in it."""
    return joined_below(session, f"-c{number_of(call_id)}", number)


def joined_below(session: str, call: str, number: int) -> str:
    """Return the same, of a call as an id says it."""
    behind = call + (f"-{number}" if number > 1 else "")
    return session[: LONGEST_ID - len(behind)] + behind


def split_below(session: str) -> tuple[str, str]:
    """Return what an id begins with, and what it says of a call; nothing if it says nothing."""
    found = _BEHIND.search(session)
    return (session, "") if found is None else (session[: found.start()], found[1])


def calls_begun(log: Sequence[LogEvent]) -> tuple[CallId, ...]:
    """Return the calls of a log that may have opened sessions."""
    return tuple(dict.fromkeys(event.call_id for event in log if isinstance(event, Started)))
