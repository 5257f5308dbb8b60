"""A cell: the passive body of an actor. A name, bounded queues, counters; no task of its own.

Everything here is synchronous but for the two waits a sender may have: for room, and for an answer. Who takes
mail out and runs handlers is in `runner`; what happens at crash and stop is in `supervisor`. One cell can
stand idle by the hundred thousand, so what it may need later (queues, children, watchers) is made late
and thrown away early.
"""

from collections.abc import Callable
from contextlib import suppress
from copy import copy
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, TypeAlias

from actors.errors import ActorStopped, AskTimeout, AskUphill, Draining, KernelError, MailboxFull
from actors.kernel.account import CellInfo, Reason, State
from actors.kernel.actor import Actor, Child, Terminated, current
from actors.kernel.mailbox import BoundedQueue, Mailbox, WhenFull
from actors.kernel.message import (
    UNSENT,
    Command,
    Failure,
    Guard,
    Query,
    R,
    Reply,
    attach,
    dropped,
    fail_slot,
    unasked,
)
from actors.kernel.parking import Waiter
from actors.kernel.ref import C, Ref

if TYPE_CHECKING:
    from actors.kernel.runner import Pool, Runner
    from actors.kernel.supervisor import Restart, Unit

SPARES = 64  # empty queues kept for the next cell that gets mail
AnyCell: TypeAlias = "Cell[Any]"  # Any: the kernel serves cells of every protocol; refs carry the type


class Cell(Ref[C]):
    """One actor's queues, counters and flags. Users hold it as a `Ref`.

    `closed`: the quick way in is shut, `_offer` finds out why. `busy`: it is in the ready queue, in the hands
    of a runner, or between crash and restart, so a sender need not schedule it. `halt`: no further message is
    handled before `supervisor.wind_down` has run.
    """

    __slots__ = (
        "actor",
        "busy",
        "children",
        "closed",
        "control",
        "current",
        "deferred",
        "depth",
        "endings",
        "factory",
        "failure",
        "fresh",
        "halt",
        "handled",
        "level",
        "mail",
        "name",
        "orphaned",
        "pool",
        "restart",
        "restarts",
        "runner",
        "sent",
        "settings",
        "since",
        "state",
        "unit",
        "watchers",
    )

    def __init__(
        self,
        pool: "Pool",
        factory: Callable[[], Actor[C]],
        name: str,
        settings: Mailbox,
        restart: "Restart",
        depth: int,
    ) -> None:
        self.pool = pool
        self.factory = factory
        self.name = name
        self.settings = settings
        self.restart = restart
        self.depth = depth
        self.actor: Actor[C] | None = factory()
        self.level = type(self.actor).level
        self.fresh = type(self.actor).started is not Actor.started  # its hook has yet to run
        self.state = State.RUNNING
        self.closed = self.busy = self.halt = False
        self.mail: BoundedQueue[Command] | None = None
        self.control: BoundedQueue[Command] | None = None
        self.current: Command | None = None
        self.runner: Runner | None = None
        self.sent = self.handled = self.restarts = 0
        self.since = 0.0
        self.failure: BaseException | None = None
        self.unit: Unit | None = None
        self.children: set[Child] | None = None
        self.orphaned: Waiter | None = None  # woken when the last child ended
        self.deferred: set[Waiter] | None = None  # questions whose handler returned before the answer
        self.watchers: list[Callable[[Terminated], object]] | None = None
        self.endings: list[Waiter] | None = None

    def __repr__(self) -> str:
        return f"<Ref {self.name!r} {self.state.value}>"

    # Sending

    async def tell(self, command: C) -> None:
        if not (command.plain and self._quick(command)):
            await self._enter(command)

    def tell_nowait(self, command: C) -> None:
        if not (command.plain and self._quick(command)):
            self._offer(_with_reply(command), may_wait=False)

    async def ask(self, query: Query[R], *, timeout: float | None = None) -> R:
        pool, caller = self.pool, current.get()
        deadline = None if caller is None and timeout is None else self._deadline(caller, timeout)
        slot = pool.waiter()
        if query.reply is not UNSENT:
            query = copy(query)
        attach(query, Reply(slot, deadline))
        pool.tally.asked += 1
        try:
            if query.special or not self._quick(query):
                await self._enter(query, deadline)
            del query  # or this frame would keep the reply alive after everyone else forgot it
            result = await (slot if deadline is None else self._until(slot, deadline))
        except BaseException as error:
            self._unasked(slot, error)
            raise
        if type(result) is Failure:
            self._count_failure(result.error)
            raise result.error
        pool.tally.answered += 1
        answer: R = result
        return answer

    def _quick(self, command: Command) -> bool:
        if self.closed:
            return False
        mail = self.mail
        if mail is None:
            mail = self.mail = self._fresh_queue()
        elif len(mail) >= mail.limit:
            return False
        mail.append(command)
        self.sent += 1
        if not self.busy:
            self.pool.schedule(self)
        return True

    def _fresh_queue(self) -> BoundedQueue[Command]:
        capacity, spares = self.settings.capacity, self.pool.spares
        if not spares:
            return BoundedQueue(capacity)
        queue = spares.pop()
        queue.capacity = queue.limit = capacity
        return queue

    async def _enter(self, command: Command, deadline: float | None = None) -> None:
        """Put `command` by any way but the quick one, waiting for room if that is the policy."""
        command = _with_reply(command)
        while (queue := self._offer(command, may_wait=True)) is not None:
            waiter = self.pool.parking.waiter()
            if deadline is None:
                await queue.room(waiter)
                continue
            timer = self.pool.deadlines.at(deadline, partial(_wake, waiter))
            try:
                await queue.room(waiter)
            finally:
                self.pool.deadlines.withdraw(timer)
            if timer.action is None and self.pool.parking.now() >= deadline:
                queue.grant()
                raise self._late()

    def _offer(self, command: Command, *, may_wait: bool) -> BoundedQueue[Command] | None:
        """Put `command`, or return the queue to wait at for room."""
        if (refusal := self._refusal()) is not None:
            error, reason = refusal
            self.pool.tally.refuse(self.name, command, reason)
            raise error
        queue = self._queue(command)
        if command.coalesces:
            self._supersede(queue, command)
        if len(queue) >= queue.limit and not self._make_room(queue, command):
            if (
                may_wait
                and (command.control or self.settings.when_full is WhenFull.WAIT)
                and self._may_wait()
            ):
                return queue
            self.pool.tally.refuse(self.name, command, "overflow")
            raise self._full()
        queue.append(command)
        self.sent += 1
        if not self.busy:
            self.pool.schedule(self)
        return None

    def _queue(self, command: Command) -> BoundedQueue[Command]:
        if command.control:
            if self.control is None:
                self.control = BoundedQueue(self.settings.control)
            return self.control
        if self.mail is None:
            self.mail = self._fresh_queue()
        return self.mail

    def _refusal(self) -> tuple[KernelError, Reason] | None:
        if self.state is State.RUNNING or self.state is State.RESTARTING:
            if not self.pool.draining or current.get() is not None:
                return None
            return Draining(
                f"Actor {self.name!r} takes no new work: its system is shutting down."
            ), "draining"
        return self.gone(), "stopped"

    def gone(self) -> ActorStopped:
        """Return the error for a message that comes too late."""
        return ActorStopped(f"Actor {self.name!r} is {self.state.value}; it takes no messages.")

    def _full(self) -> MailboxFull:
        capacity = self.settings.capacity
        return MailboxFull(
            f"Mailbox of actor {self.name!r} is full ({capacity} messages); send later or slower."
        )

    def _late(self) -> AskTimeout:
        return AskTimeout(
            f"Actor {self.name!r} did not answer before the deadline; give it longer, or ask again."
        )

    def _make_room(self, queue: BoundedQueue[Command], command: Command) -> bool:
        if command.control:
            return False
        match self.settings.when_full:
            case WhenFull.DROP_OLDEST:
                self._overflow(queue.popleft())
                return True
            case WhenFull.COALESCE:
                return self._supersede(queue, command)
            case _:
                return False

    def _supersede(self, queue: BoundedQueue[Command], command: Command) -> bool:
        """Drop the oldest queued message of the type of `command`, if there is one."""
        for index, queued in enumerate(queue):
            if type(queued) is type(command):
                del queue[index]
                self._overflow(queued)
                return True
        return False

    def _overflow(self, command: Command) -> None:
        self.bury(command, "overflow", self._full())

    def _may_wait(self) -> bool:
        """Tell whether the caller may wait for room here: all may but handlers, and these downhill."""
        caller = current.get()
        return not isinstance(caller, Cell) or not caller.handling() or self.below(caller)

    # Asking

    def handling(self) -> bool:
        """Tell whether the running task is in this actor's handler, itself and not a task it started."""
        return self.runner is not None and self.runner.task is self.pool.parking.task()

    def below(self, other: AnyCell) -> bool:
        """Tell whether this actor stands below `other`, so that `other` may wait for it."""
        return (self.depth, self.level) > (other.depth, other.level) or self.pool is not other.pool

    def _deadline(self, caller: "AnyCell | Child | None", timeout: float | None) -> float | None:
        """Check that `caller` may ask, and return its deadline."""
        inherited: float | None = None
        if isinstance(caller, Child):
            self._check(caller.cell, in_handler=False)
            inherited = caller.deadline
        elif caller is not None:
            self._check(caller, in_handler=caller.handling())
        if timeout is None and inherited is None:
            return None
        now = self.pool.now()
        deadline = min(inf if timeout is None else now + timeout, inf if inherited is None else inherited)
        if deadline <= now:
            raise self._late()
        return deadline

    def _check(self, asker: AnyCell, *, in_handler: bool) -> None:
        if in_handler:
            raise KernelError(
                f"The handler of {asker.name!r} must not ask, as it asked {self.name!r}; let a child ask."
            )
        if not self.below(asker):
            raise AskUphill(
                f"Actor {asker.name!r} (depth {asker.depth}, level {asker.level}) must not ask {self.name!r} "
                f"(depth {self.depth}, level {self.level}): asks go downhill; tell it, or answer by an event."
            )

    async def _until(self, slot: Waiter, deadline: float) -> Any:  # Any: see Waiter
        deadlines = self.pool.deadlines
        timer = deadlines.at(deadline, partial(self._expire, slot))
        try:
            return await slot
        finally:
            deadlines.withdraw(timer)

    def _expire(self, slot: Waiter) -> None:
        fail_slot(slot, self._late())

    def _unasked(self, slot: Waiter, error: BaseException) -> None:
        if isinstance(error, KernelError):
            self._count_failure(error)
        else:
            self.pool.tally.abandoned += 1
        if not slot.done():
            slot.set_result(None)  # the reply is dropped next, and must not report it

    def _count_failure(self, error: BaseException) -> None:
        if isinstance(error, AskTimeout):
            self.pool.tally.timed_out += 1
        else:
            self.pool.tally.failed += 1

    # What the kernel tells it

    def forgotten(self, slot: Waiter) -> None:
        """Fail a question whose reply is gone. A finalizer calls it, in any thread and at any moment."""
        if self.deferred is not None:
            self.deferred.discard(slot)
        if slot.done():
            return
        with suppress(RuntimeError):  # the loop has ended, and the asker with it
            self.pool.parking.soon(partial(fail_slot, slot, dropped(self.name)))

    def bury(self, command: Command, reason: Reason, error: KernelError) -> None:
        """Make `command`, which was taken and not handled, a dead letter; its asker gets `error`."""
        self.pool.tally.bury(self.name, command, reason)
        if isinstance(command, Query):
            command.reply.fail(error)

    def fail(self, error: BaseException) -> bool:
        """Have the actor crash with `error` as soon as no handler runs. False if it is ending anyway."""
        if self.halt:
            return False
        self.failure = error
        self.halt = True
        if not self.busy:
            self.pool.schedule(self)
        return True

    def child_ended(self, child: Child) -> None:
        """Forget `child`."""
        if self.children is not None:
            self.children.discard(child)
            if not self.children:
                self.children = None
                if self.orphaned is not None:
                    _wake(self.orphaned)

    def tell_terminated(self, terminated: Terminated) -> None:
        """Put `terminated` on the control queue, full or not: there is one for each watch."""
        if self.state is State.RUNNING or self.state is State.RESTARTING:
            self._queue(terminated).append(terminated)
            self.sent += 1
            if not self.busy:
                self.pool.schedule(self)

    def rest(self) -> None:
        """Note that there is nothing to do, and give back the queues, unless somebody waits at one."""
        self.busy = False
        pool, mail = self.pool, self.mail
        pool.rest()
        if mail is not None and mail.waiting is None and mail.limit == mail.capacity:
            self.mail = None
            if len(pool.spares) < SPARES:
                pool.spares.append(mail)
        if self.control is not None and self.control.unused:
            self.control = None

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do, nothing on its way, and nothing that the actor waits for."""
        if self.state is not State.RUNNING or self.busy or self.halt:
            return False
        if self.mail is not None or self.control is not None or self.children:
            return False
        owes = any(not slot.done() for slot in self.deferred or ())  # an asker that went away is owed nothing
        return not owes and self.actor is not None and self.actor.idle

    def bury_expired(self) -> None:
        """Make the query in hand, which ended before its turn came, a dead letter."""
        query, self.current = self.current, None
        assert query is not None
        self.pool.tally.bury(self.name, query, "expired")

    def defer(self, reply: Reply[Any]) -> None:  # Any: see AnyCell
        """Remember a question whose handler returned before it was answered."""
        reply.guard = Guard(reply.slot, self)
        if self.deferred is None:
            self.deferred = set()
        self.deferred.add(reply.slot)

    def info(self, now: float) -> CellInfo:
        """Return the cell as it stands at `now`."""
        mail, control = len(self.mail or ()), len(self.control or ())
        return CellInfo(
            name=self.name,
            state=self.state,
            mail=mail,
            control=control,
            oldest=max(0.0, now - self.since) if mail or control else 0.0,
            restarts=self.restarts,
            handled=self.handled,
            current=None if self.current is None else type(self.current).__name__,
            children=len(self.children or ()),
        )


def _wake(waiter: Waiter) -> None:
    if not waiter.done():
        waiter.set_result(False)


def _with_reply(command: Command) -> Command:
    """Return `command`; a query that was told, so has no reply or an old one, gets one that goes nowhere."""
    if isinstance(command, Query) and command.reply.done:
        return unasked(command)
    return command
