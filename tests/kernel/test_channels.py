"""An actor's address and a subscription as anyio streams: code that knows nothing of actors works with both."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

import anyio
import pytest
from anyio.abc import ObjectReceiveStream, ObjectSendStream

from actors.errors import KernelError
from actors.kernel import Actor, Context, Lost, MailboxFull, Ref, Subscription, System
from tests.kernel.kernel_probe import Do, Look, Low, Note, Probe, Probed, held, law

pytestmark = pytest.mark.anyio
T = TypeVar("T")


async def produce(notes: Sequence[object], stream: ObjectSendStream[Note]) -> None:
    """Send notes and close the stream. Knows only anyio."""
    async with stream:
        for note in notes:
            await stream.send(Note(note))


async def consume(stream: ObjectReceiveStream[T], into: list[T]) -> None:
    """Read to the end. Knows only anyio."""
    async with stream:
        async for item in stream:
            into.append(item)


class Publisher(Actor[Note]):
    """Publishes the numbers of its notes, in a subscription that holds few."""

    def __init__(self, published: Subscription[object]) -> None:
        self.published = published

    def receive(self, command: Note) -> None:
        self.published.put(command.what)
        if command.what is None:
            self.published.close()


@asynccontextmanager
async def full(system: System) -> AsyncIterator[tuple[Ref[Probed], Context[Probed]]]:
    """An actor on hold whose mailbox is full, and the context that releases it."""
    ref = system.spawn(Probe, "probe", capacity=1)
    context = await held(ref)
    await ref.send(Note("fills"))
    yield ref, context


async def test_plain_anyio_code_sends_to_an_actor_and_reads_what_it_publishes() -> None:
    """A43."""
    published: Subscription[object] = Subscription(101, droppable=lambda _: False)  # all of them
    seen: list[object] = []
    async with law() as system:
        ref = system.spawn(lambda: Publisher(published), "publisher")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(consume, published, seen)
            async with anyio.create_task_group() as producers:
                producers.start_soon(produce, range(50), ref.clone())
                producers.start_soon(produce, range(50, 100), ref.clone())
            await ref.send(Note(None))
    numbers = [number for number in seen[:-1] if isinstance(number, int)]
    assert sorted(numbers) == [*range(100)]
    assert [number for number in numbers if number < 50] == [*range(50)]
    assert seen[-1] is None


async def test_a_subscription_that_overflows_hands_plain_code_its_loss_as_an_item() -> None:
    """A43, A37."""
    stream: Subscription[int] = Subscription(2, droppable=lambda _: True)
    for number in range(5):
        stream.put(number)
    stream.close()
    seen: list[int | Lost] = []
    with anyio.fail_after(60):
        await consume(stream, seen)
    assert seen == [Lost(3, resync=False), 0, 1]


async def test_closing_an_address_leaves_the_actor_and_its_other_addresses_alone() -> None:
    """A44."""
    async with law() as system:
        ref = system.spawn(Probe, "probe")
        clone = ref.clone()
        await clone.send(Note("sent"))
        await clone.aclose()
        await clone.aclose()
        later = ref.clone()
        await later.send(Note("by another clone"))
        assert await ref.ask(Look()) == ("sent", "by another clone")
        assert await later.ask(Look()) == ("sent", "by another clone")


async def test_a_closed_address_takes_nothing() -> None:
    """A44."""
    async with law() as system:
        ref = system.spawn(Probe, "probe")
        clone = ref.clone()
        await clone.aclose()
        with pytest.raises(anyio.ClosedResourceError):
            await clone.send(Note("lost"))
        with pytest.raises(anyio.ClosedResourceError):
            clone.send_nowait(Note("lost"))
        with pytest.raises(anyio.ClosedResourceError):
            clone.offer(Note("lost"))
        with pytest.raises(anyio.ClosedResourceError):
            await clone.ask(Look())
        with pytest.raises(anyio.ClosedResourceError):
            clone.clone()
        assert await ref.ask(Look()) == ()
        assert system.account.dead == {}


async def test_an_actors_own_address_is_not_closed_by_those_who_hold_others() -> None:
    """A44."""
    contexts: list[Context[Probed]] = []

    class Own(Probe):
        def on_start(self, context: Context[Probed]) -> None:
            contexts.append(context)

    async with law() as system:
        ref = system.spawn(Own, "own")
        assert await ref.ask(Look()) == ()
        await contexts[0].ref.aclose()
        await contexts[0].ref.send(Note("to itself"))
        assert await ref.ask(Look()) == ("to itself",)


async def test_a_full_mailbox_is_what_anyio_calls_would_block() -> None:
    """A11."""
    async with law() as system, full(system) as (ref, context):
        with pytest.raises(anyio.WouldBlock) as caught:
            ref.send_nowait(Note("refused"))
        assert isinstance(caught.value, MailboxFull)
        assert isinstance(caught.value, KernelError)
        context.release()
        assert await ref.ask(Look()) == ("fills",)


async def test_send_waits_for_space_and_arrives_though_its_clone_was_closed_meanwhile() -> None:
    """A44."""
    async with law() as system, full(system) as (ref, context):
        clone = ref.clone()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(clone.send, Note("waited"))
            await anyio.wait_all_tasks_blocked()
            assert ref.waiting == 2
            await clone.aclose()
            context.release()
        assert await ref.ask(Look()) == ("fills", "waited")


async def test_what_a_handler_sent_arrives_though_its_address_was_closed_meanwhile() -> None:
    """A44, A13."""
    async with law() as system:
        high, low = system.spawn(Probe, "high"), system.spawn(Low, "low", capacity=1)
        context = await held(low)
        await low.send(Note("fills"))
        clone = low.clone()

        def send(probe: Probe) -> None:
            for number in range(2):
                probe.context.send(clone, Note(number))

        await high.send(Do(send))
        await anyio.wait_all_tasks_blocked()
        await clone.aclose()
        context.release()
        await anyio.wait_all_tasks_blocked()
        assert await low.ask(Look()) == ("fills", 0, 1)
