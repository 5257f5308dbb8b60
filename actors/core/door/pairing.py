"""Which call a result answers, where ids repeat: the nearest earlier unanswered one.

Nearest is the last message that made an unanswered call of that id; among the calls of one message, results come
in call order. Several backends give parallel calls the same id, so the order is all there is.
"""

from collections import deque

from actors.core.identity import CallId


class Unanswered:
    """The calls that wait for a result, by id. Read a history from its oldest message on."""

    def __init__(self) -> None:
        self._waiting: dict[
            CallId, dict[int, deque[CallId]]
        ] = {}  # by id, then by message, the last one last
        self._message = 0

    def next_message(self) -> None:
        """Note that the calls to come are another message's."""
        self._message += 1

    def add(self, key: CallId, call: CallId) -> None:
        self._waiting.setdefault(key, {}).setdefault(self._message, deque()).append(call)

    def take(self, key: CallId) -> CallId | None:
        """Return the call that a result of this id answers, which waits no longer; None if none does."""
        groups = self._waiting.get(key)
        if not groups:
            return None
        message, calls = groups.popitem()
        call = calls.popleft()
        if calls:
            groups[message] = calls
        return call
