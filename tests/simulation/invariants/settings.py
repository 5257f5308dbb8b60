"""Check settings of asks: they apply only to their own requests, and limit rounds, tokens and seconds."""

from collections import Counter
from dataclasses import dataclass

import anyio

from actors.core.log import call_events, events
from actors.core.settings.asking import StoredAskSettings
from actors.testing.simulation.model import SETTINGS, SHORT_ANSWER_TOKENS
from actors.testing.simulation.plan import FeatureLookup
from tests.simulation.invariants.answers import CORRECTIONS
from tests.simulation.invariants.content import WITHOUT_CONTENT
from tests.simulation.witness import Witness

ROUNDS = 5
"""The default limit of rounds."""
LATE = 1.0
"""Seconds by which an ask may exceed its timeout; running tools have half a second to end."""


@dataclass(slots=True)
class _LimitedAsk:
    """The running ask of a session.

    `waited`: it has paused for its caller, so no time limit applies. `extra`: rounds of its turn beyond the limit, one
    for each answer without content.
    """

    asked: StoredAskSettings
    began: float
    waited: bool = False
    tokens: int = 0
    extra: int = 0
    aside: bool = False


class AskLimits:
    """Checks the settings of asks."""

    def __init__(self, witness: Witness, feature_of: FeatureLookup) -> None:
        self._problems = witness.problems
        self._feature_of = feature_of
        self._running: dict[str, _LimitedAsk] = {}
        self.counts = Counter[str](asks_with_settings=0, round_limits=0, token_limits=0, time_limits=0)
        witness.subscribe(events.AskStarted, self._on_submitted)
        witness.subscribe(events.TurnPaused, self._on_awaited)
        witness.subscribe(events.RequestSent, self._on_sent)
        witness.subscribe(events.RoundEnded, self._on_answered)
        witness.subscribe(call_events.Scheduled, self._on_scheduled)
        witness.subscribe(events.TurnEnded, self._on_ended)

    def _on_submitted(self, session: str, event: events.AskStarted) -> None:
        self._running[session] = _LimitedAsk(event.asked or StoredAskSettings(), anyio.current_time())
        self.counts["asks_with_settings"] += event.asked is not None and event.asked.output is None

    def _on_awaited(self, session: str, event: events.TurnPaused) -> None:
        self._running[session].waited = True

    def _on_sent(self, session: str, event: events.RequestSent) -> None:
        if (now := self._running.get(session)) is None:
            return  # no ask yet: the program requests a summary
        now.aside, asked = event.is_for_summary, now.asked
        if event.is_for_summary:
            return
        self.counts["round_limits"] += event.tools_off
        most = (asked.max_rounds or ROUNDS) + (CORRECTIONS if asked.output is not None else 0) + now.extra
        if event.round >= most and not event.tools_off:
            about = f"{session}: turn {event.turn}, round {event.round}"
            self._problems.add("the last round of a turn has its tools off", about)
        if asked.token_limit is not None and now.tokens >= asked.token_limit:
            about = f"{session}: turn {event.turn}, {now.tokens} tokens of {asked.token_limit}"
            self._problems.add("no request is sent when an ask's tokens are used up", about)

    def _on_answered(self, session: str, event: events.RoundEnded) -> None:
        if (now := self._running.get(session)) is not None:
            now.tokens += event.usage.input_tokens + event.usage.output_tokens
            now.extra += event.incomplete in WITHOUT_CONTENT

    def _on_scheduled(self, session: str, event: call_events.Scheduled) -> None:
        if (now := self._running.get(session)) is not None and now.asked.tool_choice == "none":
            self._problems.add("no tool runs while tools are off", f"{session}: {event.call_id}")

    def _on_ended(self, session: str, event: events.TurnEnded) -> None:
        if (now := self._running.get(session)) is None:
            return
        took, most = anyio.current_time() - now.began, now.asked.timeout
        if most is not None and not now.waited and took > most + LATE:
            self._problems.add("an ask ends when its time is over", f"{session}: {took:.1f} s of {most:g}")
        now.extra = 0
        if event.status != "handed_over":
            del self._running[session]
        self.counts["time_limits"] += "longer than" in event.reason
        self.counts["token_limits"] += "tokens" in event.reason and "budget" not in event.reason

    def request(self, session: str, ask: str, body: bytes) -> None:
        """Check a request body against the settings of its ask."""
        now = self._running.get(session)
        if now is None or now.aside:
            return
        feature = self._feature_of(ask, "settings")
        wanted = feature is not None and "max_tokens" in SETTINGS[feature.value]
        if (b":%d" % SHORT_ANSWER_TOKENS in body) != wanted:
            about = f"{session}: {ask} has {feature.value if feature else 'no settings'}"
            self._problems.add("a setting applies only to the requests of its ask", about)
