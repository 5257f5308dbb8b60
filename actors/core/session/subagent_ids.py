"""Build and parse the ids of subagent sessions: the parent's id, the call, and a number.

The scheduler names the sessions that tools open; deletion finds them again by these ids.
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
    """Return the id of the `number`th session that a call opens, from 1. The first id omits the number."""
    return build_id(session, f"-c{number_of(call_id)}", number)


def build_id(session: str, call: str, number: int) -> str:
    """Return the id for a call in the form that `split_id` returns (`-c7`). A long parent id is truncated."""
    suffix = call + (f"-{number}" if number > 1 else "")
    return session[: LONGEST_ID - len(suffix)] + suffix


def split_id(session: str) -> tuple[str, str]:
    """Return the prefix of an id and its call (`-c7`); the call is empty if the id is not a subagent's."""
    found = _SUFFIX.search(session)
    return (session, "") if found is None else (session[: found.start()], found[1])


def started_calls(log: Sequence[LogEvent]) -> tuple[CallId, ...]:
    """Return the calls that started, each once. Only they may have opened sessions."""
    return tuple(dict.fromkeys(event.call_id for event in log if isinstance(event, Started)))
