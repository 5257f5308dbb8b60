"""Check the import of valid and broken Bedrock transcripts."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.core.dialects.profiles import BEDROCK
from actors.core.history.history import History
from actors.core.values.content import Media, Text, Thinking, ToolCall, ToolResult
from actors.testing import BedrockSettings, validate
from actors.testing.images import png, png_base64
from actors.transcripts import from_wire
from tests.commands.at_scale import extent
from tests.core.session_log import body, find_refusal, render_at_once
from tests.generated.histories import READERS, history
from tests.rules.converse import (
    DOCUMENT,
    IMAGE,
    answer,
    model,
    reasoning,
    redacted_reasoning,
    text,
    use,
    user,
)

PIXEL = png_base64()

TRUSTING = BedrockSettings(signatures="trust")


def import_transcript(*messages: Any, **top: Any) -> History:  # Any: wire messages, broken ones on purpose
    history, _ = from_wire({"messages": list(messages), **top} if top else list(messages), "bedrock")
    return history


def test_a_valid_transcript_is_imported_without_loss() -> None:
    found = import_transcript(
        user(text("u"), IMAGE, DOCUMENT),
        model(reasoning(), redacted_reasoning(), text("t"), use("tooluse_1", given={"p": 1}), use("tooluse_2")),
        user(answer("tooluse_2", text("boom"), status="error"), answer("tooluse_1", text("a"), text("b")), text("go")),
        system=[text("Be brief."), {"cachePoint": {"type": "default"}}],
    )  # fmt: skip
    assert found.system == "Be brief."
    assert found.report.notes == ()
    first, said, results, last = found
    assert first.blocks == (
        Text("u"),
        Media("image/png", PIXEL),
        Media("application/pdf", "aGk="),
    )
    assert [type(block) for block in said.blocks] == [Thinking, Thinking, Text, ToolCall, ToolCall]
    assert said.calls[0].json == b'{"p":1}'
    assert [(result.call_id, result.error or result.content) for result in results.results] == [
        ("hist_tool_1", "a\nb"),
        ("hist_tool_2", "boom"),
    ]
    assert last.blocks == (Text("go"),)


def test_a_json_tool_result_is_imported_as_its_value() -> None:
    (result,) = import_transcript(user(text("u")), model(use()), user(answer("t1", {"json": {"a": 1}})))[
        2
    ].results
    assert result.content == {"a": 1}


def test_raw_bytes_from_a_client_are_imported_like_base64() -> None:
    image = {"image": {"format": "png", "source": {"bytes": png()}}}
    found = import_transcript(user(text("u"), image), model(redacted_reasoning(b"sec")))
    assert found[0].blocks[1] == Media("image/png", PIXEL)
    (thinking,) = found[1].blocks
    assert isinstance(thinking, Thinking)
    assert thinking.seal is not None
    assert thinking.seal.data == b'"c2Vj"'


@pytest.mark.parametrize(
    ("messages", "note"),
    [
        ([user(answer("gone"))], "unknown call 'gone'"),
        ([user({"toolResult": {"content": [text()]}})], "without a call id"),
        ([model({"toolUse": {"name": "read", "input": {}}})], "has no id"),
        ([model(use(given="{bad"))], "not a JSON object"),
        ([model(use()), user(answer(), answer())], "duplicate"),
        ([user({"video": {"format": "mp4"}})], "block of type 'video' kept as text"),
        ([user(3)], "block of no kind"),
        ([{"role": "tool", "content": "x"}], "message of role tool"),
        ([3, user(text())], "item that is no message"),
        ([user(text()), {"role": "system", "content": [text("later")]}], "mid-conversation"),
    ],
)
def test_irregularities_of_a_transcript_are_reported_and_its_render_is_accepted(
    messages: list[Any], note: str
) -> None:
    found = import_transcript(*messages)
    assert any(note in line for line in found.report.notes), found.report.notes
    rendered = render_at_once(found, found.ledger, READERS["bedrock"])
    assert find_refusal(rendered) is None


def test_the_blocks_of_an_imported_message_may_be_in_any_order() -> None:
    found = import_transcript(
        {"role": "assistant", "content": [use(), answer()]}, {"role": "user", "content": "plain"}
    )
    kinds = [type(block) for message in found for block in message.blocks]
    assert kinds == [ToolCall, ToolResult, Text]


def test_an_encoded_request_can_be_imported_without_loss() -> None:
    for seed in range(extent(100, 300)):
        messages, ledger = history(seed)
        sent = json.loads(body(render_at_once(messages, ledger, READERS["bedrock"])))
        found, ledger = from_wire(sent, "converse")
        assert found.report.notes == (), seed
        again = render_at_once(found, ledger, READERS["openai_chat"])
        assert find_refusal(again) is None


values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["text", "toolUse", "toolResult", "toolUseId", "content", "role", "image", "source"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(
    messages=st.lists(
        st.dictionaries(st.sampled_from(["role", "content"]), values | st.just("user")), min_size=1
    )
)
def test_any_messages_can_be_imported_and_rendered(messages: list[Any]) -> None:
    found = import_transcript(*messages)
    rendered = render_at_once(found, found.ledger, READERS["bedrock"])
    assert validate(body(rendered), BEDROCK.name, settings=TRUSTING) is None
