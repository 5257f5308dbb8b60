"""An interrupted answer keeps the text that was shown, and the note after it is separated by a blank line."""

from collections.abc import Callable

import pytest

from actors.core.stream_events.ask_events import ErrorEvent
from actors.core.stream_events.round_events import TextEvent
from actors.core.turn.answers import INTERRUPTED, interrupted_message
from actors.core.values.content import Message, Text, Thinking
from actors.strict.server import LoopbackServer
from actors.testing import Disconnect, Say, Turn
from tests.runtime_support import anthropic, gather_events, openai
from tests.scripted import scripted

MakeServer = Callable[..., LoopbackServer]


@pytest.mark.parametrize(
    ("said", "gap"),
    [((Text("Half a sen"),), "\n\n"), ((Text("A line.\n"),), ""), ((Thinking("Hm"),), ""), ((), "")],
)
def test_a_blank_line_separates_an_unfinished_line_from_the_interruption_note(
    said: tuple[Text | Thinking, ...], gap: str
) -> None:
    message = interrupted_message(Message("assistant", said))
    assert message.blocks == (*said, Text(gap + INTERRUPTED))


@pytest.mark.anyio
@pytest.mark.parametrize("make_server", [openai, anthropic])
async def test_a_blank_line_separates_interrupted_text_from_the_interruption_note(
    make_server: MakeServer,
) -> None:
    server = make_server(
        Turn(Say("A long answer that is cut. " * 20)),
        faults={0: Disconnect(after_bytes=1500)},
    )
    async with scripted(server) as (_, _, session):
        events = await gather_events(session, "Tell me.")
        shown = "".join(event.text for event in events if isinstance(event, TextEvent))
        last = events[-1]
        assert isinstance(last, ErrorEvent)
        assert shown
        kept, gap, note = last.result.text.rpartition("\n\n")
        assert (gap, note) == ("\n\n", INTERRUPTED)
        assert kept.startswith(shown)
        assert (await session.ask("Go on.")).status == "complete"
    assert f"\\n\\n{INTERRUPTED}" in server.requests[-1].body.decode()
