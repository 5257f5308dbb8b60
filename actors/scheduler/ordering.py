"""Order the calls of a session that write to the same resource.

Keys identify the resources to which a call writes. A call waits for all earlier calls with one of its keys. If an
earlier call was closed while its tool still runs, the resource remains in use, so the later calls fail with
`ResourceBusy` and do not run.
"""

from collections.abc import Iterable

from actors.errors import ResourceBusy
from actors.kernel.event_loop import Waiter, event_loop, wake


class ResourceWriter:
    """A call in the order of the calls that write to the same resources.

    Args:
        keys: The resources that the call writes to.
        order: For each key, the calls whose tools have not ended, oldest first.
    """

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
        """True if an earlier call writes to the same resource."""
        return bool(self._before)

    async def wait_for_turn(self) -> None:
        """Wait until all earlier calls with one of the keys have ended.

        Raises:
            ResourceBusy: An earlier call was closed while its tool still runs.
        """
        for writer in self._before:
            await writer._wait_closed()
            if not writer.is_over:
                raise ResourceBusy(
                    f"an earlier call was stopped, but its tool still uses {', '.join(writer._keys)}"
                )
        self._before.clear()

    async def _wait_closed(self) -> None:
        """Wait until this call is closed."""
        while not self.is_closed:
            waiter = event_loop().waiter()
            self._waiting.append(waiter)
            await waiter

    def mark_closed(self) -> None:
        """Record that the call is closed, and wake the calls that wait. The tool of the call may still run."""
        self.is_closed = True
        for waiter in self._waiting:
            wake(waiter)
        self._waiting.clear()

    def leave_order(self) -> None:
        """Remove the call from the order, because its tool has ended or will not start."""
        if self.is_over:
            return
        self.is_over = True
        for key in self._keys:
            self._order[key].remove(self)
            if not self._order[key]:
                del self._order[key]
        self.mark_closed()


class ResourceOrder:
    """The order of one session's calls: for each key, the calls whose tools have not ended, oldest first."""

    def __init__(self) -> None:
        self._writers: dict[str, list[ResourceWriter]] = {}

    def __len__(self) -> int:
        return len(self._writers)

    def add_writer(self, keys: Iterable[str]) -> ResourceWriter:
        """Add a call to the order, after all calls with one of these keys.

        The caller must call `leave_order` on the returned writer when the tool has ended or will not start.
        """
        named = tuple(dict.fromkeys(keys))
        writer = ResourceWriter(named, self._writers)
        for key in named:
            self._writers.setdefault(key, []).append(writer)
        return writer
