"""Sessions on OpenAI Responses: reasoning stays valid across switches, cancels and a refusal."""

from itertools import pairwise

import pytest

from actors.config import BackendLimits
from actors.core.log.events import EpochBegan
from actors.core.values.content import Media
from actors.errors import AskFailed
from actors.testing import (
    Builtin,
    Call,
    ErrorInStream,
    Redacted,
    ResponsesProfile,
    ResponsesServer,
    ResponsesSettings,
    Say,
    Status,
    Think,
    Turn,
)
from tests.runtime_support import Gate, Json, anthropic, bodies, log, openai, runtime_with
from tests.scripted import scripted

pytestmark = pytest.mark.anyio

BOUND = ResponsesSettings(ResponsesProfile(prefix_bound=True))
"""The strictest host: encrypted reasoning is valid only after the exact prefix of its generation."""
CALLS = (Call("work", {"name": "a"}), Call("work", {"name": "b"}))
UNVERIFIED = "The encrypted content for item rs_1 could not be verified."


def responses(*turns: Turn, **options: Status | ErrorInStream) -> ResponsesServer:
    faults = {int(number.removeprefix("at_")): fault for number, fault in options.items()}
    return ResponsesServer(list(turns), settings=BOUND, faults=faults)


def reasoning(body: Json) -> list[str]:
    return [item["encrypted_content"] for item in body["input"] if item["type"] == "reasoning"]


@pytest.mark.requirement("PROMISE-1", "PROMISE-4", "PROMISE-11", "REQ-915-001", "REQ-915-041")
@pytest.mark.parametrize("other", [anthropic, openai])
async def test_reasoning_stays_valid_across_a_switch_and_back(other: object) -> None:
    gate = Gate()
    gate.open("a", "b")
    here = responses(
        Turn(Think("hm"), Say("Looking."), *CALLS),
        Turn(Redacted(), Say("Done.")),
        Turn(Think("back"), *CALLS),
        Turn(Say("Again.")),
    )
    assert callable(other)
    there = other(Turn(Think("hm"), *CALLS), Turn(Say("Done there.")))
    async with runtime_with(here=here, there=there) as runtime:
        session = await runtime.open("here", tools=[gate.tool])
        assert (await session.ask("Do it.")).text == "Done."
        await session.switch("there")
        assert (await session.ask("You too.")).text == "Done there."
        await session.switch("here")
        assert (await session.ask("Once more.")).text == "Again."
    assert here.refusals == there.refusals == []
    sent = bodies(here)
    for before, after in pairwise(sent):
        assert after["input"][: len(before["input"])] == before["input"]
    assert [len(reasoning(body)) for body in sent] == [0, 1, 2, 3]
    assert all(body["store"] is False for body in sent)


@pytest.mark.requirement("PROMISE-1", "PROMISE-4", "PROMISE-13")
async def test_reasoning_without_item_ids_is_sent_back_unchanged() -> None:
    gate = Gate()
    gate.open("a", "b")
    profile = ResponsesProfile(prefix_bound=True, has_item_ids=False)
    turns = [Turn(Think("hm"), *CALLS), Turn(Think("so"), Say("Done.")), Turn(Say("Again."))]
    relay = ResponsesServer(turns, settings=ResponsesSettings(profile))
    async with scripted(relay, tools=[gate.tool]) as (_, _, session):
        assert (await session.ask("Do it.")).text == "Done."
        assert (await session.ask("Once more.")).text == "Again."
    sent = bodies(relay)
    assert [len(reasoning(body)) for body in sent] == [0, 1, 2]
    assert not any("id" in item for body in sent for item in body["input"])
    for before, after in pairwise(sent):
        assert after["input"][: len(before["input"])] == before["input"]


@pytest.mark.requirement("PROMISE-1")
@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("invalid_encrypted_content", UNVERIFIED),
        ("missing_required_parameter", "Missing required parameter: 'input[1].id'."),
        (None, "Item 'rs_1' of type 'reasoning' was provided without its required following item."),
        (
            None,
            "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'.",
        ),
    ],
)
async def test_refused_reasoning_is_left_out_of_the_retry(code: str | None, message: str) -> None:
    gate = Gate()
    gate.open("a", "b")
    refusal = Status(400, code=code, type="invalid_request_error", message=message)
    here = responses(Turn(Think("hm"), *CALLS), Turn(Say("Done.")), at_1=refusal)
    async with scripted(here, tools=[gate.tool]) as (_, runtime, session):
        assert (await session.ask("Do it.")).text == "Done."
        began = [event for event in log(runtime, session) if isinstance(event, EpochBegan)]
        assert [(event.reason, event.plain) for event in began] == [("thinking", False)]
    _, refused, again = bodies(here)
    assert (len(reasoning(refused)), len(reasoning(again))) == (1, 0)
    kinds = [item["type"] for item in again["input"]]
    assert kinds.count("function_call") == kinds.count("function_call_output") == 2


async def test_a_truncated_answer_keeps_its_text_and_drops_a_truncated_call() -> None:
    gate = Gate()
    here = responses(Turn(Say("So."), Call("work", raw='{"na'), stop="max_output_tokens"), Turn(Say("Fine.")))
    async with scripted(here, tools=[gate.tool]) as (_, _, session):
        assert (await session.ask("Do it.")).text == "So."
        assert (await session.ask("Go on.")).text == "Fine."


def image(size: int) -> Builtin:
    """Return a generated image whose data has `size` characters."""
    return Builtin({"type": "image_generation_call", "status": "completed", "result": "A" * size})


async def test_an_image_over_one_mebibyte_in_the_last_stream_events_is_read() -> None:
    server = responses(Turn(image(1_200_000), Say("Here it is.")), Turn(Say("A cat.")))
    async with scripted(server) as (_, _, session):
        assert (await session.ask("Draw a cat.")).text == "Here it is."
        (media,) = (
            block
            for message in await session.history()
            for block in message.blocks
            if isinstance(block, Media)
        )
        assert (media.media_type, media.data) == ("image/png", "A" * 1_200_000)
        assert (await session.ask("What is it?")).text == "A cat."


async def test_an_answer_over_the_size_limit_fails_and_names_the_limit() -> None:
    limits = BackendLimits(attempts=1, answer_bytes=1_000_000)
    async with runtime_with(a=responses(Turn(image(300_000), Say("Here."))), backend=limits) as runtime:
        session = await runtime.open("a")
        assert (await session.ask("Draw a cat.")).text == "Here."
    async with runtime_with(a=responses(Turn(image(600_000), Say("Here."))), backend=limits) as runtime:
        session = await runtime.open("a")
        with pytest.raises(AskFailed, match="the answer is larger than 1000000 bytes"):
            await session.ask("Draw a cat.")
