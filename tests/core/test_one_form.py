"""Check that each message is encoded once and decoded once per lane.

Between the text of an ask and the requests and the log, each message is encoded only once, and each lane that sends
the message decodes it once. The history and the log share the encoded bytes.
"""

from collections import Counter
from typing import Any

import pytest

from actors import tool
from actors.core.log.events import AskStarted, RoundEnded
from actors.core.values import packed
from actors.core.values.content import Message
from actors.session.commands import GetState
from actors.testing import Call, Say, Turn
from tests.runtime_support import anthropic, openai, runtime_with

pytestmark = pytest.mark.anyio


class Counting:
    """A message codec that counts encoded and decoded messages."""

    def __init__(self, real: Any) -> None:  # Any: msgspec's encoder or decoder
        self._real = real
        self.counts: Counter[object] = Counter()

    def encode(self, form: object) -> bytes:
        if isinstance(form, Message):
            self.counts[form] += 1
        made: bytes = self._real.encode(form)
        return made

    def decode(self, data: bytes) -> object:
        self.counts[data] += 1
        return self._real.decode(data)


@tool
def look(name: str) -> str:
    """Look something up."""
    return f"{name} is there"


async def test_each_message_is_encoded_once_in_total_and_decoded_once_in_each_lane(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoder, decoder = Counting(packed._ENCODER), Counting(packed._DECODER)
    monkeypatch.setattr(packed, "_ENCODER", encoder)
    monkeypatch.setattr(packed, "_DECODER", decoder)
    here = openai(Turn(Say("Wait."), Call("look", {"name": "a"})), Turn(Say("One.")), Turn(Say("Two.")))
    there = anthropic(Turn(Say("Three.")))
    async with runtime_with(here=here, there=there) as runtime:
        session = await runtime.open("here", tools=[look])
        for text in ("GetState.", "And?"):
            await session.ask(text)
        await session.switch("there")
        assert (await session.ask("So?")).text == "Three."
        made, read = dict(encoder.counts), dict(decoder.counts)
        history = (await session._session.ask(GetState())).history  # internal: the packed messages
        blocks, rest = history._packed
        kept = [*(item for block in blocks for item in block), *rest]
        events = runtime._storage.read(session.id)
    assert list(made.values()) == [1] * len(kept) == [1] * 7
    assert [read.get(item, 0) for item in kept] == [
        2,
        2,
        2,
        2,
        1,
        1,
        0,
    ]  # once for each lane that contains the message
    logged = [event.message for event in events if isinstance(event, AskStarted | RoundEnded)]
    assert all(mine is theirs for mine, theirs in zip(kept, logged, strict=True))
