"""Compute the state of a session from the events of its log.

The state changes in the same way when an event is written and when a log is read. A session that is rebuilt from its
log therefore equals the session that wrote the log. `actors.core.session.lanes` computes the lanes, and reads complete
logs.

Call events change only the ledger, and other events change only other fields. The order between these two groups
therefore does not matter. The only exception is `RequestSent`, which seals synthetic results in the ledger.

The id of a subagent's session is built from its parent's id, the call and a number. The scheduler uses these ids for
the sessions that tools open. Deleting a session finds its subagents by these ids.
"""

import re
from collections.abc import Sequence
from math import inf

from actors.core.data.record import StoredRecord, replace
from actors.core.history.compaction import ReportedRequest
from actors.core.history.history import (
    NO_MESSAGES,
    NO_TURN_ENDS,
    History,
    TurnEnd,
    TurnEnds,
    end_of,
    ends_after_summary,
    ends_until,
    extend,
    is_removed,
    last_turn_within,
    packed_messages,
    replace_messages,
    rewind,
    shorten,
    with_turn_end,
)
from actors.core.ledger import NO_CALLS, Ledger, closed_record
from actors.core.log import events
from actors.core.log.call_events import CallEvent, CallEventBase, Scheduled, Started
from actors.core.log.events import EpochBegan, LogEvent, RequestSent
from actors.core.settings.asking import StoredAskSettings
from actors.core.settings.spending import Budget, SessionUsage
from actors.core.values.identity import RUNTIME, Binding, CallId, number_of
from actors.core.values.packed import Packed, size_of

LONGEST_ID = 64
"""The maximum length of a session id, in characters."""
_SUFFIX = re.compile(r"(-c\d+)(?:-\d+)?$")


class Pause(StoredRecord, frozen=True):
    """The calls for which a paused turn waits, and the decisions about them so far."""

    awaited: events.TurnPaused
    decisions: tuple[events.ApprovalDecided, ...] = ()

    def with_decision(self, decision: events.ApprovalDecided) -> "Pause":
        """Return the pause with one more decision."""
        return replace(self, decisions=(*self.decisions, decision))


KEYS = 256
"""Maximum number of ask keys that a session remembers. The oldest keys are dropped first."""


class KeyedAsk(StoredRecord, frozen=True):
    """An ask to which its caller gave a key.

    Args:
        ask: Number of the ask.
        key: The key.
        is_ended: True if the log contains the result of the ask. False while the ask runs or waits, and after an
            interruption.
    """

    ask: int
    key: events.AskKey
    is_ended: bool = False


class SessionState(StoredRecord, frozen=True):
    """The state of a session, as its log defines it.

    Args:
        session: The session's id; empty before `Opened`.
        target: The backend or pool, as the user named it.
        held: The target of a deferred switch; None if there is none.
        history: The messages.
        ledger: The tool calls.
        calls: The number of canonical call ids that were assigned.
        asks: The number of the last ask.
        asked: The settings of the last ask; None if it has none.
        turns: The number of the last turn.
        turn_ask: The number of the ask to which the last turn belongs; 0 if the turn belongs to no ask.
        bound: The binding of the turn in flight; None between turns.
        pause: The calls for which the turn in flight waits, and the decisions about them; None if no turn is paused.
        closed: True if the log contains `Closed`.
        tenant: The tenant to which the session belongs; empty for none.
        budget: The session's budget; None if it has none.
        used: The usage counted against `budget`; None without a budget.
        config_digest: The digest of the system prompt and of the tools' declarations.
        asked_at: The index in the history at which the last ask begins.
        size: The size of the history's messages, in bytes.
        measured: The input tokens that the last answer reported, and the history that they cover; None before the first
            answer.
        ends: The ends of turns, to which the history can be rewound.
        keys: The last `KEYS` asks with a key, oldest first.
    """

    session: str = ""
    target: str = ""
    held: str | None = None
    history: History = NO_MESSAGES
    ledger: Ledger = NO_CALLS
    calls: int = 0
    asks: int = 0
    asked: StoredAskSettings | None = None
    turns: int = 0
    bound: Binding | None = None
    pause: Pause | None = None
    closed: bool = False
    tenant: str = ""
    budget: Budget | None = None
    used: SessionUsage | None = None
    config_digest: str = ""
    asked_at: int = 0
    size: int = 0
    measured: ReportedRequest | None = None
    ends: TurnEnds = NO_TURN_ENDS
    turn_ask: int = 0
    keys: tuple[KeyedAsk, ...] = ()

    def ask_with_key(self, name: str) -> KeyedAsk | None:
        """Return the latest ask with this key, or None."""
        return next((each for each in reversed(self.keys) if each.key.name == name), None)

    @property
    def last_key(self) -> str:
        """The key of the last ask; empty if the ask has no key."""
        return self.keys[-1].key.name if self.keys and self.keys[-1].ask == self.asks else ""

    def can_continue(self, ask: KeyedAsk) -> bool:
        """Return True if another turn can complete this ask.

        This requires that the ask is the session's last one, has not ended, and was not rewound.
        """
        return not ask.is_ended and ask.ask == self.asks and self.asked_at < self.history.length

    @property
    def turn_before(self) -> int | None:
        """The number of the turn to which the history can be rewound in order to undo the last ask.

        None if the history cannot be rewound to a turn before the last ask.
        """
        return last_turn_within(self.ends, self.asked_at)

    def apply(self, event: LogEvent) -> "SessionState":
        """Return the state after the next event of the log."""
        match event:
            case CallEventBase():
                return replace(self, ledger=self.ledger.apply(event))
            case events.Opened():
                return _initial_state(event)
            case (
                events.SwitchQueued()
                | events.SwitchApplied()
                | events.SwitchSuperseded()
                | events.SwitchFailed()
            ):
                return self._apply_switch_event(event)
            case events.ResultsTrimmed() | events.Compacted() | events.Rewound():
                return self._apply_history_event(event)
            case events.Configured(system=system, preamble=preamble):
                return replace(self, history=replace(self.history, system=system), config_digest=preamble)
            case events.EventsLost(first=first, last=last):
                # Each lost event may have recorded one call, so reserve that many call ids.
                return replace(self, calls=self.calls + last - first + 1)
            case events.Closed():
                return replace(self, closed=True)
            case _:
                return self._apply_ask_event(event)

    def _apply_ask_event(self, event: events.AskEvent) -> "SessionState":
        """Return the state after an event of the ask in flight."""
        match event:
            case RequestSent():
                return replace(self, ledger=self.ledger.apply(event))
            case events.AskStarted():
                return self._start_ask(event)
            case events.TurnStarted(turn=turn, ask=ask, binding=binding):
                return replace(self, turns=turn, turn_ask=ask, bound=binding)
            case events.RoundEnded():
                return self._end_round(event)
            case events.TurnEnded():
                return self._end_turn(event)
            case events.FormatRequested(message=message):
                return self._with_messages(message)
            case events.SubagentUsage(used=child):
                return replace(self, used=None if self.used is None else self.used.with_subagent(child))
            case events.TurnPaused(seconds=seconds):
                return replace(self, pause=Pause(event), used=_add_seconds(self.used, seconds))
            case events.ApprovalDecided():
                return self if self.pause is None else replace(self, pause=self.pause.with_decision(event))
            case events.TurnResumed():
                return replace(self, pause=None)
            case EpochBegan() | events.ApprovalAsked():
                return self

    def _start_ask(self, event: events.AskStarted) -> "SessionState":
        keys = self.keys if event.key is None else (*self.keys, KeyedAsk(event.ask, event.key))[-KEYS:]
        at = self.history.length
        state = self._with_messages(event.message)
        return replace(state, asks=event.ask, asked=event.asked, asked_at=at, keys=keys)

    def _end_turn(self, event: events.TurnEnded) -> "SessionState":
        keys, ends = self.keys, self._with_turn_end(event.turn)
        if keys and keys[-1].ask == self.turn_ask and event.ends_ask:
            keys = (*keys[:-1], replace(keys[-1], is_ended=True))
        used = _add_seconds(self.used, event.seconds)
        return replace(self, bound=None, pause=None, used=used, ends=ends, keys=keys)

    def _end_round(self, event: events.RoundEnded) -> "SessionState":
        messages, used = () if event.message is None else (event.message,), self.used
        if used is not None and self.bound not in (None, RUNTIME):
            used = used.plus(self.bound, event.usage)
        calls, measured = self.calls + event.calls, self._updated_report(event)
        return replace(self._with_messages(*messages), calls=calls, used=used, measured=measured)

    def _apply_switch_event(self, event: events.SwitchEvent) -> "SessionState":
        match event:
            case events.SwitchQueued(target=target):
                return replace(self, held=target)
            case events.SwitchApplied(target=target):
                return replace(self, target=target, held=None)
            case events.SwitchSuperseded() | events.SwitchFailed():
                return replace(self, held=None)

    def _apply_history_event(self, event: events.HistoryEvent) -> "SessionState":
        match event:
            case events.ResultsTrimmed(results=results):
                history = shorten(self.history, results)
                return replace(self, history=history, measured=_without_counts(self.measured))
            case events.Compacted(start=start, stop=stop, summary=summary):
                at = max(0, self.asked_at - (stop - start) + 1)
                ends = ends_after_summary(self.ends, start, stop)
                return self._with_history(replace_messages(self.history, start, stop, summary), at, ends)
            case events.Rewound(turn=turn):
                return self._rewind(turn)

    def _with_messages(self, *messages: Packed) -> "SessionState":
        size = self.size + sum(map(size_of, messages))
        return replace(self, history=extend(self.history, messages), size=size)

    def _with_turn_end(self, turn: int) -> TurnEnds:
        """Return the recorded ends of turns, with the end of this turn added."""
        return with_turn_end(self.ends, TurnEnd(turn, self.history.length, self.calls))

    def _rewind(self, turn: int) -> "SessionState":
        """Return the state with the history cut at the end of a turn.

        If no end of that turn is recorded, the state stays the same.
        """
        if (end := end_of(self.ends, turn)) is None:
            return self
        history = rewind(self.history, end.length, range(end.calls + 1, self.calls + 1))
        return self._with_history(history, min(self.asked_at, end.length), ends_until(self.ends, turn))

    def _with_history(self, history: History, asked_at: int, ends: TurnEnds) -> "SessionState":
        size, measured = sum(map(size_of, packed_messages(history))), _without_counts(self.measured)
        return replace(self, history=history, size=size, asked_at=asked_at, measured=measured, ends=ends)

    def with_call_events(self, call_events: Sequence[CallEvent]) -> "SessionState":
        """Return the state with these call events applied to its ledger."""
        return replace(self, ledger=self.ledger.apply(*call_events)) if call_events else self

    def _updated_report(self, event: events.RoundEnded) -> ReportedRequest | None:
        """Return the number of input tokens that an answer reported, with the length of the history that was sent.

        After a failed answer or a summary (round 0), the previous report remains valid.
        """
        tokens = event.usage.input_tokens
        if self.bound is None or not (event.round and tokens) or event.fault is not None:
            return self.measured
        return ReportedRequest(self.bound, self.history.length, tokens)

    def ledger_with_open_calls(self, ledger: Ledger) -> Ledger:
        """Return `ledger` with all calls of the turn in flight. Calls that are missing are added as scheduled calls."""
        calls = self.history[-1].calls if self.bound is not None and self.history.length else ()
        coming = [Scheduled(call.id, call.name, call.json) for call in calls if call.id not in ledger]
        return ledger.apply(*coming)


def _initial_state(event: events.Opened) -> SessionState:
    history = replace(NO_MESSAGES, report=event.report, system=event.system)
    state = SessionState(event.session, event.target, None, history, Ledger(event.call_records), event.calls)
    state = state._with_messages(*event.messages)
    used = None if event.budget is None else SessionUsage()
    return replace(
        state,
        ends=state._with_turn_end(0),
        tenant=event.tenant,
        budget=event.budget,
        used=used,
        config_digest=event.preamble,
    )


def _without_counts(report: ReportedRequest | None) -> ReportedRequest | None:
    """Remove the counts from a report after the history was shortened. The report keeps its binding."""
    return None if report is None else ReportedRequest(report.binding)


def _add_seconds(used: SessionUsage | None, seconds: float) -> SessionUsage | None:
    return used if used is None or not seconds else replace(used, seconds=used.seconds + seconds)


def bounded_seconds(state: SessionState, asked: StoredAskSettings | None, before: float) -> tuple[float, str]:
    """Return the remaining seconds of an ask, and the error message to use if the ask takes longer.

    The ask's timeout or the session's budget applies, whichever expires first.

    Args:
        state: The session's state. Its `used` includes `before`.
        asked: The settings of the ask.
        before: The seconds that the ask took before its turn paused.
    """
    total = inf if asked is None or asked.timeout is None else asked.timeout
    own, budget, used = max(total - before, 0.0), state.budget, state.used
    if budget is None or budget.seconds is None or used is None or own <= budget.seconds - used.seconds:
        return own, f"the ask took longer than its timeout of {total:g} s"
    left = max(budget.seconds - used.seconds, 0.0)
    return left, f"the session's budget of {budget.seconds:g} seconds is used up"


def opening_event(session: str, target: str, history: History) -> events.Opened:
    """Return the first event of a session that continues a history. The event shares the history's messages."""
    known = tuple(
        [
            closed_record(item)
            for item in history.ledger.interactions()
            if not is_removed(history, item.call_id)
        ]
    )
    made = {call.id for message in history.since(0) for call in message.calls}
    used = max(map(number_of, made.union(item.call_id for item in known)), default=0)
    messages = tuple(packed_messages(history))
    return events.Opened(session, target, history.system, messages, known, used, history.report)


UNREAD = SessionState()
"""The state of a session before the first event of its log."""


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
