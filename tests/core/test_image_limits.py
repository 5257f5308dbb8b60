"""Check the limits on image size and count: excess images become notes and sent images stay."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from actors.adapters.adapter import adapter
from actors.core.data.jsonio import Json
from actors.core.lanes.lane import Rendered, empty_lane, replay_in_slices, run_slices
from actors.core.render import RenderTarget
from actors.core.values.content import Block, Media, Message, Text, ToolCall, ToolResult
from actors.errors import MediaError
from actors.testing import AnthropicServer, Call, OpenAIServer, Say, Turn, validate
from actors.testing.images import png, png_base64
from actors.tools import tool
from actors.transcripts import History, Ledger, check, dialect, encode, from_wire, render
from tests.commands.at_scale import share
from tests.runtime_support import assert_prefixes, bodies, runtime_with
from tests.scripted import scripted

LIMITED = ["anthropic", "bedrock"]
MODELS = {"anthropic": "claude-x", "bedrock": "anthropic.claude-x-v1:0"}


def photo(width: int = 900, height: int = 900, note: str = "") -> Media:
    return Media("image/png", png_base64(width, height, note))


def photos(count: int, width: int = 900, height: int = 900) -> list[Media]:
    return [photo(width, height, f"{width}x{height} {number}") for number in range(count)]


def call_with_media(media: list[Media]) -> list[Message]:
    """Return a call with these media in its result."""
    return [
        Message("user", [Text("Look.")]),
        Message("assistant", [ToolCall("c1", "camera")]),
        Message("tool", [ToolResult("c1", "here", media=media)]),
    ]


def sent_body(rendered: Rendered, name: str) -> bytes:
    body = encode(rendered, model=MODELS.get(name, "m"))
    assert check(body, dialect(name)) == []
    assert validate(body, name) is None
    return body


def count(body: bytes, media: list[Media]) -> int:
    return sum(item.data.encode() in body for item in media)


@pytest.mark.parametrize("name", ["anthropic", "bedrock", "gemini", "openai_responses"])
def test_an_image_is_sent_with_the_type_of_its_bytes(name: str) -> None:
    data = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGNgYGAAAAAEAAH2FzhVAAAAAElFTkSuQmCC"
    rendered = render(History(call_with_media([Media("image/jpeg", data)])), Ledger(), dialect(name))
    body = sent_body(rendered, name)
    assert data.encode() in body
    assert b"jpeg" not in body


@pytest.mark.parametrize("name", LIMITED)
def test_an_image_with_too_long_a_side_is_replaced_by_a_note_with_the_reason(name: str) -> None:
    large = photo(9000, 800)
    rendered = render(History(call_with_media([large])), Ledger(), dialect(name))
    body = sent_body(rendered, name)
    assert count(body, [large]) == 0
    assert b"9000 x 800 pixels is too long, 8000 are possible" in body
    assert dict(rendered.report.losses) == {"media": 1}


@pytest.mark.parametrize("name", LIMITED)
def test_a_large_image_is_sent_among_few_images_and_is_replaced_by_a_note_among_many(name: str) -> None:
    large, small = photo(2500, 1000), photos(21)
    few = sent_body(render(History(call_with_media([large, *small[:19]])), Ledger(), dialect(name)), name)
    assert count(few, [large, *small]) == 20
    for order in ([large, *small], [*small, large]):
        rendered = render(History(call_with_media(order)), Ledger(), dialect(name))
        many = sent_body(rendered, name)
        assert count(many, [large]) == 0
        assert count(many, small) == min(21, dialect(name).media.max_count or 21)
        why = b"2500 x 1000 pixels is too long, 2000 are possible among more than 20 images"
        assert why in many or b"as many as the provider accepts" in many


def test_after_a_large_image_a_lane_keeps_its_images_and_accepts_only_a_few_more() -> None:
    large, before, after = photo(2500, 1000), photos(10), photos(15, 901)
    profile = dialect("anthropic")
    history = History([Message("user", [Text("a"), large, *before])])
    first = render(history, Ledger(), profile)
    assert count(sent_body(first, "anthropic"), [large, *before]) == 11
    said = Message("assistant", [Text("ok")]), Message("user", [Text("b"), *after, photo(3000, 3000)])
    history = history.append(*said)
    second = render(history, Ledger(), profile, first.lane)
    body = sent_body(second, "anthropic")
    assert b"".join(second.lane._segments).startswith(b"".join(first.lane._segments))
    assert count(body, [large, *before, *after]) == 20
    assert body.count(b"the conversation already contains as many as the provider accepts") == 7
    assert dict(second.report.losses)["media"] == 7


def test_without_a_known_limit_any_image_is_sent() -> None:
    images = [photo(9000, 9000), *photos(30)]
    body = sent_body(
        render(History(call_with_media(images)), Ledger(), dialect("openai_responses")), "openai_responses"
    )
    assert count(body, images) == 31


SIDES = st.sampled_from([1, 900, 2000, 2001, 2500, 8000, 8001, 20_000])


@settings(max_examples=share(640), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    turns=st.lists(
        st.tuples(st.booleans(), st.lists(st.tuples(SIDES, SIDES), max_size=16)), min_size=1, max_size=6
    ),
    name=st.sampled_from(LIMITED),
)
def test_requests_with_many_images_are_never_rejected_and_keep_sent_messages_unchanged(
    turns: list[tuple[bool, list[tuple[int, int]]]], name: str
) -> None:
    profile, lane, lengths = dialect(name), None, []
    history, last = History(), b""
    for number, (in_result, sizes) in enumerate(turns):
        media = [photo(*size, f"{number}.{at}") for at, size in enumerate(sizes)]
        blocks: list[Block] = [Text(f"u{number}")]
        if in_result:
            call = ToolCall(f"c{number}", "camera")
            history = history.append(Message("user", blocks), Message("assistant", [call]))
            history = history.append(Message("tool", [ToolResult(call.id, "here", media=media)]))
        else:
            history = history.append(Message("user", [*blocks, *media]))
        rendered = render(history, Ledger(), profile, lane)
        sent_body(rendered, name)
        lane, now = rendered.lane, b"".join(rendered.lane._segments)
        assert now.startswith(last)
        last = now
        lengths.append(history.length)
        history = history.append(Message("assistant", [Text("ok")]))
    replay = run_slices(
        replay_in_slices(
            empty_lane(profile),
            history.upto(lengths[-1]),
            Ledger(),
            profile,
            adapter(profile).encoder,
            RenderTarget(),
            lengths,
        )
    )
    assert b"".join(replay._segments) == last


# ---- damaged images


@pytest.mark.parametrize("name", ["openai_chat", "anthropic", "gemini", "bedrock"])
def test_a_damaged_image_in_a_history_is_replaced_by_a_note(name: str) -> None:
    broken = Media("image/png", png_base64()[:24])
    rendered = render(History([Message("user", [Text("u"), broken])]), Ledger(), dialect(name))
    body = sent_body(rendered, name)
    assert broken.data.encode() not in body
    assert b"was omitted here; it cannot be read.]" in body


def test_a_damaged_image_in_a_transcript_is_replaced_by_a_note_and_is_reported() -> None:
    whole, cut = png_base64(), png_base64()[:-8]
    url = "data:image/png;base64,"
    parts: list[Any] = [
        {"type": "image_url", "image_url": {"url": url + data}} for data in (whole, cut, "no base64")
    ]
    history, _ = from_wire([{"role": "user", "content": parts}], "openai_chat")
    assert [type(block) for block in history[0].blocks] == [Media, Text, Text]
    assert "it is incomplete" in history.report.notes[0]
    assert "not valid base64" in history.report.notes[1]


@pytest.mark.anyio
async def test_a_damaged_image_in_an_ask_is_rejected_and_the_session_continues() -> None:
    async with scripted(AnthropicServer([Turn(Say("Hi."))])) as (_, _, session):
        with pytest.raises(
            MediaError, match="Part 1 of the ask, of type 'image/png', cannot be used: it is incomplete"
        ):
            await session.ask(["Look:", Media("image/png", png_base64()[:-8])])
        assert (await session.ask("Hello.")).text == "Hi."


@tool
def camera() -> list[object]:
    """Return pictures: one mislabelled, one damaged and one far too large."""
    return [
        Media("image/jpeg", png_base64(5, 5)),
        Media("image/png", png_base64(6, 6)[:-8]),
        Media.from_bytes(png(9000, 9), "image/png"),
    ]


@pytest.mark.anyio
async def test_images_returned_by_a_tool_never_block_a_session_with_any_provider() -> None:
    claude = AnthropicServer([Turn(Call("camera", {})), Turn(Say("Fine.")), Turn(Say("Still fine."))])
    gpt = OpenAIServer([Turn(Say("I see two."))])
    async with runtime_with(claude=claude, gpt=gpt) as runtime:
        session = await runtime.open("claude", tools=[camera])
        assert (await session.ask("Look.")).text == "Fine."
        assert (await session.ask("And now?")).text == "Still fine."
        await session.switch("gpt")
        assert (await session.ask("And you?")).text == "I see two."
    assert claude.refusals == gpt.refusals == []
    assert_prefixes(claude)
    first, other = json.dumps(bodies(claude)[-1]), json.dumps(bodies(gpt)[-1])
    assert '"media_type": "image/png"' in first
    assert "cannot be read: it is incomplete" in first
    assert "9000 x 9 pixels is too long" in first
    assert png_base64(9000, 9) in other


def test_media_of_a_result_get_the_type_of_their_bytes() -> None:
    made = ToolResult("c", media=[Media("image/jpeg", png_base64())], content_json=Json(b'"a"'))
    assert made.media == (Media("image/png", png_base64()),)
