"""An answer that broke off keeps what was shown, and the note behind it stands apart."""

from collections.abc import Callable

import pytest

from actors.core.stream_events.events import ErrorEvent, TextEvent
from actors.core.turn.broken_answer import INTERRUPTED, interrupted_message
from actors.core.values.content import Message, Text, Thinking
from actors.strict.server import LoopbackServer
from actors.testing import Disconnect, Say, Turn
from tests.runtime_support import anthropic, gathered, hosting, openai

Made = Callable[..., LoopbackServer]


@pytest.mark.parametrize(
    ("said", "gap"),
    [((Text("Half a sen"),), "\n\n"), ((Text("A line.\n"),), ""), ((Thinking("Hm"),), ""), ((), "")],
)
def test_the_note_is_separated_from_words_in_the_middle_of_a_line(
    said: tuple[Text | Thinking, ...], gap: str
) -> None:
    message = interrupted_message(Message("assistant", said))
    assert message.blocks == (*said, Text(gap + INTERRUPTED))


@pytest.mark.anyio
@pytest.mark.parametrize("made", [openai, anthropic])
async def test_a_text_that_is_cut_is_not_run_together_with_the_note(made: Made) -> None:
    server = made(
        Turn(Say("A long answer that is cut. " * 20)),
        faults={0: Disconnect(after_bytes=1500)},
    )
    async with hosting(a=server) as runtime:
        session = await runtime.open("a")
        events = await gathered(session, "Tell me.")
        shown = "".join(event.text for event in events if isinstance(event, TextEvent))
        last = events[-1]
        assert isinstance(last, ErrorEvent)
        assert shown
        kept, gap, note = last.result.text.rpartition("\n\n")
        assert (gap, note) == ("\n\n", INTERRUPTED)
        assert kept.startswith(shown)
        assert (await session.ask("Go on.")).status == "complete"
    assert f"\\n\\n{INTERRUPTED}" in server.requests[-1].body.decode()
