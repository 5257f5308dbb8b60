"""Check which settings each dialect encodes, and that it reports the others as lost."""

import json
from typing import Any

import pytest

from actors.adapters.adapter import adapter
from actors.adapters.codec import decode
from actors.adapters.request import Request, Settings, ToolSpec
from actors.core.data.jsonio import Json, quote
from actors.core.data.record import replace
from actors.core.dialects.dialect import Dialect
from actors.core.dialects.profiles import ANTHROPIC
from actors.core.lanes.lane import advance, empty_lane
from actors.core.render import RenderTarget
from actors.core.values.content import Message, ProviderState, Text, Thinking, ToolCall, ToolResult
from actors.core.values.identity import Binding
from actors.testing import AnthropicSettings, validate
from actors.transcripts import History, Ledger, dialect

CLAUDE = Binding("claude", "anthropic", "https://x.example", "", "m")
OBJECT = Json(b'{"type":"object"}')


def request(settings: Settings, profile: Dialect, *messages: Message, budgeted: bool = False) -> Request:
    """Return the request for a conversation as a session would build it."""
    history, encoder = History(messages or [Message("user", [Text("u")])]), adapter(profile).encoder
    reader = RenderTarget(CLAUDE, budgeted=budgeted)
    rendered = advance(empty_lane(profile), history, Ledger(), profile, encoder, reader)
    assert rendered.report.faults == ()
    return adapter(profile).request(rendered._segments, settings, rendered._facts)


def body(made: Request) -> Any:  # Any: JSON
    return json.loads(made.body)


def test_temperature_is_sent_if_supported_and_otherwise_reported() -> None:
    settings = Settings(model="m", temperature=0.5)
    assert body(request(settings, ANTHROPIC))["temperature"] == 0.5
    deaf = replace(ANTHROPIC, request=replace(ANTHROPIC.request, sampling=False))
    assert "temperature" not in body(request(settings, deaf))
    assert request(settings, deaf).losses == ("temperature",)


@pytest.mark.parametrize("name", ["anthropic", "bedrock"])
def test_a_temperature_above_the_maximum_is_omitted_and_reported(name: str) -> None:
    hot, warm = (request(Settings(model="m", temperature=heat), dialect(name)) for heat in (1.5, 1.0))
    assert (hot.losses, warm.losses) == (("temperature",), ())
    assert b"temperature" not in hot.body
    assert b"temperature" in warm.body
    assert validate(hot.body, name) is validate(warm.body, name) is None
    assert b"temperature" in request(Settings(model="m", temperature=1.5), dialect("openai_chat")).body


@pytest.mark.parametrize("mode", ["adaptive", "manual"])
def test_no_temperature_is_sent_to_a_thinking_model(mode: str) -> None:
    settings = Settings(model="m", temperature=0.5, thinking=mode)  # type: ignore[arg-type]  # one of the literals
    made = request(settings, ANTHROPIC)
    assert made.losses == ("temperature",)
    assert "temperature" not in body(made)


@pytest.mark.parametrize("mode", ["adaptive", "manual"])
def test_a_forced_tool_disables_thinking_for_its_request(mode: str) -> None:
    """ANT-48: a forced tool and thinking exclude each other."""
    settings = Settings(
        model="m",
        temperature=0.5,
        thinking=mode,  # type: ignore[arg-type]  # the parameter is one of the literals
        tools=(ToolSpec("read", "", OBJECT),),
        tool_choice="required",
    )
    made = request(settings, ANTHROPIC)
    assert made.losses == ("thinking",)
    assert body(made)["thinking"] == {"type": "disabled"}
    assert body(made)["tool_choice"] == {"type": "any"}
    assert validate(made.body, "anthropic") is None


def test_the_budget_of_manual_thinking_is_smaller_than_max_tokens() -> None:
    asked = body(request(Settings(model="m", thinking="manual", thinking_tokens=20_000), ANTHROPIC))
    assert asked["thinking"] == {"type": "enabled", "budget_tokens": 20_000}
    assert asked["max_tokens"] > 20_000
    tight = body(request(Settings(model="m", thinking="manual", max_tokens=10), ANTHROPIC))
    assert tight["max_tokens"] > tight["thinking"]["budget_tokens"] >= 1024


def test_effort_and_disabled_thinking_are_encoded_for_anthropic() -> None:
    asked = body(request(Settings(model="m", thinking="off", effort="low"), ANTHROPIC))
    assert asked["thinking"] == {"type": "disabled"}
    assert asked["output_config"] == {"effort": "low"}


def loop(*opening: Text | Thinking) -> list[Message]:
    """Return a conversation that ends with the result of a call, whose message opens with `opening`."""
    return [
        Message("user", [Text("u")]),
        Message("assistant", [*opening, ToolCall("c1", "read")], origin=CLAUDE),
        Message("tool", [ToolResult("c1", "ok")]),
    ]


OWN = Thinking("hm", ProviderState("signature", quote("sig"), CLAUDE))
MANUAL = Settings(model="m", thinking="manual")
TRUSTING = AnthropicSettings(signatures="trust")


@pytest.mark.requirement("REQ-915-024")
@pytest.mark.parametrize("said", [(), (Message("user", [Text("quickly")]),)], ids=["goes on", "steered"])
def test_a_tool_loop_without_thinking_is_closed_before_thinking_is_requested(
    said: tuple[Message, ...],
) -> None:
    """ANT-40, scenario 24: thinking is requested as in every other request, so the cached prefix stays valid."""
    foreign = [*loop(), *said]
    naive = request(MANUAL, ANTHROPIC, *foreign)
    refusal = validate(naive.body, "anthropic", settings=TRUSTING)
    assert refusal is not None
    assert refusal.rule == "ANT-40"
    closed = request(MANUAL, ANTHROPIC, *foreign, budgeted=True)
    assert "thinking" in body(closed)
    assert closed.losses == ()
    assert validate(closed.body, "anthropic", settings=TRUSTING) is None
    roles = [message["role"] for message in body(closed)["messages"]]
    assert roles == ["user", "assistant", "user", "assistant", "user"]
    assert body(closed)["messages"][-1]["content"][0]["text"] == ("quickly" if said else "(Please continue.)")


def test_a_tool_loop_that_began_with_thinking_continues_with_thinking() -> None:
    own = request(MANUAL, ANTHROPIC, *loop(OWN), budgeted=True)
    assert "thinking" in body(own)
    assert len(body(own)["messages"]) == 3
    assert validate(own.body, "anthropic", settings=TRUSTING) is None
    longer = [
        *loop(OWN),
        Message("assistant", [ToolCall("c2", "read")]),
        Message("tool", [ToolResult("c2", "ok")]),
    ]
    made = request(MANUAL, ANTHROPIC, *longer, budgeted=True)
    assert len(body(made)["messages"]) == 5
    assert validate(made.body, "anthropic", settings=TRUSTING) is None


def test_filler_messages_close_a_tool_loop_without_thinking_only_once() -> None:
    reader, encoder = RenderTarget(CLAUDE, budgeted=True), adapter(ANTHROPIC).encoder
    history = History(loop())
    first = advance(empty_lane(ANTHROPIC), history, Ledger(), ANTHROPIC, encoder, reader)
    assert first.report.fillers == (("between", 1), ("last", 1))
    again = advance(first.lane, history, Ledger(), ANTHROPIC, encoder, reader)
    assert again.transcript == first.transcript
    for message in (
        Message("assistant", [OWN, ToolCall("c2", "read")]),
        Message("tool", [ToolResult("c2", "ok")]),
    ):
        history = history.append(message)
    second = advance(first.lane, history, Ledger(), ANTHROPIC, encoder, reader)
    assert second.report.fillers == ()
    assert second.report.faults == ()
    assert second.transcript.startswith(first.transcript[:-3])
    made = adapter(ANTHROPIC).request(second._segments, MANUAL, second._facts)
    assert validate(made.body, "anthropic", settings=TRUSTING) is None


def test_an_invalid_tool_name_is_replaced_on_the_wire_and_restored() -> None:
    choosy = replace(
        ANTHROPIC,
        ids=replace(ANTHROPIC.ids, tool_name_pattern=r"(?!search\Z)[a-zA-Z0-9_-]{1,64}"),
    )
    settings = Settings(model="m", tools=(ToolSpec("search", "", OBJECT), ToolSpec("read", "", OBJECT)))
    made = request(settings, choosy, Message("assistant", [ToolCall("c1", "search")]))
    (sent,) = made.names
    assert sent != "search"
    assert made.names == {sent: "search"}
    assert [tool["name"] for tool in body(made)["tools"]] == [sent, "read"]
    assert sent.encode() in made.body.partition(b'"messages":')[2]
    answer = {
        "content": [{"type": "tool_use", "id": "t", "name": sent, "input": {}}],
        "stop_reason": "tool_use",
    }
    decoder = decode(choosy, CLAUDE, stream=False, names=made.names)
    decoder.feed(json.dumps(answer).encode())
    assert [call.name for call in decoder.close().calls] == ["search"]
