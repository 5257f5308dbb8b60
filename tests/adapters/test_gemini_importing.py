"""Check the import of generateContent transcripts, valid or broken."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.core.values.content import Code, Media, Message, Text, Thinking, ToolCall, ToolResult
from actors.transcripts import from_wire
from tests.core.session_log import examples, find_refusal, render_at_once
from tests.generated.histories import READERS

Json = dict[str, Any]  # Any: wire contents are built by hand, broken ones on purpose


def user(*parts: Any) -> Json:  # Any: whatever the case wants to try
    return {"role": "user", "parts": list(parts)}


def model(*parts: Any) -> Json:  # Any: likewise
    return {"role": "model", "parts": list(parts)}


def call(name: str = "read", args: Any = None, **more: Any) -> Json:  # Any: likewise
    return {"functionCall": {"name": name, "args": args or {}, **more}}


def result(name: str = "read", output: Any = "ok", **more: Any) -> Json:  # Any: likewise
    return {"functionResponse": {"name": name, "response": {"output": output}, **more}}


def import_transcript(*contents: Any) -> tuple[list[Message], list[str]]:  # Any: likewise
    history, _ = from_wire(list(contents), "gemini")
    return list(history), list(history.report.notes)


def pairs(messages: list[Message]) -> dict[str, object]:
    """Return the result of each call by the arguments of the call."""
    results = {result.call_id: result.content for message in messages for result in message.results}
    return {
        str(call.arguments.get("n")): results.get(call.id) for message in messages for call in message.calls
    }


def test_a_complete_conversation_is_imported() -> None:
    messages, odd = import_transcript(
        user({"text": "u"}),
        model(
            {"text": "hm", "thought": True},
            {"text": "t"},
            {**call(args={"p": 1}), "thoughtSignature": "cw=="},
        ),
        user(result(), {"text": "go"}),
    )
    assert [message.role for message in messages] == ["user", "assistant", "tool", "user"]
    kinds = [type(block) for block in messages[1].blocks]
    assert kinds == [Thinking, Text, Thinking, ToolCall]
    assert messages[2].blocks == (ToolResult("hist_tool_1", "ok"),)
    assert odd == []


def test_the_system_instruction_of_a_request_body_is_imported() -> None:
    body = {"systemInstruction": {"parts": [{"text": "Be brief."}]}, "contents": [user({"text": "u"})]}
    history, _ = from_wire(body, "gemini")
    assert (history.system, len(history)) == ("Be brief.", 1)


@pytest.mark.parametrize(
    "answers",
    [
        [result(output="1"), result(output="2"), result("run", "3")],
        [result("run", "3"), result(output="1"), result(output="2")],
        [result(output="2", id="b"), result(output="1"), result("run", "3")],
    ],
)
def test_function_responses_are_paired_by_id_or_by_position_and_name(answers: list[Json]) -> None:
    called = model(call(args={"n": 1}), call(args={"n": 2}, id="b"), call("run", {"n": 3}))
    messages, odd = import_transcript(user({"text": "u"}), called, user(*answers))
    assert pairs(messages) == {"1": "1", "2": "2", "3": "3"}
    assert odd == []


def test_calls_of_one_tool_in_two_turns_keep_their_own_results() -> None:
    messages, _ = import_transcript(
        model(call(args={"n": 1})),
        user(result(output="1")),
        model(call(args={"n": 2})),
        user(result(output="2")),
    )
    assert pairs(messages) == {"1": "1", "2": "2"}


def test_error_responses_are_recognised_and_responses_with_several_keys_are_kept() -> None:
    failed = {"functionResponse": {"name": "read", "response": {"error": "boom"}}}
    several = {"functionResponse": {"name": "run", "response": {"output": 1, "more": 2}}}
    messages, _ = import_transcript(model(call(), call("run")), user(failed, several))
    assert [(answer.error, answer.content) for answer in messages[1].results] == [
        ("boom", None),
        (None, {"output": 1, "more": 2}),
    ]


def test_results_without_a_call_are_orphans_and_second_results_are_duplicates() -> None:
    messages, odd = import_transcript(
        model(call(id="a")), user(result(id="a"), result(id="a"), result("gone", id="z"))
    )
    assert [answer.call_id for answer in messages[1].results] == ["hist_tool_1"]
    assert messages[2].text == "[A tool result without its call: ok]"
    assert ["duplicate" in odd[0], "kept as text" in odd[1]] == [True, True]


@pytest.mark.parametrize(
    ("part", "block"),
    [
        ({"executableCode": {"language": "PYTHON", "code": "1"}}, Code("1", "python")),
        (
            {"fileData": {"mimeType": "image/png", "fileUri": "https://x"}},
            Media("image/png", url="https://x"),
        ),
        ({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}, Text("[result of code] 1")),
        ("words", Text("words")),
        ({"strange": 1}, Text('[part of an unknown kind] {"strange":1}')),
    ],
)
def test_every_kind_of_part_is_kept(part: object, block: object) -> None:
    messages, _ = import_transcript(model(part))
    assert messages[0].blocks == (block,)


ANY = st.recursive(
    st.sampled_from([None, 0, "", "read", "a", "user", "model", "\ud800"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["name", "id", "text", "args"]), inner)
    ),
    max_leaves=5,
)
PARTS = st.one_of(
    st.builds(call, st.sampled_from(["read", "run", ""]), id=st.sampled_from(["a", "b", "", None])),
    st.builds(result, st.sampled_from(["read", "run", ""]), id=st.sampled_from(["a", "b", "", None])),
    st.fixed_dictionaries({"text": ANY, "thought": st.booleans(), "thoughtSignature": ANY}),
    st.dictionaries(
        st.sampled_from(["functionCall", "functionResponse", "inlineData", "text"]), ANY, max_size=2
    ),
    ANY,
)
CONTENTS = st.builds(
    lambda role, parts: {"role": role, "parts": parts},
    st.sampled_from(["user", "model", "function", "system", "tool", None]),
    st.lists(PARTS, max_size=4) | ANY,
)


@pytest.mark.requirement("PROMISE-1", "REQ-915-013")
@examples(300)
@given(contents=st.lists(CONTENTS, min_size=1, max_size=6))
def test_every_import_renders_to_valid_requests(contents: list[Json]) -> None:
    history, ledger = from_wire(contents, "gemini")
    for name in ("gemini", "vertex", "anthropic", "openai_chat"):
        assert find_refusal(render_at_once(history, ledger, READERS[name])) is None
