"""Simulate the program that resolves pending calls: it sends results of external tools and approval decisions.

While a turn waits, the program checks the session at random intervals, so switches, cancellations, crashes and queued
asks happen in between. Sometimes the program sends invalid input: unknown ids, repeated results, results for cancelled
calls, and edited arguments that do not match the schema of the tool.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random

import anyio

from actors.core.data.jsonio import JsonValue
from actors.core.log.events import Verdict
from actors.core.stream_events.ask_events import ApprovalDecision, AskResult, PendingCall
from actors.errors import ActorsError, DecisionRefused, NotAwaited
from actors.runtime.handle import Session
from actors.testing.simulation.observer import Problems

MEAN_CHECK_SECONDS = 2.0
"""Mean virtual seconds between two checks."""
UNKNOWN = "hist_tool_99999"
EDIT_PROBABILITY = 0.3
"""Probability that an approval edits the arguments."""
INVALID_MANNER = "mistaken"


class CallResolver:
    """A simulated program that resolves the pending calls of one session until the program is cancelled.

    Args:
        session: The session.
        random: Decides which input the program sends, and when.
        problems: Receives broken invariants.
        on_result: Called with the name of an ask and its current or final result.
        before_input: Called with a description of the pending calls before input is sent.
    """

    def __init__(
        self,
        session: Session,
        random: Random,
        problems: Problems,
        on_result: Callable[[str, AskResult], None],
        before_input: Callable[[str], None],
    ) -> None:
        self._session = session
        self._random = random
        self._problems = problems
        self._on_result, self._before_input = on_result, before_input
        self._resolved_calls: list[PendingCall] = []
        self._asked = anyio.Event()
        self.scope: anyio.CancelScope = anyio.CancelScope()

    def start_checks(self) -> None:
        """Start to check the session repeatedly. Call this when a turn of the session begins to wait."""
        self._asked.set()

    async def run(self) -> None:
        """Run until cancelled. After each call of `start_checks`, resolve pending calls until there are none."""
        with self.scope:
            while True:
                await self._asked.wait()
                self._asked = anyio.Event()
                await self._resolve_pending()

    async def _resolve_pending(self) -> None:
        await self._pause_randomly()
        while pending := self._session.pending:
            self._before_input(f"{pending[0].call.id} of {len(self._resolved_calls)}")
            with suppress(ActorsError):  # the ask was cancelled, crashed or closed in the meantime
                await self._send_input(pending)
            await self._pause_randomly()

    async def _pause_randomly(self) -> None:
        await anyio.sleep(self._random.expovariate(1 / MEAN_CHECK_SECONDS))

    async def _send_input(self, pending: Sequence[PendingCall]) -> None:
        """Send results and decisions for some of the pending calls, or invalid input."""
        chance = self._random.random()
        if chance < 0.1:
            await self._send_unknown_result()
        elif chance < 0.2 and self._resolved_calls:
            await self._send_results([self._random.choice(self._resolved_calls)])
        else:
            some = [each for each in pending if self._random.random() < 0.7] or list(pending)
            await self._send_decisions([each for each in some if each.kind == "approval"])
            await self._send_results([each for each in some if each.kind == "external"])

    async def _send_unknown_result(self) -> None:
        """Send a result for a call that does not exist, which the session must reject."""
        try:
            await self._session.ask(results={UNKNOWN: "nobody asked"})
        except NotAwaited:
            return
        self._problems.add("a result for an unknown call is rejected", self._session.id)

    async def _send_results(self, calls: Sequence[PendingCall]) -> None:
        if calls:
            self._resolved_calls.extend(calls)
            result = await self._session.ask(
                results={each.call.id: self._choose_result(each) for each in calls}, check=False
            )
            self._on_result(_ask_name(calls[0]), result)

    def _choose_result(self, pending: PendingCall) -> object:
        if self._random.random() < 0.1:
            return ValueError("not today")
        return f"<<{pending.call.arguments.get('key')}>> from outside"

    async def _send_decisions(self, calls: Sequence[PendingCall]) -> None:
        """Approve or deny pending calls, sometimes with changed arguments.

        Check that invalid decisions are rejected.
        """
        for each in calls:
            verdict: Verdict = "allow" if self._random.random() < 0.75 else "deny"
            edited = (
                self._edit_arguments(each)
                if verdict == "allow" and self._random.random() < EDIT_PROBABILITY
                else None
            )
            try:
                decided = self._session.ask(
                    approvals={
                        each.call.id: ApprovalDecision(
                            verdict, reason="because", digest=each.digest, arguments=edited
                        )
                    },
                    check=False,
                )
                self._on_result(_ask_name(each), await decided)
            except DecisionRefused:
                if edited is None or edited["manner"] != INVALID_MANNER:
                    self._problems.add("valid arguments are accepted", f"{self._session.id}: {edited}")
            else:
                if edited is not None and edited["manner"] == INVALID_MANNER:
                    self._problems.add("invalid arguments are rejected", f"{self._session.id}: {edited}")

    def _edit_arguments(self, pending: PendingCall) -> dict[str, JsonValue]:
        """Return changed arguments for a pending call, which are sometimes invalid."""
        if self._random.random() < 0.3:
            return {**pending.call.arguments, "manner": INVALID_MANNER, "seconds": "soon"}
        return {**pending.call.arguments, "seconds": round(self._random.random(), 5)}


def _ask_name(pending: PendingCall) -> str:
    """Return the name of the ask that made a call. The argument `key` of the call contains this name."""
    return str(pending.call.arguments.get("key")).partition(".r")[0]
