"""What an actor's author writes against: `Actor`, and the `Context` it is given when it starts."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVarTuple

from actors.kernel.ref import C, D, Ref

Args = TypeVarTuple("Args")


@dataclass(frozen=True, slots=True)
class Restart:
    """How often a crash is answered by a restart.

    Args:
        intensity: Restarts allowed within `period`; at one crash more the actor is given up. 0: at the first.
        period: Seconds.
        backoff: Seconds before the first restart, and at most; doubles with each crash within `period`.
    """

    intensity: int = 3
    period: float = 60.0
    backoff: tuple[float, float] = (0.05, 5.0)


@dataclass(frozen=True, slots=True)
class Terminated:
    """An actor ended. What those are told who watch it.

    Args:
        name: Its name.
        error: The last crash if it was given up after too many, or what its `stopped` hook raised.
        faulted: Whether it was given up.
    """

    name: str
    error: BaseException | None = None
    faulted: bool = False


class Child(ABC):
    """A task that works for an actor."""

    __slots__ = ()

    @abstractmethod
    def cancel(self) -> None:
        """Cancel the task. Its end by this is not a failure; nothing happens if it has ended."""


class Context(ABC, Generic[C]):
    """An actor's hold on the system around it, for the life of one object. Given to `started`; keep it.

    After a crash of the actor it holds nothing: what the lost object still does through it has no effect.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def ref(self) -> Ref[C]:
        """The actor's own address."""

    @abstractmethod
    def start(
        self,
        function: Callable[[*Args], Coroutine[Any, Any, object]],  # Any: the traps of the event loop
        *args: *Args,
        name: str | None = None,
        holds: bool = False,
    ) -> Child:
        """Start a child task: `function(*args)`.

        The child may ask, downhill; its asks inherit the deadline of the ask being handled now. Its failure
        is the actor's crash. It is cancelled, and waited for, before the actor stops or restarts.

        Args:
            function: What to do.
            args: Its arguments.
            name: Shown by debuggers.
            holds: Whether the actor handles nothing until the child has ended.

        Raises:
            ActorStopped: The actor is stopping or restarting.
        """

    @abstractmethod
    def tell(self, ref: Ref[D], command: D) -> None:
        """Send from a handler, which never waits. If there is no room, the actor handles nothing until there is.

        Raises:
            MailboxFull: There is no room, and the receiver does not stand below this actor.
            ActorStopped: The receiver has ended.
        """

    @abstractmethod
    def hold(self) -> None:
        """Handle nothing, after the message in hand, until `release`."""

    @abstractmethod
    def release(self) -> None:
        """Handle messages again."""

    @abstractmethod
    def fail(self, error: BaseException) -> None:
        """Crash with `error`: at once, or behind the handler that runs now."""


class Actor(Generic[C]):
    """State that changes by one message at a time. Its methods are plain functions: none of them can wait.

    `level` orders asks: an actor's children ask only actors of greater (depth, level); `System.spawn` gives the depth.
    """

    __slots__ = ()
    level: ClassVar[int] = 0

    @property
    def idle(self) -> bool:
        """Whether the actor may be passivated when it has no mail, no child and owes no answer.

        False if it still waits for something that the kernel cannot know of. See `System.passivate`.
        """
        return True

    def started(self, context: Context[C]) -> None:
        """Prepare, before the first message; also after a restart, on the new object."""

    def receive(self, command: C) -> None:
        """Handle one message. No other handler of this actor runs meanwhile.

        It often runs on the stack of whoever sent the message, so it must be short; for what takes time, start a
        child and hear of its end by a message. An exception is a crash: the asker gets `ActorFailed` and the actor
        is rebuilt by its factory.
        """
        raise NotImplementedError(f"{type(self).__name__} has no receive for {type(command).__name__}.")

    def stopped(self) -> None:
        """Give back what `started` took, when the actor is stopped in order, after its children have ended.

        It is not called after a crash: the object's state is in doubt then.
        """
