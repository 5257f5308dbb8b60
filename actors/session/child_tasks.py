"""Run a session's long operations in child tasks of its actor, because the actor's handlers must not wait.

    run_ask, continue_ask, resume_ask    drive an ask                                   report `Finished`
    recover                              close the turn that a crash left open          report `Finished`
    apply_changes                        apply changes that arrived at an ask's end     report `Finished`
    record                               record results and decisions                   report `ResolutionRecorded`
    close_log                            write the last event of the log                report `EndWritten`

A report contains the number of the actor generation that started the task. If the actor crashes, its child tasks end
with it, and the next generation continues from the log.
"""

from typing import TypeAlias

from actors.core.log.events import Closed
from actors.core.session.publishing import Publisher
from actors.core.values.content import ToolCall
from actors.journal.log import Generation, LogWriter
from actors.journal.pages import read_ask
from actors.kernel import Context
from actors.ledger.ledger_actor import StopRecording
from actors.session.commands import EndWritten, Finished, SessionCommand
from actors.session.driver import TurnDriver
from actors.session.held_changes import HeldChanges, rewind
from actors.session.inflight import SessionLedger, SessionRefs
from actors.session.pending import HostCall, HostRewind, PendingAsks, Resolve, Submit
from actors.session.recovery import Recovery
from actors.session.resolutions import record

SessionContext: TypeAlias = Context[SessionCommand]


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
        """Run an ask until it ends or waits for its caller, or run the host's call, rewind or compaction."""
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
        """Apply the changes that waited for the end of the ask, then report the end to the actor with `Finished`."""
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
