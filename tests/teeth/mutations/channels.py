"""Mutations of an actor's address as an anyio stream."""

from tests.teeth.mutations.mutation import Mutation

CHANNELS = "tests/kernel/test_channels.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "channels: closing an address closes the actor",
        "actors/kernel/ref.py:Ref.aclose",
        "self._is_closed = True",
        "self._is_closed = self.receiver.closed = True",
        (f"{CHANNELS}::test_closing_an_address_does_not_affect_the_actor_or_other_clones",),
    ),
    Mutation(
        "channels: a closed address sends",
        "actors/kernel/ref.py:Ref.send",
        "if self._is_closed:\n    raise ClosedResourceError",
        "",
        (f"{CHANNELS}::test_a_closed_address_rejects_messages",),
    ),
    Mutation(
        "channels: a closed address sends without waiting",
        "actors/kernel/ref.py:Ref.offer",
        "if self._is_closed:\n    raise ClosedResourceError",
        "",
        (f"{CHANNELS}::test_a_closed_address_rejects_messages",),
    ),
    Mutation(
        "channels: a closed address asks",
        "actors/kernel/ref.py:Ref.ask",
        "if self._is_closed:\n    raise ClosedResourceError",
        "",
        (f"{CHANNELS}::test_a_closed_address_rejects_messages",),
    ),
    Mutation(
        "channels: a clone is the address itself",
        "actors/kernel/ref.py:Ref.clone",
        "type(self)(self.receiver)",
        "self",
        (f"{CHANNELS}::test_closing_an_address_does_not_affect_the_actor_or_other_clones",),
    ),
    Mutation(
        "channels: a full mailbox does not raise anyio.WouldBlock",
        "actors/kernel/message.py:MailboxFull",
        "WouldBlock",
        "Exception",
        (f"{CHANNELS}::test_a_full_mailbox_raises_anyios_would_block",),
    ),
    Mutation(
        "channels: messages sent by a handler are lost when the address is closed",
        "actors/kernel/actor.py:Context.send",
        "ref.clone()",
        "ref",
        (f"{CHANNELS}::test_a_message_sent_by_a_handler_arrives_even_if_its_address_is_closed_afterwards",),
    ),
)
