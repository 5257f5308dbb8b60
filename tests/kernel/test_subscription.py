"""The rules of docs/reference/semantics.md on subscriptions, A35 to A37."""

import asyncio

import anyio
import pytest
from anyio.abc import ObjectReceiveStream, ObjectSendStream

from actors.kernel import Lost, Receiver, Sender, subscription

pytestmark = pytest.mark.anyio


def odd(number: int) -> bool:
    """Tell what the tests' readers may miss."""
    return number % 2 == 1


def ints(capacity: int) -> tuple[Sender[int], Receiver[int]]:
    """Make a subscription to numbers of which the odd ones may be missed."""
    return subscription(capacity, droppable=odd)


async def test_the_ends_are_object_streams_and_keep_order() -> None:
    """A35."""
    send, receive = ints(100)
    writing: ObjectSendStream[int] = send
    reading: ObjectReceiveStream[int | Lost] = receive

    async def write() -> None:
        async with writing:
            for number in range(100):
                await writing.send(number)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write)
            assert [number async for number in reading] == list(range(100))


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_reader_cancelled_natively_in_the_turn_of_the_send_loses_nothing() -> None:
    """A35: with Task.cancel, and with a second reader that must be woken instead."""
    send, receive = ints(4)
    for number in range(50):
        first = asyncio.create_task(receive.receive())
        second = asyncio.create_task(receive.receive())
        await asyncio.sleep(0)
        send.send_nowait(number)
        first.cancel()
        with anyio.fail_after(60):
            assert await second == number
        assert first.cancelled()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_reader_under_wait_for_loses_nothing() -> None:
    """A35: time limits that meet the send in one turn of the loop."""
    send, receive = ints(512)
    loop = asyncio.get_running_loop()
    got: list[int | Lost] = []
    for number in range(200):
        loop.call_later(0.001, send.send_nowait, number)
        try:
            got.append(await asyncio.wait_for(receive.receive(), 0.001))
        except TimeoutError:
            with anyio.fail_after(60):
                got.append(await receive.receive())
    assert got == list(range(200))


async def test_a_cancelled_reader_leaves_the_subscription_whole() -> None:
    """A35: by a scope, on both loops."""
    send, receive = ints(1)
    with anyio.move_on_after(0.2):
        await receive.receive()
    await send.send(1)
    with anyio.fail_after(60):
        assert await receive.receive() == 1
        await send.send(3)
        assert await receive.receive() == 3


async def test_closing_the_sending_end_ends_the_stream_after_its_items() -> None:
    """A36."""
    send, receive = ints(2)
    await send.send(1)
    await send.aclose()
    with anyio.fail_after(60):
        assert await receive.receive() == 1
        with pytest.raises(anyio.EndOfStream):
            await receive.receive()
    with pytest.raises(anyio.ClosedResourceError):
        await send.send(2)


async def test_closing_either_end_wakes_the_readers_that_wait() -> None:
    """A36."""
    send, receive = ints(1)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:

            async def read() -> None:
                with pytest.raises(anyio.EndOfStream):
                    await receive.receive()

            tasks.start_soon(read)
            tasks.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            send.close()
    send, receive = ints(1)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:

            async def is_closed() -> None:
                with pytest.raises(anyio.ClosedResourceError):
                    await receive.receive()

            tasks.start_soon(is_closed)
            await anyio.wait_all_tasks_blocked()
            await receive.aclose()
    with pytest.raises(anyio.BrokenResourceError):
        await send.send(2)


async def test_a_slow_subscriber_is_told_how_much_it_missed_and_slows_nobody() -> None:
    """A37: what it may miss goes first."""
    send, receive = ints(3)
    for number in (1, 3, 5, 7, 9):
        await send.send(number)
    with anyio.fail_after(60):
        assert await receive.receive() == Lost(count=2, resync=False)
        assert [await receive.receive() for _ in range(3)] == [1, 3, 5]


async def test_what_may_not_be_missed_pushes_out_what_may() -> None:
    """A37."""
    send, receive = ints(3)
    for number in (1, 2, 3, 4):
        send.send_nowait(number)
    send.close()
    with anyio.fail_after(60):
        assert [item async for item in receive] == [Lost(count=2, resync=False), 2, 4]


async def test_a_subscriber_that_missed_what_it_may_not_is_told_to_resync() -> None:
    """A37: and told once."""
    send, receive = ints(2)
    for number in (2, 4, 6, 7):
        send.send_nowait(number)
    assert receive.receive_nowait() == Lost(count=2, resync=True)
    assert receive.receive_nowait() == 2
    send.send_nowait(8)
    send.send_nowait(9)
    assert receive.receive_nowait() == Lost(count=1, resync=False)
    assert [receive.receive_nowait() for _ in range(2)] == [4, 8]


async def test_a_subscription_of_no_capacity_is_refused() -> None:
    """A35."""
    with pytest.raises(ValueError, match="at least one"):
        ints(0)
