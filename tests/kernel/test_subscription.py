"""The rules of docs/reference/semantics.md on subscriptions, A35 to A37."""

import asyncio
from contextlib import suppress

import anyio
import pytest
from anyio.abc import ObjectReceiveStream

from actors.kernel import Lost, Subscription

pytestmark = pytest.mark.anyio


def odd(number: int) -> bool:
    """Tell what the tests' readers may miss."""
    return number % 2 == 1


def ints(capacity: int) -> Subscription[int]:
    """Make a subscription to numbers of which the odd ones may be missed."""
    return Subscription(capacity, droppable=odd)


async def rest(stream: Subscription[int]) -> list[int | Lost]:
    """Read to the end."""
    items: list[int | Lost] = []
    with anyio.fail_after(60), suppress(anyio.EndOfStream):
        while True:
            items.append(await stream.receive())
    return items


async def test_a_subscription_keeps_order() -> None:
    """A35."""
    stream = ints(100)

    async def write() -> None:
        for number in range(100):
            stream.put(number)
        stream.close()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        assert await rest(stream) == list(range(100))


async def test_a_subscription_is_read_as_any_object_stream() -> None:
    """A35."""
    stream = ints(4)
    reading: ObjectReceiveStream[int | Lost] = stream
    stream.put(1)
    stream.put(2)
    stream.close()
    with anyio.fail_after(60):
        async with reading:
            assert [item async for item in reading] == [1, 2]
    with pytest.raises(anyio.ClosedResourceError):
        await reading.receive()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_reader_cancelled_natively_in_the_turn_of_the_send_loses_nothing() -> None:
    """A35: with Task.cancel, and with a second reader that must be woken instead."""
    stream = ints(4)
    for number in range(50):
        first = asyncio.create_task(stream.receive())
        second = asyncio.create_task(stream.receive())
        await asyncio.sleep(0)
        stream.put(number)
        first.cancel()
        with anyio.fail_after(60):
            assert await second == number
        assert first.cancelled()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_reader_under_wait_for_loses_nothing() -> None:
    """A35: time limits that meet the send in one turn of the loop."""
    stream = ints(512)
    loop = asyncio.get_running_loop()
    got: list[int | Lost] = []
    for number in range(200):
        loop.call_later(0.001, stream.put, number)
        try:
            got.append(await asyncio.wait_for(stream.receive(), 0.001))
        except TimeoutError:
            with anyio.fail_after(60):
                got.append(await stream.receive())
    assert got == list(range(200))


async def test_a_cancelled_reader_leaves_the_subscription_whole() -> None:
    """A35: by a scope, on both loops."""
    stream = ints(1)
    with anyio.move_on_after(0.2):
        await stream.receive()
    stream.put(1)
    with anyio.fail_after(60):
        assert await stream.receive() == 1
        stream.put(3)
        assert await stream.receive() == 3


async def test_closing_the_sending_end_ends_the_stream_after_its_items() -> None:
    """A36."""
    stream = ints(2)
    stream.put(1)
    stream.close()
    with anyio.fail_after(60):
        assert await stream.receive() == 1
        with pytest.raises(anyio.EndOfStream):
            await stream.receive()
    stream.put(2)
    assert await rest(stream) == []


async def test_closing_either_end_wakes_the_readers_that_wait() -> None:
    """A36."""
    stream = ints(1)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:

            async def read() -> None:
                with pytest.raises(anyio.EndOfStream):
                    await stream.receive()

            tasks.start_soon(read)
            tasks.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            stream.close()
    stream = ints(1)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:

            async def is_closed() -> None:
                with pytest.raises(anyio.ClosedResourceError):
                    await stream.receive()

            tasks.start_soon(is_closed)
            await anyio.wait_all_tasks_blocked()
            stream.leave()
    stream.put(2)
    with pytest.raises(anyio.ClosedResourceError):
        await stream.receive()


async def test_a_slow_subscriber_is_told_how_much_it_missed_and_slows_nobody() -> None:
    """A37: what it may miss goes first."""
    stream = ints(3)
    for number in (1, 3, 5, 7, 9):
        stream.put(number)
    with anyio.fail_after(60):
        assert await stream.receive() == Lost(count=2, resync=False)
        assert [await stream.receive() for _ in range(3)] == [1, 3, 5]


async def test_what_may_not_be_missed_pushes_out_what_may() -> None:
    """A37."""
    stream = ints(3)
    for number in (1, 2, 3, 4):
        stream.put(number)
    stream.close()
    assert await rest(stream) == [Lost(count=2, resync=False), 2, 4]


async def test_a_subscriber_that_missed_what_it_may_not_is_told_to_resync() -> None:
    """A37: and told once."""
    stream = ints(2)
    for number in (2, 4, 6, 7):
        stream.put(number)
    assert await stream.receive() == Lost(count=2, resync=True)
    assert await stream.receive() == 2
    stream.put(8)
    stream.put(9)
    assert await stream.receive() == Lost(count=1, resync=False)
    assert [await stream.receive() for _ in range(2)] == [4, 8]
