"""What actors send each other: commands, and queries with a one-shot place for the answer.

A reply never travels through a mailbox, so a full mailbox cannot hold one up, and a late one falls into
nothing instead of reaching a later question.
"""

from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from actors.errors import ActorFailed
from actors.kernel.parking import Nobody, Waiter

if TYPE_CHECKING:
    from actors.kernel.cell import AnyCell

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)  # to its asker a query is a promise of its answer


class Command:
    """Base of all messages. Subclasses are frozen dataclasses, with or without slots.

    `control = True` sends a command by the control queue, which is served before mail. `coalesces = True`
    lets a newer command of the same type replace one still queued; what it replaces is a dead letter.
    """

    __slots__ = ()
    control: ClassVar[bool] = False
    coalesces: ClassVar[bool] = False
    asks: ClassVar[bool] = False
    special: ClassVar[bool] = False  # control or coalescing: one test on the hot path of an ask
    plain: ClassVar[bool] = True  # neither special nor a query: one test on the hot path of a tell

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        cls.special = cls.control or cls.coalesces
        cls.plain = not (cls.special or cls.asks)


class Failure:
    """How a slot carries an error. A bare exception could not be told from an answer that is one."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error


class Reply(Generic[R]):
    """Where the answer to one query goes. The first answer wins; later ones fall into nothing.

    It may be kept and used after the handler returned, from any task of the same loop. If it is forgotten,
    the asker gets `ActorFailed` when the last reference goes.
    """

    __slots__ = ("deadline", "guard", "slot")
    guard: "Guard"

    def __init__(self, slot: Waiter, deadline: float | None = None) -> None:
        self.slot = slot
        self.deadline = deadline

    @property
    def done(self) -> bool:
        """Whether the question has ended: answered, failed, expired or abandoned by its asker."""
        return self.slot.done()

    def send(self, value: R) -> None:
        """Answer with `value`."""
        slot = self.slot
        if not slot.done():
            slot.set_result(value)

    def fail(self, error: BaseException) -> None:
        """Answer with `error`, which the asker's `ask` raises."""
        fail_slot(self.slot, error)


class Guard:
    """Held by a reply that outlives its handler; goes with it, and fails the question if that is open then.

    Only such replies have one: a finalizer on every reply would slow every ask.
    """

    __slots__ = ("_cell", "_slot")

    def __init__(self, slot: Waiter, cell: "AnyCell") -> None:
        self._slot = slot
        self._cell = cell

    def __del__(self) -> None:
        self._cell.forgotten(self._slot)


UNSENT: Reply[Any] = Reply(Nobody())  # Any: it is answered by nobody
"""The reply of a query that was neither asked nor told. To look for an attribute that is missing would be slow."""


class Query(Command, Generic[R_co]):
    """A command that wants an answer of type `R_co`. `Ref.ask` attaches the reply."""

    asks: ClassVar[bool] = True
    plain: ClassVar[bool] = False
    reply: Reply[R_co] = UNSENT


def attach(query: Query[R], reply: Reply[R]) -> None:
    """Give `query` a reply, though it is frozen."""
    object.__setattr__(query, "reply", reply)


def unasked(query: Query[R]) -> Query[R]:
    """Return `query`, which is told and not asked, with a reply nobody waits for; a copy if it was sent before."""
    if query.reply is not UNSENT:
        query = copy(query)
    attach(query, Reply(Nobody()))
    return query


def fail_slot(slot: Waiter, error: BaseException) -> None:
    """End the question behind `slot` with `error`, unless it has ended."""
    if not slot.done():
        slot.set_result(Failure(error))


def dropped(name: str) -> ActorFailed:
    """Return what an asker gets when nobody holds the reply any more."""
    return ActorFailed(f"Actor {name!r} dropped a question without an answer; keep its reply, or answer it.")
