"""An actor's address and a subscription are anyio streams, which code without knowledge of actors can use."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

import anyio
import pytest
from anyio.abc import ObjectReceiveStream, ObjectSendStream

from actors.errors import KernelError
from actors.kernel import Actor, Context, LostItems, MailboxFull, Ref, Subscription, System
from tests.kernel.kernel_probe import Do, GetNotes, LowProbe, Note, Probe, Probed, checked_system, hold_actor

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
    """Publishes its notes in a bounded subscription."""

    def __init__(self, published: Subscription[object]) -> None:
        self.published = published

    def receive(self, command: Note) -> None:
        self.published.put(command.what)
        if command.what is None:
            self.published.close()


@asynccontextmanager
async def full_mailbox(system: System) -> AsyncIterator[tuple[Ref[Probed], Context[Probed]]]:
    """Yield an actor on hold whose mailbox is full, and the context that releases it."""
    ref = system.spawn(Probe, "probe", capacity=1)
    context = await hold_actor(ref)
    await ref.send(Note("fills"))
    yield ref, context


async def test_plain_anyio_code_sends_to_an_actor_and_reads_its_stream() -> None:
    """A43."""
    # has space for all of them
    published: Subscription[object] = Subscription(101, droppable=lambda _: False)
    seen: list[object] = []
    async with checked_system() as system:
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


async def test_an_overflowing_subscription_reports_its_loss_as_an_item() -> None:
    """A43, A37."""
    stream: Subscription[int] = Subscription(2, droppable=lambda _: True)
    for number in range(5):
        stream.put(number)
    stream.close()
    seen: list[int | LostItems] = []
    with anyio.fail_after(60):
        await consume(stream, seen)
    assert seen == [LostItems(3, resync=False), 0, 1]


async def test_closing_an_address_does_not_affect_the_actor_or_other_clones() -> None:
    """A44."""
    async with checked_system() as system:
        ref = system.spawn(Probe, "probe")
        clone = ref.clone()
        await clone.send(Note("sent"))
        await clone.aclose()
        await clone.aclose()
        later = ref.clone()
        await later.send(Note("by another clone"))
        assert await ref.ask(GetNotes()) == ("sent", "by another clone")
        assert await later.ask(GetNotes()) == ("sent", "by another clone")


async def test_a_closed_address_rejects_messages() -> None:
    """A44."""
    async with checked_system() as system:
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
            await clone.ask(GetNotes())
        with pytest.raises(anyio.ClosedResourceError):
            clone.clone()
        assert await ref.ask(GetNotes()) == ()
        assert system.account.dead == {}


async def test_an_actors_own_address_cannot_be_closed() -> None:
    """A44."""
    contexts: list[Context[Probed]] = []

    class Own(Probe):
        def on_start(self, context: Context[Probed]) -> None:
            contexts.append(context)

    async with checked_system() as system:
        ref = system.spawn(Own, "own")
        assert await ref.ask(GetNotes()) == ()
        await contexts[0].ref.aclose()
        await contexts[0].ref.send(Note("to itself"))
        assert await ref.ask(GetNotes()) == ("to itself",)


async def test_a_full_mailbox_raises_anyios_would_block() -> None:
    """A11."""
    async with checked_system() as system, full_mailbox(system) as (ref, context):
        with pytest.raises(anyio.WouldBlock) as caught:
            ref.send_nowait(Note("refused"))
        assert isinstance(caught.value, MailboxFull)
        assert isinstance(caught.value, KernelError)
        context.release_messages()
        assert await ref.ask(GetNotes()) == ("fills",)


async def test_a_waiting_message_is_delivered_even_if_its_address_is_closed() -> None:
    """A44."""
    async with checked_system() as system, full_mailbox(system) as (ref, context):
        clone = ref.clone()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(clone.send, Note("waited"))
            await anyio.wait_all_tasks_blocked()
            assert ref.waiting == 2
            await clone.aclose()
            context.release_messages()
        assert await ref.ask(GetNotes()) == ("fills", "waited")


async def test_a_message_sent_by_a_handler_arrives_even_if_its_address_is_closed_afterwards() -> None:
    """A44, A13."""
    async with checked_system() as system:
        high, low = system.spawn(Probe, "high"), system.spawn(LowProbe, "low", capacity=1)
        context = await hold_actor(low)
        await low.send(Note("fills"))
        clone = low.clone()

        def send(probe: Probe) -> None:
            for number in range(2):
                probe.context.send(clone, Note(number))

        await high.send(Do(send))
        await anyio.wait_all_tasks_blocked()
        await clone.aclose()
        context.release_messages()
        await anyio.wait_all_tasks_blocked()
        assert await low.ask(GetNotes()) == ("fills", 0, 1)
