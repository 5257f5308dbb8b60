"""The rules A35 to A37 of docs/reference/semantics.md: subscriptions."""

import asyncio
from contextlib import suppress

import anyio
import pytest
from anyio.abc import ObjectReceiveStream

from actors.kernel import LostItems, Subscription

pytestmark = pytest.mark.anyio


def is_odd(number: int) -> bool:
    """Return True for the items that may be dropped."""
    return number % 2 == 1


def subscription(capacity: int) -> Subscription[int]:
    """Return a subscription to numbers of which odd ones may be dropped."""
    return Subscription(capacity, droppable=is_odd)


async def read_to_end(stream: Subscription[int]) -> list[int | LostItems]:
    """Read to the end."""
    items: list[int | LostItems] = []
    with anyio.fail_after(60), suppress(anyio.EndOfStream):
        while True:
            items.append(await stream.receive())
    return items


async def test_a_subscription_keeps_the_order_of_its_items() -> None:
    """A35."""
    stream = subscription(100)

    async def write() -> None:
        for number in range(100):
            stream.put(number)
        stream.close()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        assert await read_to_end(stream) == list(range(100))


async def test_a_subscription_is_an_object_receive_stream() -> None:
    """A35."""
    stream = subscription(4)
    reading: ObjectReceiveStream[int | LostItems] = stream
    stream.put(1)
    stream.put(2)
    stream.close()
    with anyio.fail_after(60):
        async with reading:
            assert [item async for item in reading] == [1, 2]
    with pytest.raises(anyio.ClosedResourceError):
        await reading.receive()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_natively_cancelled_reader_loses_no_items() -> None:
    """A35: with Task.cancel, and with a second reader that must be woken instead."""
    stream = subscription(4)
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
async def test_a_reader_with_a_native_timeout_loses_no_items() -> None:
    """A35: timeouts that coincide with the send."""
    stream = subscription(512)
    loop = asyncio.get_running_loop()
    got: list[int | LostItems] = []
    for number in range(200):
        loop.call_later(0.001, stream.put, number)
        try:
            got.append(await asyncio.wait_for(stream.receive(), 0.001))
        except TimeoutError:
            with anyio.fail_after(60):
                got.append(await stream.receive())
    assert got == list(range(200))


async def test_a_cancelled_reader_does_not_damage_the_subscription() -> None:
    """A35: with a cancel scope, on both loops."""
    stream = subscription(1)
    with anyio.move_on_after(0.2):
        await stream.receive()
    stream.put(1)
    with anyio.fail_after(60):
        assert await stream.receive() == 1
        stream.put(3)
        assert await stream.receive() == 3


async def test_closing_the_sending_end_ends_the_stream_after_its_items() -> None:
    """A36."""
    stream = subscription(2)
    stream.put(1)
    stream.close()
    with anyio.fail_after(60):
        assert await stream.receive() == 1
        with pytest.raises(anyio.EndOfStream):
            await stream.receive()
    stream.put(2)
    assert await read_to_end(stream) == []


async def test_closing_either_end_of_a_subscription_wakes_the_waiting_readers() -> None:
    """A36."""
    stream = subscription(1)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:

            async def read() -> None:
                with pytest.raises(anyio.EndOfStream):
                    await stream.receive()

            tasks.start_soon(read)
            tasks.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            stream.close()
    stream = subscription(1)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:

            async def is_closed() -> None:
                with pytest.raises(anyio.ClosedResourceError):
                    await stream.receive()

            tasks.start_soon(is_closed)
            await anyio.wait_all_tasks_blocked()
            stream.close_reader()
    stream.put(2)
    with pytest.raises(anyio.ClosedResourceError):
        await stream.receive()


async def test_a_slow_subscriber_learns_how_many_items_it_missed() -> None:
    """A37: droppable items are dropped first."""
    stream = subscription(3)
    for number in (1, 3, 5, 7, 9):
        stream.put(number)
    with anyio.fail_after(60):
        assert await stream.receive() == LostItems(count=2, resync=False)
        assert [await stream.receive() for _ in range(3)] == [1, 3, 5]


async def test_required_items_displace_droppable_items() -> None:
    """A37."""
    stream = subscription(3)
    for number in (1, 2, 3, 4):
        stream.put(number)
    stream.close()
    assert await read_to_end(stream) == [LostItems(count=2, resync=False), 2, 4]


async def test_a_subscriber_that_missed_required_items_must_resync() -> None:
    """A37: it is notified once."""
    stream = subscription(2)
    for number in (2, 4, 6, 7):
        stream.put(number)
    assert await stream.receive() == LostItems(count=2, resync=True)
    assert await stream.receive() == 2
    stream.put(8)
    stream.put(9)
    assert await stream.receive() == LostItems(count=1, resync=False)
    assert [await stream.receive() for _ in range(2)] == [4, 8]
