"""Generate the ledger of a conversation: empty, correct, incomplete, with additional calls, or contradictory.

A ledger may also have calls that are missing in the conversation, seals, results that arrived after their seal, and
results that differ from the results in the conversation.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from actors.core.data.jsonio import Json, quote
from actors.core.history.history import History
from actors.core.ledger import Ledger
from actors.core.log.call_events import (
    CallEvent,
    Cancelled,
    Denied,
    Failed,
    Reason,
    Refused,
    Returned,
    Scheduled,
    Started,
)
from actors.core.log.events import RequestSent
from actors.core.values.content import Message, ToolCall, ToolResult
from actors.core.values.identity import Binding, CallId
from tests.generated.parts import REASONS

Draw: TypeAlias = Callable[[int], int]
"""A function from n to a choice from 0 to n - 1."""

ELSEWHERE = Binding("openai", "openai_chat", "https://openai.example/v1", "account-1", "gpt-test")
"""Bindings of the requests that sealed calls."""


class LedgerAuthor:
    """Writes a ledger that matches a conversation more or less.

    Args:
        draw: StoredAskSettings for every choice.
        said: The conversation.
        calls: Its calls, by id.
        orphans: Ids of its results without a call.
        given: The first real result it gives each id.
        mark: Gives words that no other result holds.
    """

    def __init__(
        self,
        draw: Draw,
        said: Sequence[Message],
        calls: Mapping[str, ToolCall],
        orphans: Iterable[str],
        given: Mapping[str, ToolResult],
        mark: Callable[[], str],
    ) -> None:
        self._draw = draw
        self._said = said
        self._calls = calls
        self._orphans = orphans
        self._given = given
        self._mark = mark
        self._ledger = Ledger()

    def ledger(self) -> Ledger:
        """Return the ledger: empty, recovered from the conversation, or invented call by call."""
        match self._draw(5):
            case 0:
                return self._ledger
            case 1:
                return History(self._said).ledger
            case _:
                known = dict.fromkeys([*self._calls, *self._orphans, f"gone_{self._draw(4)}"])
                for call_id in known:
                    self._account(CallId(call_id))
                return self._ledger

    def _account(self, call_id: CallId) -> None:
        """Enter one call: not at all, correctly, or with different content."""
        match self._draw(9):
            case 0 | 1 | 2:
                self._know(call_id, self._truth(call_id))
            case 3:
                self._know(call_id, (Started(call_id),) if self._draw(2) else ())
            case 4:
                self._know(call_id, (Cancelled(call_id, self._reason()),))
            case 5:
                self._know(call_id, (self._seal(call_id),))
            case 6:
                self._know(call_id, (self._seal(call_id), *self._truth(call_id)))
            case 7:
                self._know(call_id, (*self._truth(call_id), self._other(call_id), self._seal(call_id)))
            case _:
                return

    def _know(self, call_id: CallId, events: tuple[CallEvent | RequestSent, ...]) -> None:
        call = self._calls.get(call_id)
        if self._draw(8) < 7:
            tool, json = ("read", Json(b"{}")) if call is None else (call.name, call.json)
            events = (Scheduled(call_id, tool, json), *events)
        self._ledger = self._ledger.apply(*events)

    def _truth(self, call_id: CallId) -> tuple[CallEvent, ...]:
        """Return the completion in the conversation; rarely a different or an additional one."""
        given = self._given.get(call_id)
        if given is None or self._draw(6) == 5:
            return (self._other(call_id),)
        if given.error_json is not None:
            return (Failed(call_id, given.error_json),)
        return (Returned(call_id, given.content_json or Json(b"null"), given.media),)

    def _other(self, call_id: CallId) -> CallEvent:
        value = quote(f"{self._mark()} by the ledger")
        kinds: tuple[Callable[[CallId, Json], CallEvent], ...] = (Returned, Failed, Denied, Refused)
        return kinds[self._draw(len(kinds))](call_id, value)

    def _seal(self, call_id: CallId) -> RequestSent:
        return RequestSent(1, 1, ELSEWHERE, 0, 1, ((call_id, self._reason()),))

    def _reason(self) -> Reason:
        return REASONS[self._draw(len(REASONS))]
