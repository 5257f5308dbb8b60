"""Build and parse the session ids of subagents: the parent's id, the call, and a number.

The scheduler uses these ids for the sessions that tools open. Deleting a session finds its subagents by these ids.
"""

import re
from collections.abc import Sequence

from actors.core.log.call_events import Started
from actors.core.log.events import LogEvent
from actors.core.values.identity import CallId, number_of

LONGEST_ID = 64
"""The maximum length of a session id, in characters."""
_SUFFIX = re.compile(r"(-c\d+)(?:-\d+)?$")


def subagent_id(session: str, call_id: CallId, number: int) -> str:
    """Return the id of the `number`th session that a call opens, counted from 1. The first id omits the number."""
    return build_id(session, f"-c{number_of(call_id)}", number)


def build_id(session: str, call: str, number: int) -> str:
    """Return a subagent's id, given the parent's id and a call such as `-c7`. A long parent id is truncated."""
    suffix = call + (f"-{number}" if number > 1 else "")
    return session[: LONGEST_ID - len(suffix)] + suffix


def split_id(session: str) -> tuple[str, str]:
    """Split a subagent's id into its parent's part and its call, such as `-c7`. The call is empty for any other id."""
    found = _SUFFIX.search(session)
    return (session, "") if found is None else (session[: found.start()], found[1])


def started_calls(log: Sequence[LogEvent]) -> tuple[CallId, ...]:
    """Return the ids of the calls that started, without repetitions. Other calls cannot have opened a session."""
    return tuple(dict.fromkeys(event.call_id for event in log if isinstance(event, Started)))
