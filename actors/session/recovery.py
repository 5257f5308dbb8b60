"""Close the turn and the calls that a crash left open in the log.

Every session whose log contains an open turn is recovered by this module, whether its actors crashed, were deactivated
or ran in another process. Calls that had ended are not changed. Calls that had not started are closed as
`never_started`. Calls that had started run again if their tool is declared `pure` or `idempotent`. All other calls are
closed as `outcome_unknown`.
"""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from actors.core.ledger import Ledger
from actors.core.log.call_events import Reason
from actors.core.log.events import TurnEnded
from actors.core.session.publishing import interrupted_result
from actors.core.stream_events.results import AskResult
from actors.core.values.content import ToolCall
from actors.core.values.identity import CallId
from actors.journal.log import LogWriter
from actors.kernel import Context
from actors.scheduler.scheduler_actor import CloseCalls, RunBatch, StopBatch
from actors.scheduler.views import TurnView
from actors.session.configuration import ActiveConfig
from actors.session.inflight import SessionLedger, SessionRefs

INTERRUPTED = "the session was restarted during the ask; check the session's history, then ask again"


class Recovery(Struct):
    """The recovery of one session after a crash.

    Args:
        log: Writes the session's own events.
        refs: Addresses of the session's actors.
        ledger: The session's copy of its ledger.
        active_config: Contains the session's tools.
        seq: Number of the log's last event.
        repeatable: The calls that may run again, according to the log.
    """

    log: LogWriter
    refs: SessionRefs
    ledger: SessionLedger
    active_config: ActiveConfig
    seq: int
    repeatable: tuple[ToolCall, ...]
    _is_stopped: bool = False

    async def run(self) -> tuple[AskResult, int]:
        """Close the open turn. Return the result of the turn's ask, and the number of the log's last event."""
        bound, seq = self.log.state.bound, self.seq
        await self._close_calls()
        if bound is not None:
            seq = await self.log.write(TurnEnded(self.log.state.turns, "interrupted", INTERRUPTED))
        return interrupted_result(bound, INTERRUPTED, self.log.state.turns if bound else 0), seq

    def cancel(self, context: Context[Any]) -> None:  # Any: any actor may call this
        """Cancel the calls that the recovery is running again, and run no further calls.

        `context` is the context of the actor whose handler calls this method.
        """
        self._is_stopped = True
        context.send(self.refs.scheduler, StopBatch("outcome_unknown"))

    async def _close_calls(self) -> None:
        """Close every call that has not ended, or run the call again if that is allowed."""
        ledger = await self.ledger.query()
        pending = {item.call_id: item for item in ledger.interactions() if item.status == "pending"}
        history = self.log.state.history
        calls = history[-1].calls if len(history) else ()
        # A crash between the model's message and its batch leaves calls that the ledger does not know.
        unheard = [call.id for call in calls if call.id not in ledger]
        again = [call for call in self.repeatable if call.id in pending and self._can_run_again(call)]
        kept = {call.id for call in again}
        started = [item.call_id for item in pending.values() if item.started]
        await self._close((*unheard, *[each for each in pending if each not in started]), "never_started")
        await self._close([call_id for call_id in started if call_id not in kept], "outcome_unknown")
        if again:
            await self._run_again(tuple(again), ledger)

    def _can_run_again(self, call: ToolCall) -> bool:
        """Return True if the session still has the tool of a call, and the tool still allows a second run."""
        tool = self.active_config.tools.get(call.name)
        return tool is not None and not tool.is_external and tool.effects != "once"

    async def _run_again(self, calls: tuple[ToolCall, ...], ledger: Ledger) -> None:
        """Run calls again with the same idempotency keys, and close the calls that do not end this time either."""
        if not self._is_stopped:
            view = TurnView(self.log.state.turns, 0, self.log.state.history, ledger)
            batch = RunBatch(calls, view=view, approved=True, waited=True, again=True)
            for delegated in (await self.refs.scheduler.ask(batch)).delegated:
                self.log.hold(delegated)
        ledger = await self.ledger.query()
        left = [item.call_id for item in ledger.interactions() if item.status == "pending"]
        await self._close(left, "outcome_unknown")

    async def _close(self, calls: Sequence[CallId], reason: Reason) -> None:
        """Close the calls and record the reason. Do nothing if there are no calls."""
        if calls:
            self.ledger.keep_newer((await self.refs.scheduler.ask(CloseCalls(tuple(calls), reason))).snapshot)
