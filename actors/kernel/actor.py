"""What an actor's author writes against: `Actor`, and the `Context` it is given when it starts."""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Generic, Never, TypeVarTuple

import anyio

from actors.errors import ActorStopped
from actors.kernel.message import Command, Query
from actors.kernel.ref import C, Ref

if TYPE_CHECKING:
    from actors.kernel.cell import AnyCell, Cell
    from actors.kernel.system import System

Args = TypeVarTuple("Args")


class Actor(Generic[C]):
    """State that changes by one message at a time.

    `level` orders asks: an actor asks only those of greater (depth, level); `System.spawn` gives the depth.
    """

    __slots__ = ()
    level: ClassVar[int] = 0

    @property
    def idle(self) -> bool:
        """Whether the actor may be put away when it has no mail, no child and owes no answer.

        False if it still waits for something that its cell cannot know of. See `System.put_away`.
        """
        return True

    async def started(self, context: "Context[C]") -> None:
        """Prepare, before the first message; also after a restart, on the new object."""

    async def receive(self, command: C) -> None:
        """Handle one message. No other handler of this actor runs meanwhile.

        Never do long work here, and never ask: start a child and hear of its end by a message. An exception
        is a crash: the asker gets `ActorFailed` and the actor is rebuilt by its factory.
        """
        raise NotImplementedError(f"{type(self).__name__} has no receive for {type(command).__name__}.")

    async def stopped(self) -> None:
        """Put away what `started` took, when the actor is stopped in order. Bounded by the stop's deadline.

        It is not called after a crash: the object's state is in doubt then.
        """


@dataclass(frozen=True, slots=True)
class Terminated(Command):
    """An actor ended. Sent on the control queue of those who watch it.

    Args:
        name: Its name.
        ref: Its address.
        error: The last crash if it was given up after too many, or what its `stopped` hook raised.
        faulted: Whether it was given up.
    """

    control: ClassVar[bool] = True
    name: str
    ref: "Ref[Never]"
    error: BaseException | None = None
    faulted: bool = False


class Context(Generic[C]):
    """An actor's hold on the system around it. Given to `started`; keep it."""

    __slots__ = ("_cell",)

    def __init__(self, cell: "Cell[C]") -> None:
        self._cell = cell

    @property
    def ref(self) -> Ref[C]:
        """The actor's own address."""
        return self._cell

    @property
    def system(self) -> "System":
        """The system it runs in."""
        return self._cell.pool.system

    @property
    def name(self) -> str:
        """The actor's name."""
        return self._cell.name

    def start(
        self,
        function: Callable[[*Args], Awaitable[object]],
        *args: *Args,
        name: str | None = None,
    ) -> "Child":
        """Start a child task: `function(*args)`.

        The child may ask, downhill; its asks inherit the deadline of the ask being handled now. Its failure
        is the actor's crash. It is cancelled, and waited for, before the actor stops or restarts.

        Raises:
            ActorStopped: The actor is stopping or restarting.
        """
        cell = self._cell
        if cell.halt:
            raise ActorStopped(
                f"Actor {cell.name!r} is ending and starts no child; send it less, or earlier."
            )
        child = Child(cell, name or str(getattr(function, "__qualname__", "child")), inherited())

        child.launch(partial(function, *args))
        return child

    def watch(self: "Context[Terminated]", ref: "Ref[Never]") -> None:
        """Receive `Terminated` on the control queue when the actor behind `ref` ends, or now if it has."""
        cell = self._cell
        self.system.watch(ref, cell.tell_terminated)


class Child:
    """A task that works for an actor."""

    __slots__ = ("_scope", "cell", "deadline", "disowned", "name")

    _scope: anyio.CancelScope

    def __init__(self, cell: "AnyCell", name: str, deadline: float | None) -> None:
        self.cell = cell
        self.name = name
        self.deadline = deadline
        self.disowned = False

    def cancel(self) -> None:
        """Cancel the task. Its end by this is not a failure; nothing happens if it has ended."""
        self._scope.cancel()

    def launch(self, work: Callable[[], Awaitable[object]]) -> None:
        """Start `work` as this child's task."""
        cell = self.cell
        if cell.children is None:
            cell.children = set()
        cell.children.add(self)
        cell.pool.active += 1

        async def run() -> None:
            current.set(self)
            await work()

        self._scope = cell.pool.launch(run, self._ended, name=f"{cell.name}/{self.name}")

    def _ended(self, error: BaseException | None) -> None:
        pool = self.cell.pool
        if isinstance(error, Exception) or (error is not None and pool.astray(error)):
            self._failed(error)
        elif error is not None:
            pool.doom(error)
        self.cell.child_ended(self)
        pool.rest()

    def _failed(self, error: BaseException) -> None:
        expected = self._scope.cancel_called and isinstance(error, ActorStopped)
        if self.disowned or expected or not self.cell.fail(error):
            self.cell.pool.report(self.cell.name, error)


def inherited() -> float | None:
    """Return the deadline (loop time) of the ask that the running task works for, if there is one."""
    acting = current.get()
    if isinstance(acting, Child):
        return acting.deadline
    if acting is not None and isinstance(acting.current, Query):
        return acting.current.reply.deadline
    return None


# Who is acting: the cell whose handler runs in this task, or the child that this task is. None outside.
current: ContextVar["AnyCell | Child | None"] = ContextVar("current", default=None)
