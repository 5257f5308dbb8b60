"""Choose the completion that a transcript shows for a tool call.

In:  a call from a normal history, the ledger, and the results in the history's own blocks as a fallback.
Out: exactly one completion: sealed, else real, else synthetic with its reason.

Providers reject a transcript with an unanswered call, and an interrupted batch leaves several. A synthetic result fills
the gap. It never replaces, moves or repeats a real result, and its text states that no result was recorded and why. The
text depends only on the reason, so a sealed result is rendered again with the same bytes. A call in the ledger without
a completion is still running. A session sends no request while a call runs, but a preview may render the call.

A real result that arrived after the seal is rendered once, as text followed by its media, before the next user message.
Results of calls that a rewind removed are never rendered.
"""

from functools import partial

from actors.core.data.jsonio import Json, quote, unquote
from actors.core.data.persistent import PersistentMap
from actors.core.history.history import History, is_removed, shortened_results
from actors.core.ledger import Answer, Ledger
from actors.core.log.call_events import MissingReason
from actors.core.log.events import TrimReason
from actors.core.transcript.diagnostics import Notes
from actors.core.transcript.transcript import RenderState
from actors.core.values.content import Media, Message, Text, ToolCall, ToolResult
from actors.core.values.identity import CallId

_WHY: dict[MissingReason, str] = {
    "cancelled": "the call was cancelled before it finished",
    "interrupted": "the turn was interrupted before the call finished",
    "never_started": "the call was not started",
    "outcome_unknown": "the call was started, and it is not known whether it took effect",
    "compacted": "the record of it was left out when the conversation was shortened",
    "denied": "running the call was not allowed",
    "lost": "the history holds none",
    "running": "it is still running",
}

SYNTHETIC: dict[MissingReason, Json] = {
    reason: quote(f"[No result was recorded for this tool call: {why}.]") for reason, why in _WHY.items()
}


_SHORT: dict[TrimReason, str] = {
    "repeated": "the same call was made again later",
    "large": "it was long",
    "old": "the conversation was shortened",
}


def trimmed_answer(answer: Answer, tool: str, why: TrimReason) -> Answer:
    """Return the placeholder for a trimmed result. Its text states the tool's name, the size and the reason."""
    words, failed, media = answer
    beside = f" and {len(media)} attachments" if media else ""
    left_out = f"The result of {tool} was left out here, {len(words) - 2} bytes{beside}"
    return quote(f"[{left_out}: {_SHORT[why]}.]"), failed, ()


class CompletionChooser:
    """Chooses the completion of each call in the messages that a render adds.

    Two ledgers may contain a call's result: `ledger`, the authoritative one, and `history.ledger`, with the results
    that were found in the history's own messages. `ledger` takes precedence. In a session, `history.ledger` is empty.

    Attributes:
        some_are_late: True if calls in the new messages may have late results.
        waiting: Late results to render before the next user message.
    """

    def __init__(self, ledger: Ledger, history: History, state: RenderState, notes: Notes) -> None:
        own = history.ledger
        self._ledger = ledger
        self._own = own
        self._has_own = len(own) > 0
        self.some_are_late: bool = self._has_own and own is not ledger
        self._recorded = self._recorded_answer if self.some_are_late else ledger._answer
        self._notes, self._short = notes, shortened_results(history)
        self._has_short = len(self._short) > 0
        self._is_removed = partial(is_removed, history)
        self._known_missing = state.missing
        self._missing: dict[CallId, bool] = {}
        self._late_count = state.late_count
        self.waiting: list[Text | Media] = list(state.carried)

    def collect_late_results(self, new_messages: list[Message]) -> None:
        """Collect the results that arrived late since the last request.

        Late results of calls in `new_messages` are added when these calls are rendered.
        """
        came = self._ledger.late[self._late_count :]
        made = {call.id for message in new_messages for call in message.calls} if came else ()
        for call_id in came:
            if call_id in made:
                self.some_are_late = True
            elif self._is_removed(call_id):
                continue  # a rewind removed the call
            elif self._known_missing.get(call_id) is not False and (known := self._ledger.get(call_id)):
                said = known if known.tool else self._own.get(call_id)
                self._add_late_result(call_id, known.late, None if said is None else said.tool)
        for call_id, is_missing in self._known_missing.items() if self._has_own else ():
            if is_missing and call_id not in self._missing and (known := self._own.get(call_id)):
                self._add_late_result(call_id, known.completion, known.tool)

    def choose_answer(self, call: ToolCall) -> Answer:
        """Return the answer to a call: the real result, a placeholder for a trimmed one, or else a synthetic result."""
        answer = self._recorded(call.id)
        if answer is None:
            return self._synthetic_answer(call.id)
        if not self._has_short or (why := self._short.get(call.id)) is None:
            return answer
        self._notes.losses["shortened"] += 1
        return trimmed_answer(answer, call.name, why)

    def media_of(self, call: ToolCall) -> tuple[Media, ...]:
        """Return the media of a call's real result; an empty tuple if the result was trimmed."""
        if call.id in self._short:
            return ()
        found = self._ledger._answer(call.id) or self._own._answer(call.id)
        return () if found is None else found[2]

    def _recorded_answer(self, call_id: CallId) -> Answer | None:
        """Return the result of a call in the authoritative ledger, else its result in the history's own messages.

        Return None if a request has sent a synthetic result for the call.
        """
        if (known := self._ledger.get(call_id)) is not None and known.sealed is not None:
            return None
        recorded, said = self._ledger._answer(call_id), self._own._answer(call_id)
        if recorded is not None and said is not None and recorded != said:
            self._notes.dedupe.append((call_id, "conflicting_duplicate"))
        return recorded or said

    def _synthetic_answer(self, call_id: CallId) -> Answer:
        known = self._ledger.get(call_id) or self._own.get(call_id)
        reason = "lost" if known is None else known.reason or "lost"
        self._notes.synthetic.append((call_id, reason))
        self._missing[call_id] = True
        return SYNTHETIC[reason], False, ()

    def add_late_result(self, call: ToolCall) -> None:
        """Add the late result of a call to `waiting`, if the call has one."""
        known, said = self._ledger.get(call.id), self._own.get(call.id)
        if known is None or known.sealed is None or self._known_missing.get(call.id) is False:
            return  # the call has no late result, or its late result has been rendered already
        self._add_late_result(call.id, known.late or (said.completion if said else None), call.name)

    def new_state(
        self, missing: PersistentMap[CallId, bool]
    ) -> tuple[PersistentMap[CallId, bool], tuple[Text | Media, ...], int]:
        """Return the lane's next values of `missing`, `carried` and `late_count` (see `RenderState`).

        `missing` is the previous value.
        """
        return missing.update(self._missing), tuple(self.waiting), len(self._ledger.late)

    def _add_late_result(self, call_id: CallId, result: ToolResult | None, tool: str | None) -> None:
        if result is None:
            return
        self._missing[call_id] = False
        self._notes.dedupe.append((call_id, "late"))
        failed = ", which failed" if result.status == "error" else ""
        words = unquote(result.rendered_json)
        self.waiting += (Text(f"[Late result of {tool or 'a tool call'}{failed}: {words}]"), *result.media)
