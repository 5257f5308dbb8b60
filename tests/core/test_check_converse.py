"""Check that the Bedrock judge is a fold and never raises."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.core.check import check, check_fragment, finish_check, initial_state
from actors.core.dialects.profiles import BEDROCK
from actors.core.transcript.transcript import Projection, RenderState
from actors.core.values.content import Media, Message, Text, ToolCall
from actors.transcripts import dialect
from tests.core.recorded import record_walk
from tests.core.session_log import examples
from tests.core.test_check_fold import ANY_JSON, block_pieces, describe_faults, fold, join_pieces
from tests.rules.converse import (
    DOCUMENT,
    IMAGE,
    ROUND,
    TOOL,
    answer,
    body,
    document,
    documents,
    model,
    reasoning,
    redacted_reasoning,
    text,
    use,
    user,
)

Json = dict[str, Any]  # Any: wire messages are built by hand, broken ones on purpose

IDS = st.sampled_from(["a", "b", "c", "", "x.y", "x y"])
BLOCKS = st.one_of(
    st.sampled_from(["hi", "", " "]).map(text),
    IDS.map(use),
    IDS.map(answer),
    st.sampled_from(
        [reasoning(), redacted_reasoning(), IMAGE, DOCUMENT, {"cachePoint": {"type": "default"}}]
    ),
)
MESSAGES = st.builds(
    lambda role, blocks: {"role": role, "content": blocks},
    st.sampled_from(["user", "assistant"]),
    st.lists(BLOCKS, max_size=4),
)


@examples(500)
@given(messages=st.lists(MESSAGES, max_size=6), cuts=st.sets(st.integers(1, 24)) | st.just(set(range(99))))
def test_checking_bedrock_blocks_in_pieces_or_at_once_gives_the_same_faults(
    messages: list[Json], cuts: set[int]
) -> None:
    fragments = join_pieces(block_pieces(messages), cuts)
    whole = check(json.dumps(body(*messages), separators=(",", ":")).encode(), BEDROCK)
    assert describe_faults(fold(initial_state(BEDROCK), fragments)[1]) == describe_faults(whole)


FULL: Json = body(
    user(text(), IMAGE, DOCUMENT),
    model(reasoning(), redacted_reasoning(), text(), use("a", given={"p": 1}), use("b")),
    user(answer("b", {"json": {"x": 1}}, status="error"), answer("a", text(), text()), text("go")),
    model(text(), {"cachePoint": {"type": "default", "ttl": "1h"}}),
    user(text()),
    system=[text("be brief"), {"cachePoint": {"type": "default", "ttl": "1h"}}],
    inferenceConfig={"maxTokens": 9, "temperature": 0.5, "topP": 1, "stopSequences": ["x"]},
    toolConfig={
        "tools": [
            TOOL,
            {"toolSpec": {**TOOL["toolSpec"], "name": "run", "description": "Run.", "strict": True}},
        ],
        "toolChoice": {"tool": {"name": "run"}},
    },
    additionalModelRequestFields={"thinking": {"type": "adaptive"}},
    outputConfig={"effort": "low"},
)


def test_a_complete_bedrock_request_is_accepted() -> None:
    assert [str(fault) for fault in check(json.dumps(FULL).encode(), BEDROCK)] == []


def _places(value: Any) -> list[tuple[Any, Any]]:  # Any: JSON, and the keys of it
    found: list[tuple[Any, Any]] = []
    if isinstance(value, dict | list):
        found = list(value.items() if isinstance(value, dict) else enumerate(value))
    return [(value, key) for key, _ in found] + [place for _, inner in found for place in _places(inner)]


@examples(500)
@given(data=st.data(), new=ANY_JSON)
def test_the_request_checker_reports_faults_of_any_json_without_an_exception(
    data: st.DataObject, new: object
) -> None:
    request = json.loads(json.dumps(FULL))
    container, key = data.draw(st.sampled_from(_places(request)))
    container[key] = new
    for fault in check(json.dumps(request).encode(), BEDROCK):
        assert len(str(fault)) < 1000


def test_an_image_url_is_reported_as_a_fault_if_the_provider_accepts_only_bytes() -> None:
    said = [Message("user", [Text("Look:"), Media("image/png", url="https://a.example/i.png")])]
    with_image = {name: record_walk(said, dialect(name))[0][0][1][1] for name in ("bedrock", "anthropic")}
    assert isinstance(with_image["anthropic"], Media)
    assert isinstance(with_image["bedrock"], Text)
    assert "image/png" in with_image["bedrock"].text


def test_calls_in_a_lane_are_accepted_before_the_request_declares_their_tools() -> None:
    state, faults = check_fragment(initial_state(BEDROCK), "".join(block_pieces(FULL["messages"])).encode())
    assert faults == finish_check(state) == []


def test_call_ids_sent_to_bedrock_begin_with_tooluse() -> None:
    made = Projection(RenderState(), BEDROCK, None).id_and_name(ToolCall("x" * 300, "read"))[0]
    assert made.startswith("tooluse_")
    assert len(made) == len("tooluse_") + 22


def test_limits_and_unique_names_of_attachments_apply_across_fragments() -> None:
    same = [user(text(), DOCUMENT), model(text()), user(text(), DOCUMENT)]
    _, faults = fold(initial_state(BEDROCK), join_pieces(block_pieces(same), {2, 3}))
    assert [fault.rule for fault in faults] == ["BED-15"]
    full = [user(text(), *documents(5), *[IMAGE] * 15), model(text()), user(text(), document("late"))]
    _, faults = fold(initial_state(BEDROCK), join_pieces(block_pieces(full), set(range(30))))
    assert [fault.rule for fault in faults] == ["BED-17", "BED-16"]


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        (
            (*ROUND[:2], user(answer(), answer())),
            "messages[2].content[1]: a second result for tool call 't1'",
        ),
        (
            (*ROUND, model(text()), user(answer())),
            "messages[4].content[0]: a result for 't1', but the previous message",
        ),
        (
            (user(text()), model(use(), use("a b")), user(answer(), answer("a b"))),
            "messages[1].content[1].toolUseId:",
        ),
        ((*ROUND[:2], user(text())), "messages[2]: no result for tool call 't1' at the end"),
        (
            (*ROUND[:2], user(text()), model(text()), user(text())),
            "messages[2]: no result for tool call 't1' in the",
        ),
        (
            (user(text()), model(text(), use(name="a b")), user(answer())),
            "messages[1].content[1].name: tool name",
        ),
        ((*ROUND[:2], user(answer(), text(" "))), "messages[2].content[1]: the text is blank"),
    ],
)
def test_a_reported_fault_contains_its_json_path_and_the_id_of_its_call(
    messages: tuple[Json, ...], words: str
) -> None:
    (fault,) = check(json.dumps(body(*messages)).encode(), BEDROCK)
    assert str(fault).startswith(words)
    assert fault.call_ids == (
        ("a b",) if "id 'a b' is not" in str(fault) else ("t1",) if "'t1'" in str(fault) else ()
    )
