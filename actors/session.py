"""The session actor: the head of one session's log, and the ask in flight.

A handler here never waits for a model or a tool. An ask is conducted by a child (`actors.conductor`), so the
session answers a switch, a cancel or a question while a turn runs. A second ask waits in a bounded queue. A
switch asked for meanwhile waits in one slot, latest wins; it is answered `Deferred` at once and applied on the way to
idle.

The asks that were accepted stand on the session's `Desk`, which outlives a crash: the ask in flight then ends as its
last turn did if that end was written, else with an `error` event; those that wait are conducted after it.
"""

from collections import deque
from contextlib import suppress
from contextvars import Context as Variables
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias, assert_never

from actors.conductor import Conductor, Crew, Services
from actors.core.content import Message
from actors.core.events import (
    Closed,
    Reason,
    SwitchApplied,
    SwitchHeld,
    SwitchSuperseded,
    TurnEnded,
)
from actors.core.feed import (
    Applied,
    Attempt,
    CompleteEvent,
    Deferred,
    ErrorEvent,
    Outlet,
    SwitchOutcome,
    TurnResult,
    switched,
)
from actors.core.identity import Binding, CallId
from actors.core.routing import settled
from actors.core.state import State
from actors.core.stream import Usage
from actors.core.turn import Bounds
from actors.errors import ActorsError, ActorStopped, Busy, JournalError, SessionClosed
from actors.journal import Head, Incarnation, crash
from actors.kernel import Actor, Command, Context, Query, Reply
from actors.ledger import Shut, Snapshot
from actors.scheduler import CloseCalls

RESTARTED = "the session's actors were restarted during the ask; see its history, and ask again"


@dataclass(frozen=True)
class Submit(Query[None]):
    """Begin an ask, or let it wait. Answered when it is accepted; `Busy` if too many wait.

    Args:
        message: The user's message.
        outlet: Where its events go. It is closed without a terminal one if the session ends before the ask.
        variables: The caller's context variables, for the tools.
    """

    message: Message
    outlet: Outlet
    variables: Variables


@dataclass(frozen=True)
class Switch(Query[SwitchOutcome]):
    """Send the next turn to `target`: at once if no ask is in flight, else when it has ended."""

    control: ClassVar[bool] = True
    target: str


@dataclass(frozen=True)
class Cancel(Query[bool]):
    """Cancel the ask in flight. Answered when every call of it is closed: True, or False if it came too late."""

    control: ClassVar[bool] = True


@dataclass(frozen=True)
class Look(Query[State]):
    """Ask for the state as it stands. Its ledger is the one it began with; ask the ledger for that."""

    control: ClassVar[bool] = True


@dataclass(frozen=True)
class Finished(Command):
    """The ask in flight has ended, and the desk says how. `head` is whose ask: a dead session's means nothing."""

    control: ClassVar[bool] = True
    head: Head


@dataclass(frozen=True)
class End(Query[None]):
    """Cancel the ask in flight, drop those that wait, and write that the session has ended."""

    control: ClassVar[bool] = True


SessionCommand: TypeAlias = Submit | Switch | Cancel | Look | Finished | End


@dataclass(slots=True)
class Desk:
    """The asks a session has accepted and not ended. One for a session's life, whatever crashes meanwhile.

    Args:
        most_waiting: How many may wait behind the one in flight.
        current: The one in flight.
        outcome: How it came out, and the number of its last event, as soon as that is in the log.
    """

    most_waiting: int = 8
    waiting: deque[Submit] = field(default_factory=deque)
    current: Submit | None = None
    outcome: tuple[TurnResult, int] | None = None

    def ended(self, result: TurnResult, seq: int) -> None:
        """Note how the ask in flight came out."""
        self.outcome = (result, seq)

    def drop_waiting(self) -> None:
        """End the streams of the asks that wait."""
        for submit in self.waiting:
            submit.outlet.close()
        self.waiting.clear()

    def clear(self) -> None:
        """End every stream: the session is gone."""
        self.drop_waiting()
        if self.current is not None:
            self.current.outlet.close()
            self.current = None


class SessionActor(Actor[SessionCommand]):
    """Owns the head of one session's log. After a crash the log rebuilds it; a turn in flight is `interrupted`."""

    level: ClassVar[int] = 1

    def __init__(
        self,
        state: State,
        crew: Crew,
        services: Services,
        bounds: Bounds,
        desk: Desk,
        incarnation: Incarnation,
        resting: dict[str, float],
    ) -> None:
        self._head = Head(state, crew.journal, self._unwritten)
        self._crew = crew
        self._services = services
        self._bounds = bounds
        self._desk = desk
        self._incarnation = incarnation
        self._busy = False
        self._conductor: Conductor | None = None
        self._cancels: list[Reply[bool]] = []
        self._ends: list[Reply[None]] = []
        self._life: Literal["open", "ending", "ended"] = "open"
        self.resting = resting
        """Until when backends rest, by name."""
        self._context: Context[SessionCommand] | None = None

    @property
    def state(self) -> State:
        """The state as it stands, without the ledger."""
        return self._head.state

    @property
    def idle(self) -> bool:
        """Whether no ask is in flight, and all that was sent is written."""
        return not self._busy and self._head.settled

    async def started(self, context: Context[SessionCommand]) -> None:
        """Close what a crash left open, before the next ask."""
        self._context = context
        past = await self._incarnation.past()
        if past is not None:
            self._head.resume(past.state)
        with suppress(ActorStopped):  # one of the others crashed while the log was read
            if past is not None and (past.state.bound is not None or self._desk.current is not None):
                self._busy = True
                context.start(self._recover, past.seq, name="recover")
            else:
                self._next()

    async def receive(self, command: SessionCommand) -> None:
        match command:
            case Submit():
                self._submitted(command)
            case Switch():
                await self._switched(command)
            case Cancel():
                await self._cancelled(command.reply)
            case Look():
                command.reply.send(self._head.state)
            case Finished():
                await self._finished(command)
            case End():
                await self._ended(command.reply)
            case _:
                assert_never(command)

    def _submitted(self, command: Submit) -> None:
        desk, name = self._desk, self._head.state.session
        if self._ends or self._head.state.closed:
            command.reply.fail(SessionClosed(f"Session {name!r} is ending; open another"))
            return
        if self._busy and len(desk.waiting) >= desk.most_waiting:
            waiting = len(desk.waiting)
            command.reply.fail(Busy(f"Session {name!r} has {waiting} asks waiting; wait for one, or cancel."))
            return
        desk.waiting.append(command)
        command.reply.send(None)
        self._next()

    def _next(self) -> None:
        """Begin the oldest waiting ask, if none is in flight."""
        if self._busy or not self._desk.waiting:
            return
        submit = self._desk.current = self._desk.waiting.popleft()
        conductor = Conductor(
            self._head,
            self._crew,
            self._services,
            self._bounds,
            self.resting,
            submit.outlet,
            submit.variables,
            self._desk.ended,
        )
        self._busy, self._conductor = True, conductor
        assert self._context is not None
        self._context.start(self._conduct, conductor, submit.message, name="ask")

    async def _conduct(self, conductor: Conductor, message: Message) -> None:
        await conductor.run(message)
        await self._finish(Finished(self._head))

    async def _finish(self, command: Finished) -> None:
        assert self._context is not None
        with suppress(ActorStopped):  # it is ending, and its streams with it
            await self._context.ref.tell(command)

    async def _switched(self, command: Switch) -> None:
        state, target, reply = self._head.state, command.target, command.reply
        if self._ends or state.closed:
            reply.fail(SessionClosed(f"Session {state.session!r} is ending; open another"))
            return
        try:
            self._services.pool(target)
        except ActorsError as error:
            reply.fail(error)
            return
        conductor = self._conductor
        if conductor is None:
            await self._head.send(SwitchApplied(target), then=lambda _: reply.send(Applied(target)))
            return
        turn = state.turns if state.bound is not None else state.turns + 1
        if (held := state.held) is not None:
            superseded = SwitchSuperseded(held, target)
            await self._head.send(superseded, then=lambda seq: conductor.tell("switch_superseded", seq, held))

        def deferred(seq: int) -> None:
            conductor.tell("switch_held", seq, target)
            reply.send(Deferred(target, turn))

        await self._head.send(SwitchHeld(turn, target), then=deferred)

    async def _cancelled(self, reply: Reply[bool]) -> None:
        if not self._busy:
            reply.send(False)
            return
        self._cancels.append(reply)
        if self._conductor is not None:  # else what a crash left open is just being closed
            await self._conductor.cancel()

    async def _finished(self, command: Finished) -> None:
        """Settle a held switch, then end the ask's stream, answer those who cancelled it, and begin the next."""
        held, submit = self._head.state.held, self._desk.current
        if command.head is not self._head:
            return
        if held is None:
            await self._concluded()
            return

        event = settled(held, self._services.pool)

        def told(seq: int) -> None:
            if submit is not None:
                submit.outlet.put(switched(event, seq, self._head.state.turns))
            if self._incarnation.over:
                return
            assert self._context is not None
            with suppress(ActorStopped):  # it is ending, and its streams with it
                self._context.start(self._finish, command, name="finish")

        await self._head.send(event, then=told)

    async def _concluded(self) -> None:
        desk, cancels, result = self._desk, self._cancels, self._desk.outcome
        is_cancelled = self._conductor is None or (result is not None and result[0].status == "cancelled")
        if desk.current is not None and desk.outcome is not None:
            desk.current.outlet.put(_terminal(*desk.outcome))
        desk.current = desk.outcome = None
        self._busy, self._conductor, self._cancels = False, None, []
        for reply in cancels:
            reply.send(is_cancelled)
        if self._ends:
            self._close_log()
        self._next()

    async def _ended(self, reply: Reply[None]) -> None:
        if self._life == "ended":
            reply.send(None)
            return
        self._ends.append(reply)
        self._desk.drop_waiting()
        if self._conductor is not None:
            await self._conductor.cancel()
        elif not self._busy:
            self._close_log()

    def _close_log(self) -> None:
        """Have the session's end written, once, and answer those who asked for it."""
        if self._life == "open":
            self._life = "ending"
            assert self._context is not None
            with suppress(ActorStopped):  # it is ending, and is asked again
                self._context.start(self._write_end, name="end")

    async def _write_end(self) -> None:
        """Write the log's last event: a tool that still runs may bring a late result, but not behind that."""
        await self._crew.ledger.ask(Shut())
        if not self._head.state.closed:
            await self._head.write(Closed())
        self._life = "ended"
        for reply in self._ends:
            reply.send(None)

    async def _recover(self, seq: int) -> None:
        """Close the turn that was in flight when this session's actors ended; `seq` is the log's last number."""
        state = self._head.state
        await self._close_open()
        if state.bound is not None:
            seq = await self._head.write(TurnEnded(state.turns, "interrupted", RESTARTED))
        if self._desk.outcome is None:
            self._desk.ended(_interrupted(state.bound), seq)
        await self._finish(Finished(self._head))

    async def _close_open(self) -> None:
        """Close every call that has no end."""
        history = self._head.state.history
        ledger = await self._crew.ledger.ask(Snapshot())
        calls = history[-1].calls if len(history) else ()
        unknown = [call.id for call in calls if call.id not in ledger]
        pending = [item for item in ledger.interactions() if item.status == "pending"]
        never = (*unknown, *(item.call_id for item in pending if not item.started))
        maybe = tuple(item.call_id for item in pending if item.started)
        await self._close(never, "never_started")
        await self._close(maybe, "outcome_unknown")

    async def _close(self, calls: tuple[CallId, ...], reason: Reason) -> None:
        if calls:
            await self._crew.scheduler.ask(CloseCalls(calls, reason))

    def _unwritten(self, error: JournalError) -> None:
        assert self._context is not None
        if not self._incarnation.over:
            crash(self._context, error)


def _interrupted(bound: Binding | None) -> TurnResult:
    """Return how an ask came out that a crash ended."""
    served_by = bound or Binding("none", "")
    attempts = () if bound is None else (Attempt(bound, "interrupted", RESTARTED),)
    return TurnResult("", "failed", served_by, attempts, 0, Usage(), RESTARTED)


def _terminal(result: TurnResult, seq: int) -> ErrorEvent | CompleteEvent:
    return ErrorEvent(result, seq) if result.status == "failed" else CompleteEvent(result, seq)
