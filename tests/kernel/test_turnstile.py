"""A limited number of tasks compute between two polls of the event loop, in the order of their arrival."""

from collections.abc import Callable
from contextvars import copy_context

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from msgspec.structs import replace

from actors.kernel.event_loop import event_loop
from actors.kernel.shared import Dispatcher
from actors.kernel.turnstile import LAGS, Turnstile, turnstile
from tests.runtime.polls import counting_polls

pytestmark = pytest.mark.anyio
IDLE = Dispatcher(None, copy_context())  # type: ignore[arg-type]  # needs no event loop


async def test_only_a_few_tasks_compute_between_two_polls_of_the_event_loop() -> None:
    gate = Turnstile(event_loop(), 3)
    with anyio.fail_after(30), counting_polls() as polls:

        async def compute() -> None:
            await gate.wait_to_continue()
            polls.note()

        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(compute)
    assert polls.total == 20
    assert polls.most_at_once <= 2 * 3  # those of one iteration, and those of the next within the same poll


async def test_waiting_tasks_continue_in_the_order_of_their_arrival() -> None:
    turns, order = list[Callable[[], None]](), list[int]()
    gate = Turnstile(replace(event_loop(), next=turns.append), 1)

    async def compute(number: int, here: anyio.Event) -> None:
        here.set()
        await gate.wait_to_continue()
        order.append(number)

    with anyio.fail_after(30):
        await gate.wait_to_continue()  # takes the last place until the next iteration
        async with anyio.create_task_group() as tasks:
            for number in range(3):
                tasks.start_soon(compute, number, here := anyio.Event())
                await here.wait()
            for passed in range(3):
                assert len(order) == passed
                turns.pop()()
                while len(order) == passed:
                    await anyio.lowlevel.checkpoint()
    assert order == [0, 1, 2]


@pytest.mark.parametrize(("width", "passed"), [(1, "cccc"), (4, "bccc")])
async def test_continuing_work_runs_first_and_new_work_keeps_a_quarter_of_the_places(
    width: int, passed: str
) -> None:
    turns, order = list[Callable[[], None]](), list[str]()
    gate = Turnstile(replace(event_loop(), next=turns.append), width)

    async def compute(name: str, here: anyio.Event) -> None:
        here.set()
        await (gate.wait_to_begin(IDLE) if name == "b" else gate.wait_to_continue())
        order.append(name)

    with anyio.fail_after(30):
        for _ in range(width):
            await gate.wait_to_continue()  # takes the last place until the next iteration
        async with anyio.create_task_group() as tasks:
            for name in "bbbbcccc":
                tasks.start_soon(compute, name, here := anyio.Event())
                await here.wait()
            while len(order) < 4:
                turns.pop()()
                await anyio.wait_all_tasks_blocked()
            first = "".join(sorted(order))
            while turns:
                turns.pop()()
                await anyio.wait_all_tasks_blocked()
    assert first == passed
    assert "".join(sorted(order)) == "bbbbcccc"


@pytest.mark.parametrize(("is_behind", "begun"), [(False, 8), (True, 1)])
async def test_new_work_keeps_one_place_while_messages_wait(is_behind: bool, begun: int) -> None:
    turns, order = list[Callable[[], None]](), list[int]()
    gate = Turnstile(replace(event_loop(), next=turns.append), 8)
    dispatcher = Dispatcher(replace(event_loop(), next=turns.append), copy_context())

    async def compute(number: int) -> None:
        await gate.wait_to_begin(dispatcher)
        order.append(number)

    with anyio.fail_after(30):
        for _ in range(8):
            await gate.wait_to_continue()  # takes the last place until the next iteration
        async with anyio.create_task_group() as tasks:
            for number in range(16):
                tasks.start_soon(compute, number)
            await anyio.wait_all_tasks_blocked()
            if is_behind:
                dispatcher.ready.append(lambda most: False)
            turns.pop()()
            await anyio.wait_all_tasks_blocked()
            assert len(order) == begun
            dispatcher.ready.clear()
            while turns:
                turns.pop()()
                await anyio.wait_all_tasks_blocked()
    assert sorted(order) == list(range(16))


async def test_new_work_of_several_tenants_begins_in_turn() -> None:
    turns, order = list[Callable[[], None]](), list[str]()
    gate = Turnstile(replace(event_loop(), next=turns.append), 1)

    async def compute(tenant: str, here: anyio.Event) -> None:
        here.set()
        await gate.wait_to_begin(IDLE, tenant)
        order.append(tenant)

    with anyio.fail_after(30):
        await gate.wait_to_continue()  # takes the last place until the next iteration
        async with anyio.create_task_group() as tasks:
            for tenant in "aaaabba":
                tasks.start_soon(compute, tenant, here := anyio.Event())
                await here.wait()
            while turns:
                turns.pop()()
                await anyio.wait_all_tasks_blocked()
    assert "".join(order) == "ababaaa"


async def test_new_work_begins_at_once_while_few_tasks_compute() -> None:
    gate = Turnstile(event_loop(), 2)
    with pytest.raises(StopIteration):
        gate.wait_to_begin(IDLE).send(None)


async def test_a_single_task_does_not_wait_at_the_turnstile() -> None:
    gate = Turnstile(event_loop(), 2)
    entering = gate.wait_to_continue()
    with pytest.raises(StopIteration):
        entering.send(None)


async def test_a_task_cancelled_while_it_waits_blocks_no_other_task() -> None:
    turns, passed = list[Callable[[], None]](), list[str]()
    gate = Turnstile(replace(event_loop(), next=turns.append), 1)

    async def compute(name: str, scope: anyio.CancelScope, here: anyio.Event) -> None:
        with scope:
            here.set()
            await gate.wait_to_continue()
            passed.append(name)

    with anyio.fail_after(30):
        await gate.wait_to_continue()
        async with anyio.create_task_group() as tasks:
            scopes = [anyio.CancelScope() for _ in range(2)]
            for name, scope in zip(("cancelled", "next"), scopes, strict=True):
                tasks.start_soon(compute, name, scope, here := anyio.Event())
                await here.wait()
            scopes[0].cancel()
            while not scopes[0].cancelled_caught:
                await anyio.lowlevel.checkpoint()
            turns.pop()()
    assert passed == ["next"]


async def test_the_duration_of_event_loop_iterations_is_measured() -> None:
    times, turns = iter([1.2, 21.2, 21.2, 21.4]), list[Callable[[], None]]()
    gate = Turnstile(replace(event_loop(), next=turns.append), 1, lambda: next(times))
    for _ in range(2):
        await gate.wait_to_continue()
        turns.pop()()
        assert turns == []  # no task waits, so the loop is not scheduled
    counted = {at: count for at, count in zip((*LAGS, None), gate.lags.counts, strict=True) if count}
    assert counted == {0.25: 1, None: 1}
    assert gate.lags.seconds == pytest.approx(20.2)
    assert gate.lags.longest == 20.0


async def test_all_tasks_of_a_loop_share_one_turnstile() -> None:
    seen = [turnstile()]

    async def look() -> None:
        seen.append(turnstile())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(look)
    assert seen[0] is seen[1]
    assert await anyio.to_thread.run_sync(_turnstile_of_another_loop) is not seen[0]
    assert turnstile() is seen[0]


def _turnstile_of_another_loop() -> Turnstile:
    async def look() -> Turnstile:
        return turnstile()

    return anyio.run(look)
