"""The session actor, which runs a session's asks and writes their events to its log.

`actors.core.session.phases` defines the phases of a session as a table. Child tasks wait for models and tools
(`actors.session.child_tasks`). So the actor can handle a switch, a cancellation or a query while a turn runs. Further
asks wait in a bounded queue, and changes wait for the end of the ask (`actors.session.held_changes`).

`PendingAsks` holds the accepted asks and survives a crash of the actors. After a crash, the ask in flight ends with its
result if the log already contains the end of the ask's last turn, and with an `error` event otherwise. Then the queued
asks run.
"""

from contextvars import Context as Variables
from contextvars import copy_context
from typing import ClassVar, assert_never

from actors.core.session import open_asks, phases
from actors.core.session.phases import Action, Phase, PhaseEvent
from actors.core.session.publishing import Publisher, terminal_event
from actors.core.session.state import SessionState
from actors.core.stream_events.ask_events import PendingCall
from actors.core.stream_events.events import Sink
from actors.core.turn.turn import Bounds
from actors.errors import ActorsError, SessionClosed, SessionError
from actors.journal.log import Generation, LogWriter, Replay
from actors.kernel import Actor, Context, Reply
from actors.provider.resolver import Affinity
from actors.session.child_tasks import ChildTasks, Recovery
from actors.session.commands import (
    Cancel,
    Close,
    Configure,
    EndWritten,
    Finished,
    GetState,
    ResolutionRecorded,
    SessionCommand,
    Switch,
)
from actors.session.configuration import ActiveConfig
from actors.session.driver import TurnDriver
from actors.session.held_changes import HeldChanges, open_turn_error
from actors.session.inflight import AskInFlight, SessionLedger, SessionRefs
from actors.session.limits import Deadline, QueueLimits, rejection
from actors.session.pending import HostRewind, NoSink, PendingAsks, Resolve, Submit
from actors.session.repeats import RepeatedAsks


class SessionActor(Actor[SessionCommand]):
    """The actor that runs one session's asks. After a crash, it is rebuilt from the log and closes the open turn."""

    level: ClassVar[int] = 1

    def __init__(
        self,
        state: SessionState,
        refs: SessionRefs,
        active_config: ActiveConfig,
        bounds: Bounds,
        pending: PendingAsks,
        generation: Generation,
        affinity: Affinity,
    ) -> None:
        self._log = LogWriter(state, refs.journal, generation, active_config.confirm_written)
        self._refs = refs
        self._ledger = SessionLedger(refs.ledger, state.ledger)
        self._active_config = active_config
        self._held = HeldChanges(self._log, refs.renderer, active_config)
        self._bounds = bounds
        self._pending = pending
        self._generation = generation
        self._phase: Phase
        self._set_phase(
            phases.initial_phase(is_closed=state.closed, is_open=False, is_awaiting=state.pause is not None)
        )
        if state.session:  # the id is empty until the log has been read
            self.pending_calls = open_asks.pending_calls(state, state.ledger)
        self._approved_calls = open_asks.approved_calls(state, state.ledger)
        self._is_recording = False
        self._ask: AskInFlight | None = None
        self._recovery: Recovery | None = None
        self._deadline = Deadline()
        self._queue_limits = QueueLimits(pending, state.session)
        self._repeats = RepeatedAsks(refs.journal, pending)
        self._cancels: tuple[Reply[bool], ...] = ()
        self._ends: tuple[Reply[None], ...] = ()
        self.affinity = affinity
        """The pool members that the session prefers."""
        self._context: Context[SessionCommand] | None = None
        self._tasks: ChildTasks  # created when the actor starts

    @property
    def state(self) -> SessionState:
        """The current state of the session, without the ledger."""
        return self._log.state

    @property
    def pending_calls(self) -> tuple[PendingCall, ...]:
        """The calls for which the turn waits, because a result or a decision is missing."""
        return self._pending.record.pending_calls

    @pending_calls.setter
    def pending_calls(self, calls: tuple[PendingCall, ...]) -> None:
        self._pending.record.pending_calls = calls

    @property
    def idle(self) -> bool:
        """True if every event is written and no ask is in flight. A paused ask does not count."""
        rests = self._phase in ("idle", "ended") or (self._phase == "awaiting" and self._pending.is_empty)
        return rests and self._log.is_settled

    def on_start(self, context: Context[SessionCommand]) -> None:
        """Start the actor. After a crash, first read the state from the log, and continue its unfinished work."""
        self._context = context
        self._tasks = ChildTasks(context, self._log, self._refs, self._held, self._pending, self._generation)
        self._generation.start_actor(context, self._continue_after_crash)

    def _continue_after_crash(self, replay: Replay) -> None:
        """Continue after a crash: close an open turn, resume a waiting turn, or start the next ask."""
        state, pending = replay.state, self._pending
        self._log.resume(state)
        self._ledger = SessionLedger(self._refs.ledger, state.ledger)
        self._active_config.retarget(state.target)
        self.pending_calls = open_asks.pending_calls(state, state.ledger)
        is_open = not self._held.is_empty or state.bound is not None or pending.current is not None
        is_awaiting = state.pause is not None
        self._set_phase(
            phases.initial_phase(is_closed=state.closed, is_open=is_open, is_awaiting=is_awaiting)
        )
        if self._phase == "recovering":
            if pending.current is not None:
                publisher = open_asks.publisher_at(state, state.ledger, replay.round)
                self._generation.live.begin(pending.sink_for(pending.current.sink), publisher)
            self._recovery = Recovery(
                self._log, self._refs, self._ledger, self._active_config, replay.seq, replay.repeatable
            )
            self._tasks.recover(self._recovery)
        elif self._phase == "awaiting":
            self._continue_waiting_turn(replay)
        else:
            self._deliver_result()  # if a waiting turn was cancelled, repeated asks may still wait for the result
            self._start_next_ask()
        self._record_next()

    def _continue_waiting_turn(self, replay: Replay) -> None:
        """Resume a waiting turn after a crash, unless a result or a decision is missing."""
        state, pending = replay.state, self._pending
        self._approved_calls = open_asks.approved_calls(state, state.ledger)
        if not self.pending_calls and pending.current is None and pending.resolutions:
            # The last results were recorded before the crash, but the caller has not received a reply.
            pending.current = pending.resolutions.pop(0)
        current = pending.current
        if not self.pending_calls:
            sink, variables = (current.sink, current.variables) if current else (NoSink(), copy_context())
            self._generation.live.begin(sink, open_asks.publisher_at(state, state.ledger))
            self._continue_turn("complete", sink, variables)
        else:
            if pending.terminal is None:
                pending.store_result(open_asks.paused_result(state, self.pending_calls), replay.seq)
            self._deliver_result()
        if self._phase == "awaiting":
            self._limit_queue()

    def _limit_queue(self) -> None:
        """Start the timers of queued asks and reject queued rewinds, when the turn begins to wait."""
        self._pending.drop_rewinds(open_turn_error(self._log.state))
        self._queue_limits.start_timers(self._live_context, self._pending.waiting)

    def receive(self, command: SessionCommand) -> None:
        match command:
            case Submit():
                self._submit(command)
            case Switch() | Configure():
                self._change_configuration(command)
            case Cancel():
                self._cancel_ask(command)
            case GetState():
                command.reply.send(self._log.state)
            case Resolve():
                self._resolve(command)
            case (
                Finished(generation=number)
                | ResolutionRecorded(generation=number)
                | EndWritten(generation=number)
            ) if number != self._generation.number:
                pass  # the report was sent before a crash, by an earlier generation of the actors
            case ResolutionRecorded():
                self._on_resolution_recorded(command)
            case Finished():
                self._finish_ask()
            case Close():
                self._end_session(command.reply)
            case EndWritten():
                self._advance_phase("written")
                self._reply_to_ends()
            case _:
                assert_never(command)

    @property
    def _live_context(self) -> Context[SessionCommand]:
        """The actor's context, which starts child tasks. Read this property only after `on_start`."""
        assert self._context is not None
        return self._context

    def _advance_phase(self, phase_event: PhaseEvent) -> Action:
        """Enter the phase that follows an event in the table of phases, and return the action to take."""
        action, phase = phases.step(self._phase, phase_event)
        self._set_phase(phase)
        return action

    def _set_phase(self, phase: Phase) -> None:
        """Set the current phase, and update the statistics of sessions by phase."""
        self._phase = phase
        self._pending.record.record_phase(phase)

    def _ending_error(self) -> SessionClosed:
        """Return the error for commands that arrive while the session ends."""
        return SessionClosed(f"Session {self._log.state.session!r} is ending; open a new session")

    def _submit(self, command: Submit) -> None:
        """Handle a new ask. If it repeats an earlier ask, answer it; otherwise accept or reject it."""
        try:
            is_answered = self._repeats.try_answer(command, self._log.state, self._phase, self._live_context)
        except SessionError as error:
            self._reject(command, error)
        else:
            command.reply.send(None) if is_answered else self._accept(command)

    def _accept(self, command: Submit) -> None:
        """Start or queue an ask, or reject it if the queue is full, a budget is used up or the session is ending."""
        state, pending = self._log.state, self._pending
        if (error := rejection(command, self._phase, state, pending, self._active_config)) is not None:
            self._reject(command, error)
            return
        action = self._advance_phase("submit")
        if action == "refuse":
            self._reject(command, self._ending_error())
            return
        pending.queue_ask(command)
        command.reply.send(None)
        if action == "begin":
            self._start_ask()
        elif self._phase == "awaiting":
            self._queue_limits.start_timers(self._live_context, (command,))

    def _reject(self, command: Submit | Resolve, error: ActorsError) -> None:
        """Reject a command: send the error to the caller, and close the event stream."""
        command.reply.fail(error)
        command.sink.close(error)

    def _start_next_ask(self) -> None:
        """Start the oldest queued ask, if no ask is in flight."""
        if self._pending.waiting and self._phase == "idle":
            self._advance_phase("submit")
            self._start_ask()

    def _start_ask(self) -> None:
        """Start a child task that drives the oldest queued ask."""
        submit = self._pending.take_oldest()
        sink, state = self._pending.sink_for(submit.sink), self._log.state
        continues = self._repeats.can_continue(submit, state)
        self._generation.live.begin(sink, Publisher(turn=state.turns))
        # A configuration event is written together with the next event, and a rewind may write no event.
        if not isinstance(submit.call, HostRewind):
            self._active_config.refresh()
            self._held.log_config_change(self._live_context)
        driver = self._create_driver(sink, submit.variables)
        driver.ask.output = self._pending.output_type = submit.output
        if continues:
            self._tasks.continue_ask(driver)
        else:
            self._tasks.run_ask(driver, submit)
        asked = state.asked if continues else submit.asked
        self._deadline.start_timer(self._live_context, driver.ask, self._log.state, asked)

    def _create_driver(self, sink: Sink, variables: Variables) -> TurnDriver:
        """Return a driver for an ask that begins or continues. The driver's ask becomes the ask in flight."""
        ask = self._ask = AskInFlight(
            self._log, self._refs, self._ledger, self._generation, self._active_config, sink, variables
        )
        return TurnDriver(ask, self._bounds, self.affinity, self._pending)

    def _resolve(self, command: Resolve) -> None:
        """Queue results and decisions for the waiting turn. The commands are recorded one after the other."""
        resolutions = self._pending.resolutions
        if len(resolutions) >= self._pending.max_queued:
            self._reject(command, self._pending.resolutions_full_error(self._log.state.session))
        elif self._advance_phase("resolve") == "refuse":
            self._reject(command, self._ending_error())
        else:
            resolutions.append(command)
            self._record_next()

    def _record_next(self) -> None:
        """Start a child task that records the oldest queued `Resolve` command, unless such a task is running."""
        if self._pending.resolutions and not self._is_recording:
            self._is_recording = True
            self._tasks.record(self._pending.resolutions[0], self._ledger)

    def _on_resolution_recorded(self, command: ResolutionRecorded) -> None:
        """Reply to the caller whose results or decisions were recorded, and continue the turn if no call is pending."""
        resolve = self._pending.resolutions.pop(0)
        self._is_recording = False
        if command.error is not None:
            self._reject(resolve, command.error)
        else:
            resolve.reply.send(None)
            self._accept_resolution(resolve, command)
        if self._phase == "awaiting":
            self._generation.live.end()
        self._record_next()

    def _accept_resolution(self, resolve: Resolve, command: ResolutionRecorded) -> None:
        """Continue the turn if no call is pending. Otherwise, end the caller's stream with the pending calls."""
        if self._phase != "awaiting":
            resolve.sink.put(terminal_event(open_asks.late_result(self._log.state), command.seq))
            return
        self.pending_calls, self._approved_calls = command.pending_calls, command.approved_calls
        if self.pending_calls:
            resolve.sink.put(
                terminal_event(open_asks.paused_result(self._log.state, self.pending_calls), command.seq)
            )
        else:
            self._pending.current = resolve
            self._continue_turn("complete", resolve.sink, resolve.variables)

    def _continue_turn(self, phase_event: PhaseEvent, sink: Sink, variables: Variables) -> None:
        """Start a child task that continues the waiting turn, or closes it if the ask or the session must end.

        Args:
            phase_event: The event that ends the wait.
            sink: Receives the events of the rest of the turn.
            variables: The context variables for the rest of the turn.
        """
        self._queue_limits.stop_timers()
        closes = self._advance_phase(phase_event) == "close"
        calls = (*(each.call for each in self.pending_calls), *self._approved_calls)
        self.pending_calls, self._approved_calls = (), ()
        self._pending.key = self._log.state.last_key
        sink = self._pending.sink_for(sink)
        self._generation.live.redirect(sink)
        self._held.log_config_change(self._live_context)
        driver, asked = self._create_driver(sink, variables), self._log.state.asked
        driver.ask.cancelled = closes
        driver.ask.restore_output(self._pending.output_type, asked)
        self._tasks.resume_ask(driver, calls)
        self._deadline.start_timer(self._live_context, driver.ask, self._log.state, asked)

    def _change_configuration(self, command: Switch | Configure) -> None:
        """Apply a switch or a configuration change immediately, or hold it until the ask in flight has ended.

        A turn that a crash left open may run calls again, so a configuration change waits until this turn is closed. A
        switch need not wait, because this turn sends no further request.
        """
        action = self._advance_phase("switch")
        if action == "refuse" or (isinstance(command, Configure) and command.change.status == "dropped"):
            command.reply.fail(self._ending_error())
        elif isinstance(command, Switch):
            self._held.switch(command, self._live_context, at_once=action == "apply")
        else:
            at_once = action == "apply" and self._log.state.bound is None
            self._held.configure(command, self._live_context, at_once=at_once)

    def _cancel_ask(self, command: Cancel) -> None:
        """Cancel the ask in flight, and reply when the ask has ended. If no ask is in flight, reply False at once."""
        reply = command.reply
        if self._phase == "awaiting":
            self._cancels += (reply,)
            self._continue_turn("cancel", NoSink(), copy_context())
            return
        action = self._advance_phase("cancel")
        if action == "nothing":
            reply.send(False)
            return
        self._cancels += (reply,)
        if self._ask is not None and not self._ask.cancelled:
            self._ask.is_leaving = command.is_leaving
        if action == "stop":
            self._cancel_ask_or_recovery()

    def _cancel_ask_or_recovery(self) -> None:
        """Cancel the ask in flight, or the recovery of a turn after a crash."""
        in_flight = self._ask or self._recovery
        assert in_flight is not None
        in_flight.cancel(self._live_context)

    def _pause_ask(self) -> None:
        """End the stream of an ask whose turn begins to wait for results or decisions.

        If the ask was cancelled in the meantime, or the session is ending, close the turn instead.
        """
        current = self._pending.current
        assert self._ask is not None
        self.pending_calls = self._ask.pending_calls
        is_ending = self._phase == "ending"
        sink = current.sink if current is not None else NoSink()
        if not is_ending:
            self._advance_phase("paused")
        if not (is_ending or self._cancels) or self._ask.is_leaving:
            self._deliver_result()
            self._limit_queue()
            return
        self._continue_turn("paused" if is_ending else "cancel", sink, copy_context())

    def _finish_ask(self) -> None:
        """End the ask's stream, reply to the callers that cancelled the ask, and start the next ask."""
        if self._log.state.pause is not None:
            self._pause_ask()
            return
        if not self._held.is_empty:  # a change arrived while `Finished` was queued
            self._tasks.apply_changes()
            return
        action = self._advance_phase("finished")
        self._deliver_result()
        if action == "write_end":
            self._tasks.close_log()
        self._start_next_ask()

    def _deliver_result(self) -> None:
        """Deliver the result of the ask in flight, stop its timer, and reply to the callers that cancelled the ask."""
        cancels, result = self._cancels, self._pending.deliver_result()
        is_cancelled = self._ask is None or (result is not None and result.status == "cancelled")
        self._generation.live.end()
        self._ask, self._cancels = None, ()
        self._deadline.stop_timer()
        for reply in cancels:
            reply.send(is_cancelled)

    def _end_session(self, reply: Reply[None]) -> None:
        """Drop queued asks, cancel the ask in flight, and end the session. Reply when the end is logged."""
        self._ends += (reply,)
        self._pending.drop_queued()
        if self._phase == "awaiting":
            self._continue_turn("end", NoSink(), copy_context())
            return
        action = self._advance_phase("end")
        if action == "stop":
            self._cancel_ask_or_recovery()
        elif action == "write_end":
            self._tasks.close_log()
        elif action == "answer":
            self._reply_to_ends()

    def _reply_to_ends(self) -> None:
        """Reply to the callers that wait for the session's end."""
        ends, self._ends = self._ends, ()
        for reply in ends:
            reply.send(None)
