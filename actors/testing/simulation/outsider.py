"""Who answers for a session from outside: brings the results of external calls, and approves of others, or not.

While a turn waits it looks now and then, so other things happen meanwhile: a switch, a cancel, a crash, an ask that
waits. Some of what it brings is wrong: ids that nobody knows, results twice, results for calls that were cancelled
since.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random

import anyio

from actors.core.events import Verdict
from actors.core.feed import PendingCall, TurnResult
from actors.errors import ActorsError, NotAwaited
from actors.handle import Session
from actors.testing.simulation.witness import Problems

LOOKING = 2.0
"""Virtual seconds between two looks, on average."""
UNKNOWN = "hist_tool_99999"


class Outsider:
    """Serves one session until it is cancelled. `came` is told how asks stand, or came out."""

    def __init__(
        self, session: Session, random: Random, problems: Problems, came: Callable[[TurnResult], None]
    ) -> None:
        self._session = session
        self._random = random
        self._problems = problems
        self._came = came
        self._brought: list[PendingCall] = []
        self._asked = anyio.Event()
        self.scope = anyio.CancelScope()

    def asked(self) -> None:
        """Look from now on: a turn waits."""
        self._asked.set()

    async def run(self) -> None:
        """Look, and answer what is asked, as long as anything is; then wait until it is told again."""
        with self.scope:
            while True:
                await self._asked.wait()
                self._asked = anyio.Event()
                await self._look()

    async def _look(self) -> None:
        await self._passes()
        while pending := self._session.pending:
            with suppress(ActorsError):  # it was cancelled, crashed or closed since
                await self._serve(pending)
            await self._passes()

    async def _passes(self) -> None:
        await anyio.sleep(self._random.expovariate(1 / LOOKING))

    async def _serve(self, pending: Sequence[PendingCall]) -> None:
        chance = self._random.random()
        if chance < 0.1:
            await self._nonsense()
        elif chance < 0.2 and self._brought:
            await self._bring([self._random.choice(self._brought)])
        else:
            some = [each for each in pending if self._random.random() < 0.7] or list(pending)
            await self._decide([each for each in some if each.kind == "approval"])
            await self._bring([each for each in some if each.kind == "external"])

    async def _nonsense(self) -> None:
        try:
            await self._session.provide({UNKNOWN: "nobody asked"})
        except NotAwaited:
            return
        self._problems.add("only what is awaited is taken", self._session.id)

    async def _bring(self, calls: Sequence[PendingCall]) -> None:
        if calls:
            self._brought.extend(calls)
            self._came(await self._session.provide({each.call.id: self._result(each) for each in calls}))

    def _result(self, pending: PendingCall) -> object:
        if self._random.random() < 0.1:
            return ValueError("not today")
        return f"<<{pending.call.arguments.get('key')}>> from outside"

    async def _decide(self, calls: Sequence[PendingCall]) -> None:
        for each in calls:
            verdict: Verdict = "allow" if self._random.random() < 0.75 else "deny"
            self._came(
                await self._session.decide(each.call.id, verdict, reason="because", digest=each.digest)
            )
