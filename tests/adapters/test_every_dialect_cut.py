"""Cut the strict server's stream of every dialect: a complete answer or a typed fault.

`tests/adapters/test_decode_cuts.py` covers the peculiarities of each family's stream. This module covers every profile,
including those that consist only of data.
"""

from functools import lru_cache
from random import Random

import pytest

from actors.adapters.adapter import adapter
from actors.adapters.base import Decoder
from actors.adapters.codec import decode
from actors.adapters.request import Settings, ToolSpec
from actors.core.data.jsonio import Json
from actors.core.dialects.profiles import PROFILES, dialect
from actors.core.history.history import History
from actors.core.ledger import Ledger
from actors.core.values.content import Message, Text, ToolCall
from actors.core.values.identity import Binding
from actors.core.values.stream import TextDelta
from actors.errors import StreamFault
from actors.testing import Call, Say, Script, Think, Turn
from actors.transcripts import render
from tests.adapters.wire_streams import cut_at_random, run
from tests.commands.at_scale import share, spread
from tests.strict_hosts import answer_to, endpoint, strict_host

WORDS = "I look at \u65e5\u672c \U0001f600."
ARGUMENTS = ({"name": "a \u2713"}, {"name": ""})
TURN = Turn(Think("Let me see."), Say(WORDS), *(Call("read", arguments) for arguments in ARGUMENTS))
TOOLS = (ToolSpec("read", "Read.", Json(b'{"type":"object","properties":{"name":{"type":"string"}}}')),)
ASKED = History([Message("user", (Text("Read both."),))])
dialects = pytest.mark.parametrize("name", PROFILES)


@lru_cache
def stream(name: str) -> bytes:
    """Return the bytes of an answer with reasoning, text and two calls."""
    host, codec = strict_host(name, Script([TURN])), adapter(dialect(name))
    binding = Binding("here", name, endpoint(name, host), "", "model-1")
    rendered = render(ASKED, Ledger(), dialect(name), binding=binding)
    settings = Settings(model="model-1", tools=TOOLS, stream=True)
    answer = answer_to(host, binding, codec.request(rendered._segments, settings, rendered._facts))
    assert answer.status == 200
    return b"".join(answer.parts)


def decoder(name: str) -> Decoder:
    return decode(dialect(name), Binding("here", name, "", "", "model-1"))


def called(message: Message) -> list[tuple[str, object]]:
    return [(block.name, block.arguments) for block in message.blocks if isinstance(block, ToolCall)]


def places(name: str) -> list[int]:
    """Return the places to cut a stream at: around every line's end, and a sample of the bytes in between.

    Each dialect has a quarter of them, another than the next; all are for the profile `thorough`.

    Within a line a cut changes nothing but the number of pieces that one parser, the same for all dialects, joins at
    the line's end (`EventParser`). `tests/adapters/test_decode_cuts.py` cuts a stream of each family at every byte.
    The dialects that send frames are read by one parser, which is cut at every byte in one of them.
    """
    data = stream(name)
    number = [*PROFILES].index(name)
    if data[0] == 0:
        return list(spread(range(0, len(data), 1 if name == "bedrock" else 23), number))
    ends = {at + step for at, byte in enumerate(data) if byte == ord("\n") for step in (-1, 0, 1, 2)}
    return list(spread([at for at in range(len(data)) if at in ends or at % 71 == 0], number))


CALLS = [("read", arguments) for arguments in ARGUMENTS]


@dialects
def test_an_answer_does_not_depend_on_how_its_bytes_are_split(name: str) -> None:
    data = stream(name)
    _, whole = run(decoder(name), [data])
    assert isinstance(whole, Message)
    assert (whole.text, called(whole)) == (WORDS, CALLS)
    for place in places(name):
        events, message = run(decoder(name), [data[:place], data[place:]])
        assert message == whole, place
        assert "".join(event.text for event in events if isinstance(event, TextDelta)) == WORDS, place
    for seed in range(share(16 * 6)):
        assert run(decoder(name), list(cut_at_random(data, Random(seed))))[1] == whole, seed


@dialects
def test_a_truncated_answer_is_complete_or_a_fault_without_partial_calls(name: str) -> None:
    data = stream(name)
    _, whole = run(decoder(name), [data])
    faults, ends = 0, places(name)
    for place in ends:
        made = decoder(name)
        _, message = run(made, [data[:place]])
        if isinstance(message, StreamFault):
            faults += 1
            kept = made.partial_message()
            assert called(kept) == CALLS[: len(kept.calls)], place
            assert WORDS.startswith(kept.text), place
        else:
            assert message == whole, place
    assert faults > len(ends) // 2
