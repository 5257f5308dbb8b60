"""Blocking tools under load: a thread that becomes free goes to one waiting call, in turn, and none is lost."""

import threading
from collections.abc import Callable, Iterator

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors import ToolContext, tool
from actors.config import RuntimeLimits
from actors.errors import ThreadsBusy
from actors.kernel.event_loop import Waiter, wake
from actors.scheduler import calls, in_threads
from actors.scheduler.threads import SlotRequest, Threads, ThreadSlot
from actors.testing import Call, OpenAIServer, Say, Turn
from tests.runtime_support import Json, runtime_with

LIMITS = RuntimeLimits(tool_threads=1, thread_wait_timeout=3600)


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[Threads]:
    """Return a new thread pool, used by the tools of this test."""
    pool = Threads()
    monkeypatch.setattr(calls, "THREADS", pool)
    pool.register_runtime()
    yield pool
    pool.unregister_runtime()


async def wait_until(condition: Callable[[], object]) -> None:
    while not condition():
        await anyio.lowlevel.checkpoint()


class QueueingTool:
    """A tool whose first call blocks until `go` is set, with the session ids of its calls in the order they ran."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.go = threading.Event()

        @tool(effects="pure")
        def work(context: ToolContext[None]) -> str:
            """Work."""
            self.order.append(context.session_id)
            self.go.wait(60)
            return "done"

        self.tool = work

    @staticmethod
    def server(many: int) -> OpenAIServer:
        """Return a server whose model makes `many` calls of the tool, once per session."""

        def turn(request: Json) -> Turn:
            is_answered = any(message["role"] == "tool" for message in request["messages"])
            return Turn(Say("Done.")) if is_answered else Turn(*[Call("work", {})] * many)

        return OpenAIServer(turn)


@pytest.mark.anyio
@pytest.mark.requirement("PROMISE-8")
async def test_tenants_and_their_sessions_take_turns_with_the_threads(pool: Threads) -> None:
    line = QueueingTool()
    tenants = {"a1": "a", "a2": "a", "a3": "a", "b1": "b"}
    async with runtime_with(a=line.server(3), limits=LIMITS) as runtime, anyio.create_task_group() as tasks:
        with_one = 0
        for name, tenant in tenants.items():  # the very first call runs, and all others wait
            session = await runtime.open("a", tools=[line.tool], id=name, tenant=tenant)
            tasks.start_soon(session.ask, "Go.")
            with_one += 3
            await wait_until(lambda: pool.waiting == with_one - 1)  # noqa: B023  awaited at once
        line.go.set()
    order = line.order[1:]
    assert order[:6].count("b1") == 3  # half of the threads go to the tenant with one session
    of_a = [name for name in order if name != "b1"]
    assert sorted(of_a[:3]) == ["a1", "a2", "a3"]
    assert sorted(of_a[3:6]) == ["a1", "a2", "a3"]


@pytest.mark.anyio
@pytest.mark.requirement("PROMISE-9")
async def test_a_thread_that_becomes_free_wakes_one_call(
    pool: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    line, sessions, woken = QueueingTool(), 12, list[Waiter | None]()

    def counting(waiter: Waiter | None, value: object = None) -> None:
        woken.append(waiter)
        wake(waiter, value)

    monkeypatch.setattr(in_threads, "wake", counting)
    async with runtime_with(a=line.server(1), limits=LIMITS) as runtime, anyio.create_task_group() as tasks:
        for _ in range(sessions):
            session = await runtime.open("a", tools=[line.tool])
            tasks.start_soon(session.ask, "Go.")
        await wait_until(lambda: pool.waiting == sessions - 1)
        line.go.set()
    assert len(line.order) == sessions
    assert len(woken) == sessions - 1


@pytest.mark.anyio
async def test_a_call_cancelled_while_it_waits_for_a_thread_does_not_block_the_next_call(
    pool: Threads,
) -> None:
    line = QueueingTool()
    async with runtime_with(a=line.server(1), limits=LIMITS) as runtime, anyio.create_task_group() as tasks:
        sessions = [await runtime.open("a", tools=[line.tool], id=name) for name in ("s1", "s2", "s3")]
        for number, session in enumerate(sessions):
            tasks.start_soon(session.ask, "Go.")
            await wait_until(lambda: pool.taken + pool.waiting == number + 1)  # noqa: B023  awaited at once
        await sessions[1].cancel()
        await wait_until(lambda: pool.waiting == 1)
        line.go.set()
    assert line.order == ["s1", "s3"]
    await wait_until(lambda: not pool.taken)


# ---- the pool alone


class PoolRequests:
    """Makes requests of a pool, as calls do."""

    def __init__(self, pool: Threads) -> None:
        self.pool, self.notified = pool, list[SlotRequest]()

    def ask(self, limit: int, tenant: str = "", session: str = "") -> SlotRequest:
        """Make a request."""
        request = SlotRequest(tenant, session, limit, lambda: self.notified.append(request))
        self.pool.request_slot(request)
        return request


def test_a_thread_granted_to_a_withdrawn_request_goes_to_the_next_request() -> None:
    pool = Threads()
    asking = PoolRequests(pool)
    first, second, third = (asking.ask(1) for _ in range(3))
    first.result().give_back()
    assert asking.notified == [second]
    pool.withdraw(second)  # withdrawn before its notification was handled
    assert asking.notified == [second, third]
    third.result().give_back()
    assert pool.taken == 0


def test_a_thread_is_not_granted_to_a_call_whose_loop_has_ended() -> None:
    pool = Threads()

    def notify_ended_loop() -> None:
        raise RuntimeError("Event loop is closed")

    asking = PoolRequests(pool)
    holder = asking.ask(1)
    for _ in range(3):
        pool.request_slot(SlotRequest("", "", 1, notify_ended_loop))
    last = asking.ask(1)
    holder.result().give_back()
    assert asking.notified == [last]
    assert pool.taken == 1


def test_waiting_requests_fail_once_tools_of_closed_calls_block_every_thread() -> None:
    pool = Threads()
    asking = PoolRequests(pool)
    one, two = asking.ask(2), asking.ask(2)
    waits, patient = asking.ask(2), asking.ask(3)
    one.result().abandon()
    assert patient.slot is not None
    assert asking.notified == []
    two.result().abandon()
    assert asking.notified == [waits]
    with pytest.raises(ThreadsBusy, match="2 threads are blocked by tools whose calls have ended"):
        waits.result()
    assert pool.waiting == 0


STEPS = st.lists(
    st.tuples(st.sampled_from(["ask", "give back", "withdraw", "forsake"]), st.integers(0, 11)), max_size=60
)


@given(STEPS)
def test_no_thread_slot_is_lost_and_no_request_waits_while_a_slot_is_free(
    steps: list[tuple[str, int]],
) -> None:
    pool = Threads()
    asking = PoolRequests(pool)
    requests: list[SlotRequest] = []
    held: list[ThreadSlot] = []
    for step, number in steps:
        if step == "ask":
            requests.append(asking.ask(1 + number % 3, f"t{number % 2}", f"s{number}"))
        elif step == "withdraw" and requests:
            pool.withdraw(requests.pop(number % len(requests)))
        elif step == "give back" and held:
            held.pop(number % len(held)).give_back()
        elif step == "forsake" and held:
            held[number % len(held)].abandon()
        for request in [each for each in requests if each.is_answered]:
            # otherwise its notification has not been handled yet
            if request.slot is not None and number % 4:
                held.append(request.result())
            if request.error is not None or number % 4:
                requests.remove(request)
        unheard = [each for each in requests if each.slot is not None]
        waiting = [each for each in requests if not each.is_answered]
        assert pool.taken == len(held) + len(unheard)
        assert pool.waiting == len(waiting)
        assert all(each.limit <= pool.taken for each in waiting)
        assert all(each.limit > pool.stuck for each in waiting)
    for request in requests:
        pool.withdraw(request)
    for place in held:
        place.give_back()
    assert (pool.taken, pool.stuck, pool.waiting) == (0, 0, 0)
