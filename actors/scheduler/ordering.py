"""Writers to the same thing, one after another: the order of a session's calls that name a resource.

A call takes its place behind those that came before it and name one of its keys, and begins when they have ended. One
that was ended without its tool leaves the resource in use: who comes behind it is told so, and does not run.
"""

from collections.abc import Iterable

from actors.errors import ResourceBusy
from actors.kernel.event_loop import Waiter, event_loop, wake


class ResourceWriter:
    """A call's place in the order."""

    __slots__ = ("_before", "_keys", "_order", "_waiting", "is_closed", "is_over")

    is_closed: bool
    is_over: bool

    def __init__(self, keys: tuple[str, ...], order: "dict[str, list[ResourceWriter]]") -> None:
        self._keys, self._order = keys, order
        self._before = [writer for key in keys for writer in order.get(key, ())]
        self._waiting: list[Waiter] = []
        self.is_closed = self.is_over = False

    @property
    def has_to_wait(self) -> bool:
        """True if somebody is before it."""
        return bool(self._before)

    async def turn(self) -> None:
        """Wait until it may begin.

        Raises:
            ResourceBusy: A call before it was closed, and its tool goes on.
        """
        for writer in self._before:
            await writer._wait_closed()
            if not writer.is_over:
                raise ResourceBusy(f"a call that was ended still works on {', '.join(writer._keys)}")
        self._before.clear()

    async def _wait_closed(self) -> None:
        while not self.is_closed:
            waiter = event_loop().waiter()
            self._waiting.append(waiter)
            await waiter

    def close(self) -> None:
        """Note that its call has ended, whatever its tool does."""
        self.is_closed = True
        for waiter in self._waiting:
            wake(waiter)
        self._waiting.clear()

    def end(self) -> None:
        """Note that its tool has ended, or never began."""
        if self.is_over:
            return
        self.is_over = True
        for key in self._keys:
            self._order[key].remove(self)
            if not self._order[key]:
                del self._order[key]
        self.close()


class ResourceOrder:
    """The order of one session's writers: of each key those that are not over, the first one first."""

    def __init__(self) -> None:
        self._writers: dict[str, list[ResourceWriter]] = {}

    def __len__(self) -> int:
        return len(self._writers)

    def enter(self, keys: Iterable[str]) -> ResourceWriter:
        """Return a place behind all that have one of these keys; `end` it in any case."""
        named = tuple(dict.fromkeys(keys))
        writer = ResourceWriter(named, self._writers)
        for key in named:
            self._writers.setdefault(key, []).append(writer)
        return writer
