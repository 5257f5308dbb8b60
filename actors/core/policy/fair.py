"""Order waiting items by fair queueing: tenants are served by weight, and the sessions of a tenant equally.

The provider actor's admission and the pool of tool threads use this queue. The algorithm is start-time fair queueing on
two levels: among the tenants, and among the sessions of each tenant. Each tenant and each session is a flow with a tag.
When an item of a flow is served, the flow's tag advances by the item's cost divided by the flow's weight, and the flow
with the lowest tag is next. A flow that was idle restarts at the current tag, so that no flow saves up credit or
starves: between two turns of a flow, every other flow gets its weight's share.

An item may have a lead, measured as a cost. Such an item overtakes items of its tenant's other sessions as if its own
session had been charged that much less. The session is still charged the full cost, so it gains nothing in the long
run. Leads have no effect between tenants.
"""

import heapq
from collections import deque
from collections.abc import Callable, Mapping
from itertools import count
from typing import Generic, TypeAlias, TypeVar

T = TypeVar("T")

IDLE = 1024
"""Maximum number of idle flows whose tags are remembered while other flows wait."""


_Entry: TypeAlias = tuple[float, int, str, float]
"""A waiting flow in the heap: the tag minus the lead, a number that breaks ties, the name, and the tag."""


def _no_lead(item: object) -> float:
    return 0.0


class _Flows:
    """A priority queue of tenants, or of one tenant's sessions, that have waiting items."""

    __slots__ = ("_heap", "_now", "_order", "_places", "_tags")

    def __init__(self) -> None:
        self._now = 0.0
        self._tags: dict[str, float] = {}
        self._heap: list[_Entry] = []  # may contain entries of removed flows, but never as the first entry
        self._places: dict[str, int] = {}
        self._order = count()

    def __len__(self) -> int:
        return len(self._places)

    def first_flow(self) -> str:
        return self._heap[0][2]

    def add_flow(self, name: str, lead: float = 0.0) -> None:
        self._push_flow(max(self._now, self._tags.pop(name, 0.0)), name, lead)

    def remove_flow(self, name: str) -> None:
        del self._places[name]
        if len(self._heap) > 2 * len(self._places):
            self._heap = [entry for entry in self._heap if self._is_current(entry)]
            heapq.heapify(self._heap)
        self._drop_stale_entries()

    def _push_flow(self, tag: float, name: str, lead: float) -> None:
        self._places[name] = place = next(self._order)
        heapq.heappush(self._heap, (tag - lead, place, name, tag))

    def _is_current(self, entry: "_Entry") -> bool:
        return self._places.get(entry[2]) == entry[1]

    def _drop_stale_entries(self) -> None:
        while self._heap and not self._is_current(self._heap[0]):
            heapq.heappop(self._heap)

    def charge_first(self, cost: float, *, has_more: bool, lead: float = 0.0) -> None:
        """Charge the first flow for the item that was served.

        Args:
            cost: The cost of that item.
            has_more: True if the flow has more items.
            lead: The cost by which the flow's next item may be served early.
        """
        rank, _, name, tag = heapq.heappop(self._heap)
        # The time of the queue is the rank of the last served flow; flows that join later start at this time.
        self._now = max(self._now, rank)
        del self._places[name]
        self._drop_stale_entries()
        if has_more:
            self._push_flow(tag + cost, name, lead)
        elif self._heap:
            self._tags[name] = tag + cost
            if len(self._tags) > IDLE:
                del self._tags[next(iter(self._tags))]
        else:
            self._tags.clear()  # no flow waits, so past costs no longer matter


class FairQueue(Generic[T]):
    """A queue of items. Each item belongs to a session, and each session to a tenant.

    Args:
        weights: Weights of tenants by name; the weight of any other tenant is 1.
        lead: Returns the cost by which an item may be served early.
    """

    __slots__ = ("_items", "_lead", "_sessions", "_tenants", "_weights", "size")

    def __init__(self, weights: Mapping[str, float], lead: Callable[[T], float] = _no_lead) -> None:
        self._weights, self._lead = weights, lead
        self._tenants = _Flows()
        self._sessions: dict[str, _Flows] = {}
        self._items: dict[tuple[str, str], deque[T]] = {}
        self.size: int = 0

    def put(self, tenant: str, session: str, item: T) -> None:
        """Add an item of a session."""
        self.size += 1
        sessions = self._sessions.get(tenant)
        if sessions is None:
            sessions = self._sessions[tenant] = _Flows()
            self._tenants.add_flow(tenant)
        items = self._items.get((tenant, session))
        if items is None:
            items = self._items[tenant, session] = deque()
            sessions.add_flow(session, self._lead(item))
        items.append(item)

    def first(self) -> T:
        """Return the next item without removing it. The queue must not be empty."""
        tenant = self._tenants.first_flow()
        return self._items[tenant, self._sessions[tenant].first_flow()][0]

    def pop(self, cost: float) -> T:
        """Remove and return the next item, and charge its session and tenant. The queue must not be empty."""
        tenant = self._tenants.first_flow()
        sessions = self._sessions[tenant]
        session = sessions.first_flow()
        items = self._items[tenant, session]
        item = items.popleft()
        self.size -= 1
        if not items:
            del self._items[tenant, session]
        sessions.charge_first(cost, has_more=bool(items), lead=self._lead(items[0]) if items else 0.0)
        if not sessions:
            del self._sessions[tenant]
        self._tenants.charge_first(cost / self._weights.get(tenant, 1.0), has_more=bool(sessions))
        return item

    def remove(self, tenant: str, session: str, item: T) -> bool:
        """Remove an item, for example because its request was cancelled. Return False if the item was not queued."""
        items = self._items.get((tenant, session))
        if items is None or item not in items:
            return False
        items.remove(item)
        self.size -= 1
        if not items:
            del self._items[tenant, session]
            sessions = self._sessions[tenant]
            sessions.remove_flow(session)
            if not sessions:
                del self._sessions[tenant]
                self._tenants.remove_flow(tenant)
        return True

    def clear(self) -> list[T]:
        """Remove all items and return them, grouped by session."""
        removed = [item for items in self._items.values() for item in items]
        self._tenants, self.size = _Flows(), 0
        self._sessions.clear()
        self._items.clear()
        return removed
