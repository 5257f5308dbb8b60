"""Incomplete answers: the result reports them, no tool runs with partial arguments, and the session continues.

Content of an answer that the history cannot hold is reported, logged and counted.
"""

import pytest

from actors.core.log.events import RoundEnded
from actors.core.stream_events.ask_events import CompleteEvent
from actors.core.stream_events.round_events import MessageEvent
from actors.provider.provider_actor import Counters
from actors.testing import Call, Say, Turn
from actors.tools import tool
from tests.runtime_support import gather_events, log
from tests.scripted import scripted

pytestmark = pytest.mark.anyio

MORE = Turn(Say("More."))
REASONS = {
    "openai_chat": "length",
    "mistral": "length",
    "anthropic": "max_tokens",
    "openai_responses": "max_output_tokens",
    "gemini": "MAX_TOKENS",
    "bedrock": "max_tokens",
}


@pytest.mark.sampled(2)
@pytest.mark.alternating
@pytest.mark.parametrize("is_streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("name", REASONS)
async def test_a_truncated_call_runs_no_tool_and_the_session_continues(name: str, is_streamed: bool) -> None:
    ran: list[str] = []

    @tool
    async def work(name: str = "") -> str:
        """Do a piece of work."""
        ran.append(name)
        return "done"

    cut = Turn(Say("I begin."), Call("work", {"name": "a"}), Call("work", raw=""), stop=REASONS[name])
    turns = (cut, Turn(Say("One done.")), MORE)
    async with scripted(name, *turns, tools=[work], is_streamed=is_streamed) as (_, _, session):
        first = await session.ask("Work.")
        second = await session.ask("Go on.")
    assert (first.status, first.text, second.text) == ("complete", "One done.", "More.")
    assert (first.incomplete, dict(first.dropped), second.dropped) == (None, {"cut_call": 1}, ())
    assert ran == ["a"]


FILTERS = {
    "openai_chat": "content_filter",
    "anthropic": "refusal",
    "openai_responses": "content_filter",
    "gemini": "SAFETY",
    "bedrock": "guardrail_intervened",
}


@pytest.mark.sampled(2)
@pytest.mark.alternating
@pytest.mark.requirement("PROMISE-13")
@pytest.mark.parametrize("is_streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(
    ("name", "reason", "cut"),
    [
        *((name, reason, "length") for name, reason in REASONS.items()),
        *((name, reason, "filter") for name, reason in FILTERS.items()),
        ("anthropic", "pause_turn", "paused"),
    ],
)
async def test_only_the_result_with_a_truncated_answer_is_marked_as_incomplete(
    name: str, reason: str, cut: str, is_streamed: bool
) -> None:
    async with scripted(name, Turn(Say("I beg"), stop=reason), MORE, is_streamed=is_streamed) as (
        _,
        _,
        session,
    ):
        events = await gather_events(session, "Go.")
        second = await session.ask("Go on.")
    (said,) = [event for event in events if isinstance(event, MessageEvent)]
    last = events[-1]
    assert isinstance(last, CompleteEvent)
    first = last.result
    assert (said.incomplete, first.incomplete, first.finish_reason) == (cut, cut, reason)
    assert (first.status, first.text, second.text, second.incomplete) == ("complete", "I beg", "More.", None)
    assert second.finish_reason is not None


@pytest.mark.requirement("PROMISE-13")
async def test_dropped_content_is_reported_logged_and_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", logger="actors")
    cut = Turn(Say("I look."), Call("look", raw=""), stop="length")
    async with scripted("openai_chat", cut, MORE) as (_, runtime, session):
        events = await gather_events(session, "Look it up.")
        quiet = await session.ask("Thanks.")
        (ended, after) = [event for event in log(runtime, session) if isinstance(event, RoundEnded)]
        (provider,) = (
            runtime._backends.providers.actors.values()
        )  # no public method returns it; the counters are for operators
        counters = await provider.ask(Counters())
    (said,) = [event for event in events if isinstance(event, MessageEvent)]
    last = events[-1]
    assert isinstance(last, CompleteEvent)
    assert tuple(said.dropped.items()) == ended.dropped == last.result.dropped == (("cut_call", 1),)
    assert (quiet.dropped, after.dropped, counters["left_out"]) == ((), (), 1)
    (record,) = [record.getMessage() for record in caplog.records if "answer_left_out" in record.getMessage()]
    assert "kinds={'cut_call': 1}" in record
