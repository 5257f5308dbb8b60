"""Simulate the program that resolves pending calls: it supplies external results and approval decisions.

While a turn waits, it checks the session at random intervals, so switches, cancels, crashes and queued asks happen in
between. Some of its input is invalid: unknown ids, repeated results, results for cancelled calls, and edited arguments
that do not match the schema of the tool.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random

import anyio

from actors.core.data.jsonio import JsonValue
from actors.core.log.events import Verdict
from actors.core.stream_events.results import ApprovalDecision, AskResult, PendingCall
from actors.errors import ActorsError, DecisionRefused, NotAwaited
from actors.runtime.handle import Session
from actors.testing.simulation.observer import Problems

LOOKING = 2.0
"""Mean virtual seconds between two checks."""
UNKNOWN = "hist_tool_99999"
EDITS = 0.3
"""Probability that an approval edits the arguments."""
MISTAKE = "mistaken"


class Outsider:
    """Serves one session until it is cancelled.

    Args:
        session: The session.
        random: Decides the input.
        problems: Receives broken invariants.
        came: Called with the state or result of an ask, by name.
        looks: Called with the pending calls before input is sent.
    """

    def __init__(
        self,
        session: Session,
        random: Random,
        problems: Problems,
        came: Callable[[str, AskResult], None],
        looks: Callable[[str], None],
    ) -> None:
        self._session = session
        self._random = random
        self._problems = problems
        self._came, self._looks = came, looks
        self._resolved_calls: list[PendingCall] = []
        self._asked = anyio.Event()
        self.scope: anyio.CancelScope = anyio.CancelScope()

    def start_checks(self) -> None:
        """Start checking, because a turn waits."""
        self._asked.set()

    async def run(self) -> None:
        """Resolve pending calls until there are none, then wait for the next call of `start_checks`."""
        with self.scope:
            while True:
                await self._asked.wait()
                self._asked = anyio.Event()
                await self._look()

    async def _look(self) -> None:
        await self._passes()
        while pending := self._session.pending:
            self._looks(f"{pending[0].call.id} of {len(self._resolved_calls)}")
            with suppress(ActorsError):  # the ask was cancelled, crashed or closed in the meantime
                await self._serve(pending)
            await self._passes()

    async def _passes(self) -> None:
        await anyio.sleep(self._random.expovariate(1 / LOOKING))

    async def _serve(self, pending: Sequence[PendingCall]) -> None:
        chance = self._random.random()
        if chance < 0.1:
            await self._nonsense()
        elif chance < 0.2 and self._resolved_calls:
            await self._pass_results([self._random.choice(self._resolved_calls)])
        else:
            some = [each for each in pending if self._random.random() < 0.7] or list(pending)
            await self._decide([each for each in some if each.kind == "approval"])
            await self._pass_results([each for each in some if each.kind == "external"])

    async def _nonsense(self) -> None:
        try:
            await self._session.ask(results={UNKNOWN: "nobody asked"})
        except NotAwaited:
            return
        self._problems.add("only what is awaited is taken", self._session.id)

    async def _pass_results(self, calls: Sequence[PendingCall]) -> None:
        if calls:
            self._resolved_calls.extend(calls)
            result = await self._session.ask(
                results={each.call.id: self._result(each) for each in calls}, check=False
            )
            self._came(_ask_of(calls[0]), result)

    def _result(self, pending: PendingCall) -> object:
        if self._random.random() < 0.1:
            return ValueError("not today")
        return f"<<{pending.call.arguments.get('key')}>> from outside"

    async def _decide(self, calls: Sequence[PendingCall]) -> None:
        for each in calls:
            verdict: Verdict = "allow" if self._random.random() < 0.75 else "deny"
            edited = (
                self._edit_arguments(each) if verdict == "allow" and self._random.random() < EDITS else None
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
                self._came(_ask_of(each), await decided)
            except DecisionRefused:
                if edited is None or edited["manner"] != MISTAKE:
                    self._problems.add("only wrong arguments are refused", f"{self._session.id}: {edited}")
            else:
                if edited is not None and edited["manner"] == MISTAKE:
                    self._problems.add("wrong arguments are refused", f"{self._session.id}: {edited}")

    def _edit_arguments(self, pending: PendingCall) -> dict[str, JsonValue]:
        """Return edited arguments for a call, some of them invalid."""
        if self._random.random() < 0.3:
            return {**pending.call.arguments, "manner": MISTAKE, "seconds": "soon"}
        return {**pending.call.arguments, "seconds": round(self._random.random(), 5)}


def _ask_of(pending: PendingCall) -> str:
    """Return the ask of a call, from the key in its arguments."""
    return str(pending.call.arguments.get("key")).partition(".r")[0]
