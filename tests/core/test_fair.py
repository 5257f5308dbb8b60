"""Check fair queueing: weighted between tenants, equal between sessions, without starvation."""

from collections import Counter, deque
from typing import ClassVar, TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from actors.core.policy.fair import FairQueue

NAMES = st.sampled_from("abcd")


@given(st.lists(st.tuples(st.sampled_from(["put", "take", "remove"]), NAMES, NAMES), max_size=120))
def test_each_queued_item_is_taken_once_and_in_the_order_of_its_session(
    steps: list[tuple[str, str, str]],
) -> None:
    queue: FairQueue[tuple[str, str, int]] = FairQueue({"a": 3, "b": 0.5})
    model: dict[tuple[str, str], deque[tuple[str, str, int]]] = {}
    for number, (step, tenant, session) in enumerate(steps):
        waiting = model.setdefault((tenant, session), deque())
        item = (tenant, session, number)
        if step == "put":
            queue.put(tenant, session, item)
            waiting.append(item)
        elif step == "remove":
            target = waiting[-1] if waiting else item
            assert queue.remove(tenant, session, target) == bool(waiting)
            if waiting:
                waiting.pop()
        elif queue.size:
            expected = queue.first()
            taken = queue.pop(1 + number % 3)
            assert taken == expected == model[taken[:2]].popleft()
        assert queue.size == sum(map(len, model.values()))
    left = sorted(queue.clear())
    assert left == sorted(item for items in model.values() for item in items)
    assert queue.size == 0


@given(
    weights=st.dictionaries(NAMES, st.sampled_from([0.5, 1.0, 2.0, 5.0]), min_size=2),
    sessions=st.integers(1, 6),
)
def test_busy_tenants_are_served_in_proportion_to_their_weights(
    weights: dict[str, float], sessions: int
) -> None:
    queue: FairQueue[str] = FairQueue(weights)
    for number, tenant in enumerate(weights):
        for session in range(sessions * (number + 1)):  # some with many more sessions than others
            queue.put(tenant, str(session), tenant)
    served = Counter[str]()
    for turn in range(600):
        tenant = queue.pop(1.0)
        served[tenant] += 1
        queue.put(tenant, f"new {turn}", tenant)
    whole = sum(weights.values())
    for tenant, weight in weights.items():
        assert abs(served[tenant] - 600 * weight / whole) <= 2 + weight / min(weights.values())


def test_sessions_of_a_tenant_share_equally_regardless_of_their_backlog() -> None:
    queue: FairQueue[str] = FairQueue({})
    for _ in range(100):
        queue.put("t", "greedy", "greedy")
    for number in range(5):
        queue.put("t", f"s{number}", f"s{number}")
    assert Counter(queue.pop(1.0) for _ in range(12))["greedy"] == 7  # alternating, then alone
    assert queue.size == 93


def test_tenants_with_higher_costs_are_served_less_often() -> None:
    queue: FairQueue[str] = FairQueue({})
    served = Counter[str]()
    for name in ("dear", "cheap"):
        queue.put(name, "s", name)
    for _ in range(110):
        name = queue.first()
        queue.pop(10.0 if name == "dear" else 1.0)
        served[name] += 1
        queue.put(name, "s", name)
    assert 8 <= served["dear"] <= 12


def test_a_tenant_gains_no_priority_by_being_idle() -> None:
    queue: FairQueue[str] = FairQueue({})
    for _ in range(50):
        queue.put("busy", "s", "busy")
    for _ in range(40):
        queue.pop(1.0)
    for _ in range(5):
        queue.put("idle", "s", "idle")
    assert Counter(queue.pop(1.0) for _ in range(6)) == {"busy": 3, "idle": 3}


class Named(str):
    """A name that counts its comparisons and hashes."""

    __slots__ = ()
    seen: ClassVar[int] = 0

    def __eq__(self, other: object) -> bool:
        Named.seen += 1
        return str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        Named.seen += 1
        return str.__ne__(self, other)

    def __hash__(self) -> int:
        Named.seen += 1
        return str.__hash__(self)


def test_removing_thousands_of_items_takes_linear_time() -> None:
    queue: FairQueue[int] = FairQueue({})
    names = [Named(f"s{number}") for number in range(2000)]
    for number, name in enumerate(names):
        queue.put("t", name, number)
    Named.seen = 0
    for number, name in enumerate(names[:-1]):
        assert queue.remove("t", name, number)
    assert Named.seen < 50 * len(names)
    assert queue.pop(1.0) == len(names) - 1
    assert queue.size == 0


LEAD = 3.0
Item: TypeAlias = tuple[str, str, bool]
"""A tenant, a session, and whether the item has a lead."""


def lead_of(item: Item) -> float:
    return LEAD if item[2] else 0.0


def test_a_queued_item_with_a_head_start_moves_ahead_by_exactly_that_amount() -> None:
    queue: FairQueue[Item] = FairQueue({}, lead_of)
    for name in ("long", *"abcd"):
        queue.put("t", name, ("t", name, False))
    order: list[str] = []
    while len(order) < 12:
        _, name, _ = queue.pop(1.0)
        order.append(name)
        if name == "long":
            queue.put("t", "long", ("t", "long", True))
    assert order[:8] == ["long", "long", "long", *"abcd", "long"]


def test_a_head_start_does_not_increase_the_long_term_share_of_a_session() -> None:
    queue: FairQueue[Item] = FairQueue({}, lead_of)
    for number in range(20):
        queue.put("t", f"s{number}", ("t", f"s{number}", number % 2 == 0))
    served = Counter[str]()
    for _ in range(2000):
        item = queue.pop(1.0)
        served[item[1]] += 1
        queue.put("t", item[1], item)
    assert max(served.values()) - min(served.values()) <= LEAD + 1


@given(
    st.lists(st.tuples(NAMES, NAMES, st.booleans()), min_size=1, max_size=60),
    st.dictionaries(NAMES, st.sampled_from([0.5, 1.0, 2.0]), max_size=3),
)
def test_a_head_start_does_not_change_the_order_of_tenants(
    items: list[Item], weights: dict[str, float]
) -> None:
    plain: FairQueue[Item] = FairQueue(weights)
    led: FairQueue[Item] = FairQueue(weights, lead_of)
    for number, item in enumerate(items):
        for queue in (plain, led):
            queue.put(item[0], item[1], item)
        if number % 3 == 2:
            assert plain.pop(1.0)[0] == led.pop(1.0)[0]
    while plain.size:
        assert plain.pop(1.0)[0] == led.pop(1.0)[0]
