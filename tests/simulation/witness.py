"""Check every event of a log as it is appended, and every request body against the log at that moment."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from actors.core.history.compaction import mentioned_ids
from actors.core.log import call_events, events
from actors.core.log.call_events import Cancelled
from actors.core.log.events import LogEvent
from actors.core.values.identity import RUNTIME, Binding, CallId
from actors.core.values.packed import unpack
from actors.core.values.stream import Usage
from actors.testing.simulation.observer import Problems
from actors.testing.simulation.plan import EXTERNAL_TOOL

REAL = (call_events.Returned, call_events.Failed, call_events.Denied, call_events.Refused)
"""The real completions of a call."""
TOKEN = re.compile(rb"<<[^<>]{1,40}>>")
"""Pattern of the unique mark in each result of a simulated tool."""
KEY = re.compile(rb'"key":\s*"([^"]+)"')
"""Pattern of the key of a simulated call, in its arguments."""
ASK = re.compile(r"\[(?:ask|task) ([\w.]+)\]")
"""Pattern of the name of an ask, in a user message or a task of a subagent."""
THREADED = "block"
"""The synchronous tool. Its thread may start after its call is closed, while no other call of it runs."""
TASK = re.compile(rb"\[task ([\w.]+)\]")
"""Pattern of the task of a subagent, in the arguments of a call."""
SYNTHETIC = b"[No result was recorded for this tool call"

Happened = TypeVar("Happened", bound=LogEvent)


@dataclass(slots=True)
class Sighting:
    """The state of one session, according to its log so far.

    `tokens` are those of real results, `due` the ones that every request must show from now on. `keys` maps the
    arguments of tools to calls. `said` is the running ask, `usage` the sum of each ask. `made` are the calls of the
    history, `ends` the ended turns, each with the number of calls so far, and `removed` the calls that a rewind
    removed.
    """

    target: str = ""
    held: str | None = None
    bound: Binding | None = None
    ask: int = 0
    round: int | None = None
    tries: int = 0
    requests: int = 0
    elsewhere: str = ""
    aside: bool = False
    is_next: bool = False
    left: bool = False
    closed: bool = False
    open_calls: set[CallId] = field(default_factory=set)
    known: set[CallId] = field(default_factory=set)
    scheduled: set[CallId] = field(default_factory=set)
    started: set[CallId] = field(default_factory=set)
    external: set[CallId] = field(default_factory=set)
    threaded: set[CallId] = field(default_factory=set)
    ended: dict[CallId, str] = field(default_factory=dict)
    sealed: set[CallId] = field(default_factory=set)
    marked: set[CallId] = field(default_factory=set)
    named: set[str] = field(default_factory=set)
    tokens: dict[bytes, CallId] = field(default_factory=dict)
    due: set[bytes] = field(default_factory=set)
    keys: dict[str, CallId] = field(default_factory=dict)
    said: str = ""
    over: bool = True
    made: list[CallId] = field(default_factory=list)
    ends: list[tuple[int, int]] = field(default_factory=list)
    removed: set[CallId] = field(default_factory=set)
    usage: dict[str, Usage] = field(default_factory=dict)
    rounds: Counter[str] = field(default_factory=Counter)


class Witness:
    """The state of all logs of a run; checks whether each event may follow.

    Args:
        problems: Receives the broken invariants.
        members: The backends of each target.
    """

    def __init__(self, problems: Problems, members: Mapping[str, frozenset[str]]) -> None:
        self.problems = problems
        self._members = members
        self._subscribers: dict[type, list[Callable[[str, Any], None]]] = {}  # Any: events of that type
        self.counts = Counter[str](summaries_in_asks=0)
        self.seen: dict[str, Sighting] = {}
        self.retries: Counter[str] = Counter()
        """The number of requests that repeated a round, by backend."""
        self.is_handing: Callable[[str], bool] = lambda session: False
        """Returns True if the turn of a session is about to be handed over."""

    def event(self, session: str, event: LogEvent) -> None:
        """Check an event that is about to be appended, and pass it to its subscribers."""
        sighting = self.seen.get(session)
        if sighting is None:
            sighting = self.seen[session] = Sighting()
        self._look(session, sighting, event)
        for subscriber in self._subscribers.get(type(event), ()):
            subscriber(session, event)

    def subscribe(self, kind: type[Happened], subscriber: Callable[[str, Happened], None]) -> None:
        """Call `subscriber` with the session and each event of a kind."""
        self._subscribers.setdefault(kind, []).append(subscriber)

    def _wrong(self, invariant: str, session: str, about: object) -> None:
        self.problems.add(invariant, f"{session}: {about}")

    def _look(self, session: str, seen: Sighting, event: LogEvent) -> None:
        if seen.closed:
            self._wrong("no event follows the end of a session", session, type(event).__name__)
        match event:
            case call_events.CallEventBase():
                self._call(session, seen, event)
            case events.TurnStarted() | events.RequestSent() | events.RoundEnded() | events.TurnEnded():
                self._turn(session, seen, event)
            case (
                events.SwitchQueued()
                | events.SwitchApplied()
                | events.SwitchFailed()
                | events.SwitchSuperseded()
            ):
                self._switch(session, seen, event)
            case events.AskStarted():
                self._on_submitted(seen, event)
            case events.Opened(target=target):
                seen.target = target
            case events.ResultsTrimmed(results=results):
                seen.marked.update(call for call, _ in results)
            case events.Compacted(summary=summary):
                seen.named.update(mentioned_ids(unpack(summary).text))
            case events.Rewound(turn=turn):
                self._rewind(session, seen, turn)
            case events.Closed():
                seen.closed = True
            case _:
                pass

    def _on_submitted(self, seen: Sighting, event: events.AskStarted) -> None:
        seen.due.update(seen.tokens)  # late results too: they precede this message
        named = ASK.search(unpack(event.message).text)
        seen.said = named[1] if named is not None else ""
        seen.usage[seen.said], seen.over = Usage(), False

    def _rewind(self, session: str, seen: Sighting, turn: int) -> None:
        """Remove calls after a turn; no later request shows them or their late results."""
        if seen.bound is not None:
            self._wrong("no turn is open when a history is rewound", session, turn)
        calls = max([made for ended, made in seen.ends if ended <= turn], default=0)
        seen.ends = [end for end in seen.ends if end[0] <= turn]
        seen.removed.update(seen.made[calls:])
        del seen.made[calls:]
        seen.tokens = {token: call for token, call in seen.tokens.items() if call not in seen.removed}
        seen.due.intersection_update(seen.tokens)

    def _call(self, session: str, seen: Sighting, event: call_events.CallEventBase) -> None:
        call = event.call_id
        if isinstance(event, REAL):
            self._on_completed(session, seen, event)
        elif isinstance(event, Cancelled):
            seen.open_calls.discard(call)
        elif isinstance(event, call_events.Scheduled):
            if call not in seen.known:
                self._wrong("only calls of the model run", session, call)
            seen.scheduled.add(call)
            if event.tool == EXTERNAL_TOOL:
                seen.external.add(call)
            elif event.tool == THREADED:
                seen.threaded.add(call)
            if (named := KEY.search(event.arguments)) is not None:
                seen.keys[named[1].decode()] = call
        elif isinstance(event, call_events.Started):
            if call not in seen.scheduled or call in seen.started:
                self._wrong("a call is scheduled, then started once", session, call)
            seen.started.add(call)

    def _on_completed(self, session: str, seen: Sighting, event: call_events.Completion) -> None:
        call = event.call_id
        if call in seen.ended and call in seen.external:
            return  # a repeated result is a duplicate: stored, and never shown
        if call in seen.ended:
            about = f"{call} {seen.ended[call]}, then {type(event).__name__}"
            self._wrong("every call has one completion", session, about)
        seen.ended[call] = type(event).__name__
        seen.open_calls.discard(call)
        if isinstance(event, call_events.Returned) and call not in seen.removed:
            for token in TOKEN.findall(event.content):
                seen.tokens[token] = call

    def _turn(
        self,
        session: str,
        seen: Sighting,
        event: events.TurnStarted | events.RequestSent | events.RoundEnded | events.TurnEnded,
    ) -> None:
        match event:
            case events.TurnStarted():
                self._on_bound(session, seen, event)
            case events.RequestSent():
                self._on_sent(session, seen, event)
            case events.RoundEnded(message=message, usage=usage):
                if event.round or not seen.over:  # a summary for the program belongs to no ask
                    seen.usage[seen.said] += usage
                calls = unpack(message).calls if message is not None else ()
                seen.open_calls.update(call.id for call in calls)
                seen.known.update(call.id for call in calls)
                seen.made += [call.id for call in calls]
                seen.round = None
                seen.rounds[seen.bound.backend if seen.bound else ""] += 1
            case events.TurnEnded():
                if seen.open_calls:
                    self._wrong("every call is closed when its turn ends", session, sorted(seen.open_calls))
                seen.bound = seen.round = None
                seen.ends.append((event.turn, len(seen.made)))
                seen.over = event.status != "handed_over"

    def _on_bound(self, session: str, seen: Sighting, event: events.TurnStarted) -> None:
        if seen.bound is not None:
            self._wrong("one turn at a time", session, event.turn)
        ask = (
            event.ask or seen.ask
        )  # a compaction for the program has no ask, and may use the previous backend
        if ask != seen.ask and seen.held is not None:
            self._wrong("a held switch is settled before the next ask", session, seen.held)
        if ask != seen.ask or seen.is_next:  # a continuation may use any member of its pool
            is_asked = event.binding != RUNTIME  # otherwise the program makes the call
            if is_asked and event.binding.backend not in self._members.get(seen.target, ()):
                seen.elsewhere = f"turn {event.turn} on {event.binding.backend}, not {seen.target}"
        seen.is_next = False
        seen.bound, seen.ask, seen.left, seen.requests = event.binding, ask, False, 0

    def _on_sent(self, session: str, seen: Sighting, event: events.RequestSent) -> None:
        if seen.left:
            self._wrong("a switch is applied at a turn's end", session, seen.target)
        if event.binding != seen.bound:
            self._wrong("the binding is constant within a turn", session, event.binding.backend)
        self._check_target(session, seen, event)
        for call, _ in event.seals:
            if call in seen.ended:
                self._wrong("a synthetic result never replaces a real one", session, call)
            seen.sealed.add(call)
        seen.round, seen.tries = event.round, 0

    def _check_target(self, session: str, seen: Sighting, event: events.RequestSent) -> None:
        """Check the backend of a new ask against the target. A preceding summary comes from the previous backend."""
        if not event.is_for_summary and seen.elsewhere:
            self._wrong("a turn begins on the selected target", session, seen.elsewhere)
        if event.is_for_summary and not seen.requests:
            seen.is_next = True  # the ask itself begins with the next turn
        self.counts["summaries_in_asks"] += event.is_for_summary and not seen.over
        seen.elsewhere, seen.aside = "", event.is_for_summary
        seen.requests += 1

    def _switch(
        self,
        session: str,
        seen: Sighting,
        event: events.SwitchQueued | events.SwitchApplied | events.SwitchFailed | events.SwitchSuperseded,
    ) -> None:
        match event:
            case events.SwitchQueued(target=target):
                if seen.held is not None:
                    self._wrong("a later held switch supersedes the earlier one", session, seen.held)
                seen.held = target
            case events.SwitchSuperseded(target=target):
                if seen.held != target:
                    self._wrong("only a held switch is superseded", session, target)
                seen.held = None
            case events.SwitchApplied(target=target, was_queued=held):
                seen.left = seen.bound is not None  # before a continuation, just before the end of the turn
                if held and target != seen.held and not (seen.held is None and self.is_handing(session)):
                    self._wrong("the applied switch is the held one", session, target)
                seen.target, seen.held = target, None if held else seen.held
            case events.SwitchFailed():
                seen.held = None

    def request(self, session: str, backend: str, body: bytes) -> None:
        """Check a request body against the log of its session, before the server receives it."""
        seen = self.seen.get(session)
        if seen is None or seen.bound is None or seen.round is None:
            self._wrong("a request is in the log before it is sent", session, backend)
            return
        self.retries[backend] += seen.tries > 0
        seen.tries += 1
        if seen.bound.backend != backend:
            self._wrong("the binding is constant within a turn", session, f"a request to {backend}")
        if (count := body.count(SYNTHETIC)) > len(seen.sealed):
            about = f"{count} synthetic results, {len(seen.sealed)} sealed"
            self._wrong("a synthetic result is sealed before it is sent", session, about)
        self._results(session, seen, Counter(TOKEN.findall(body)))

    def _results(self, session: str, seen: Sighting, tokens: Counter[bytes]) -> None:
        for token, call in seen.tokens.items():
            count = tokens.pop(token, 0)
            if count == 0 and (call in seen.marked or call in seen.named):
                continue  # it was shortened: a placeholder replaces it, or a summary names it
            if count == 0 and seen.aside:
                continue  # the request summarises the turns before it
            if count > 1 or (count == 0 and (token in seen.due or call not in seen.sealed)):
                self._wrong("a real result is shown exactly once", session, f"{call}: {count} times")
        if tokens:
            self._wrong("every shown result was recorded", session, f"{len(tokens)} results")

    def check_start(self, session: str, key: str) -> None:
        """Check the start of a tool against the log."""
        seen = self.seen[session]
        call = seen.keys.get(key)
        if call is None or call not in seen.started:
            self._wrong("the start of a call is in the log before it runs", session, key)
        elif call in seen.ended and call not in seen.threaded:
            self._wrong("a recorded call is not run again", session, key)

    def check_return(self, session: str, key: str) -> None:
        """Check the end of a tool against the log, some time later."""
        seen = self.seen[session]
        if seen.closed:
            return  # the result of a tool after the end of its session is dropped
        if (call := seen.keys.get(key)) is not None and call not in seen.ended:
            self._wrong("a real result is recorded, however late", session, f"{key} ({call})")

    def usage(self, session: str, ask: str) -> Usage:
        """Return the sum of the rounds of an ask."""
        return self.seen[session].usage.get(ask, Usage())
