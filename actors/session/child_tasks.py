"""Run a session's long operations in child tasks of its actor, because the actor's handlers must not wait.

    run_ask, continue_ask, resume_ask    drive an ask                                   report `Finished`
    recover                              close the turn that a crash left open          report `Finished`
    apply_changes                        apply changes that arrived at an ask's end     report `Finished`
    record                               record results and decisions                   report `ResolutionRecorded`
    close_log                            write the last event of the log                report `EndWritten`

A report contains the number of the actor generation that started the task. If the actor crashes, its child tasks end
with it, and the next generation continues from the log.

Every session whose log contains an open turn is recovered here, whether its actors crashed, were deactivated or ran in
another process. Calls that had ended are not changed. Calls that had not started are closed as `never_started`. Calls
that had started run again if their tool is declared `pure` or `idempotent`. All other calls are closed as
`outcome_unknown`.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from actors.core.ledger import Ledger
from actors.core.log.call_events import Reason
from actors.core.log.events import Closed, TurnEnded
from actors.core.session.publishing import Publisher, interrupted_result
from actors.core.stream_events.ask_events import AskResult
from actors.core.values.content import ToolCall
from actors.core.values.identity import CallId
from actors.journal.log import Generation, LogWriter
from actors.journal.pages import read_ask
from actors.kernel import Context
from actors.ledger.ledger_actor import StopRecording
from actors.scheduler.scheduler_actor import CloseCalls, RunBatch, StopBatch
from actors.scheduler.views import TurnView
from actors.session.commands import EndWritten, Finished, SessionCommand
from actors.session.configuration import ActiveConfig
from actors.session.driver import TurnDriver
from actors.session.held_changes import HeldChanges, rewind
from actors.session.inflight import SessionLedger, SessionRefs
from actors.session.pending import HostCall, HostRewind, PendingAsks, Resolve, Submit
from actors.session.resolutions import record

INTERRUPTED = "the session was restarted during the ask; check the session's history, then ask again"
SessionContext: TypeAlias = Context[SessionCommand]


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
        unknown = [call.id for call in calls if call.id not in ledger]
        again = [call for call in self.repeatable if call.id in pending and self._can_run_again(call)]
        kept = {call.id for call in again}
        started = [item.call_id for item in pending.values() if item.started]
        await self._close((*unknown, *[each for each in pending if each not in started]), "never_started")
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
            batch = RunBatch(calls, view=view, approved=True, waited=True, after_crash=True)
            for delegated in (await self.refs.scheduler.ask(batch)).delegated:
                self.log.hold(delegated)
        ledger = await self.ledger.query()
        left = [item.call_id for item in ledger.interactions() if item.status == "pending"]
        await self._close(left, "outcome_unknown")

    async def _close(self, calls: Sequence[CallId], reason: Reason) -> None:
        """Close the calls and record the reason. Do nothing if there are no calls."""
        if calls:
            self.ledger.keep_newer((await self.refs.scheduler.ask(CloseCalls(tuple(calls), reason))).snapshot)


class ChildTasks:
    """Starts the child tasks of a session's actor.

    Args:
        context: The context of the session's actor, which owns the tasks and receives their reports.
        log: Writes the session's own events.
        refs: Addresses of the session's actors.
        held: The changes that wait for the end of the ask in flight.
        pending: Receives the results of asks.
        generation: The current generation of the session's actors.
    """

    __slots__ = ("_context", "_generation", "_held", "_log", "_pending", "_refs")

    def __init__(
        self,
        context: SessionContext,
        log: LogWriter,
        refs: SessionRefs,
        held: HeldChanges,
        pending: PendingAsks,
        generation: Generation,
    ) -> None:
        self._context, self._log, self._refs = context, log, refs
        self._held, self._pending, self._generation = held, pending, generation

    def run_ask(self, driver: TurnDriver, submit: Submit) -> None:
        """Run an ask until it ends or is paused, or run the host's call, rewind or compaction."""
        self._context.start(self._run_ask, driver, submit, name="ask")

    def continue_ask(self, driver: TurnDriver) -> None:
        """Continue the last ask after an interruption."""
        self._context.start(self._continue_ask, driver, name="ask")

    def resume_ask(self, driver: TurnDriver, calls: tuple[ToolCall, ...]) -> None:
        """Continue a waiting turn. Its remaining `calls` run now, or are closed if the ask was cancelled."""
        self._context.start(self._resume_ask, driver, calls, name="ask")

    def recover(self, recovery: Recovery) -> None:
        """Close the turn that was in flight when the session's actors crashed, and keep the result of its ask."""
        self._context.start(self._recover, recovery, name="recover")

    def apply_changes(self) -> None:
        """Apply the changes that waited for the end of an ask."""
        self._context.start(self._apply_changes_and_finish, name="settle")

    def record(self, resolve: Resolve, ledger: SessionLedger) -> None:
        """Record results and decisions for the waiting turn."""
        self._context.start(self._record, resolve, ledger, name="record")

    def close_log(self) -> None:
        """Write the session's last event."""
        self._context.start(self._close_log, name="end")

    async def _run_ask(self, driver: TurnDriver, submit: Submit) -> None:
        if submit.call is None:
            await driver.run(submit.message, submit.asked, submit.key)
        elif isinstance(submit.call, HostCall):
            await driver.run_call(submit.message, submit.call)
        elif isinstance(submit.call, HostRewind):
            await rewind(driver.ask, submit.call, self._pending)
        else:
            await driver.run_compaction(submit.call)
        await self._apply_changes_and_finish()

    async def _continue_ask(self, driver: TurnDriver) -> None:
        state = self._log.state
        log = await read_ask(self._refs.journal, state.session, state.asks)
        self._generation.live.begin(driver.ask.sink, Publisher(turn=state.turns, ask=log.totals))
        await driver.continue_ask(log.totals)
        await self._apply_changes_and_finish()

    async def _resume_ask(self, driver: TurnDriver, calls: tuple[ToolCall, ...]) -> None:
        await driver.resume(calls)
        await self._apply_changes_and_finish()

    async def _recover(self, recovery: Recovery) -> None:
        result, seq = await recovery.run()
        if self._pending.terminal is None:
            self._pending.store_result(result, seq)
        await self._apply_changes_and_finish()

    async def _apply_changes_and_finish(self) -> None:
        """Apply the changes that waited for the end of the ask, then report the end to the actor (`Finished`)."""
        await self._held.apply_waiting(self._context)
        await self._context.ref.send(Finished(self._generation.number))

    async def _record(self, resolve: Resolve, ledger: SessionLedger) -> None:
        command = await record(self._log, self._refs, ledger, resolve, self._generation)
        await self._context.ref.send(command)

    async def _close_log(self) -> None:
        # The ledger stops first, so that no late result follows the last event.
        await self._refs.ledger.ask(StopRecording())
        await self._log.write(Closed())
        await self._context.ref.send(EndWritten(self._generation.number))
