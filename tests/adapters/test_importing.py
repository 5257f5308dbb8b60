"""Check the import of wire transcripts, valid or broken."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.core.values.content import (
    Block,
    Code,
    Media,
    Message,
    ProviderBlock,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from actors.core.values.identity import Binding
from actors.errors import TranscriptError, UnknownTarget
from actors.testing.images import png_base64
from actors.transcripts import History, from_wire

Wire = dict[str, object]


def user(content: object) -> Wire:
    return {"role": "user", "content": content}


def calling_message(*ids: object, content: object = None, **more: object) -> Wire:
    """Return an assistant message that calls `f` once per id."""
    calls = [{"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}} for id in ids]  # noqa: A001
    return {"role": "assistant", "content": content, "tool_calls": calls, **more}


def tool_message(id: object, content: object = "ok") -> Wire:  # noqa: A002
    return {"role": "tool", "tool_call_id": id, "content": content}


def tool_use_blocks(*ids: object) -> list[Wire]:
    return [{"type": "tool_use", "id": id, "name": "f", "input": {}} for id in ids]  # noqa: A001


def tool_result_block(id: object, content: object = "ok", **more: object) -> Wire:  # noqa: A002
    return {"type": "tool_result", "tool_use_id": id, "content": content, **more}


def outline(imported: History) -> list[str]:
    """Return one line per message: its role and short forms of its blocks. Call ids are shown as numbers."""
    return [f"{message.role}: " + " ".join(map(_short, message.blocks)) for message in imported]


def _short(block: Block) -> str:
    match block:
        case Text():
            return repr(block.text)
        case Thinking():
            return f"thinks({block.text})"
        case ToolCall():
            return f"call{block.id.removeprefix('hist_tool_')}"
        case ToolResult():
            shown = block.content if block.error_json is None else f"!{block.error}"
            held = "".join(f" + {media.media_type}" for media in block.media)
            return f"result{block.call_id.removeprefix('hist_tool_')}({shown}{held})"
        case Media():
            return f"media({block.media_type})"
        case Code() | ProviderBlock():
            raise AssertionError(block)


def openai(*messages: object) -> History:
    return from_wire(list(messages), "openai")[0]


def anthropic(*messages: object) -> History:
    return from_wire(list(messages), "anthropic")[0]


def assistant(*content: object) -> Wire:
    return {"role": "assistant", "content": list(content)}


def text(words: str) -> Wire:
    return {"type": "text", "text": words}


def test_importing_a_valid_chat_transcript_reports_nothing() -> None:
    imported = openai(
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": [text("Be kind.")]},
        user("u"),
        calling_message("call_A", "call_B", content="t", reasoning_content="hm"),
        tool_message("call_B", "b"),
        tool_message("call_A", "a"),
        user(
            [text("go"), {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{png_base64()}"}}]
        ),
    )
    assert outline(imported) == [
        "user: 'u'",
        "assistant: thinks(hm) 't' call1 call2",
        "tool: result1(a) result2(b)",
        "user: 'go' media(image/png)",
    ]
    assert imported.system == "Be brief.\n\nBe kind."
    assert imported.report.notes == ()
    assert [item.call_id for item in imported.ledger.interactions()] == ["hist_tool_1", "hist_tool_2"]


def test_importing_a_valid_anthropic_transcript_reports_nothing() -> None:
    imported = anthropic(
        user([text("u")]),
        assistant(
            {"type": "thinking", "thinking": "hm", "signature": "sig+/=="},
            {"type": "redacted_thinking", "data": "zzz"},
            text("t"),
            *tool_use_blocks("toolu_A", "toolu_B"),
        ),
        user([tool_result_block("toolu_A"), tool_result_block("toolu_B", "boom", is_error=True), text("go")]),
    )
    assert outline(imported) == [
        "user: 'u'",
        "assistant: thinks(hm) thinks() 't' call1 call2",
        "tool: result1(ok) result2(!boom)",
        "user: 'go'",
    ]
    assert imported.report.notes == ()


@pytest.mark.requirement("REQ-915-014")
def test_signatures_and_ids_of_an_imported_transcript_are_kept_with_an_unknown_origin() -> None:
    imported = anthropic(
        assistant(
            {"type": "thinking", "thinking": "hm", "signature": "sig+/é=="}, *tool_use_blocks("toolu/é 1")
        )
    )
    (message,) = imported
    thinking, call = message.blocks
    assert isinstance(thinking, Thinking)
    assert isinstance(call, ToolCall)
    assert thinking.seal is not None
    assert call.native is not None
    assert (thinking.seal.kind, json.loads(thinking.seal.data)) == ("signature", "sig+/é==")
    assert (call.native.kind, json.loads(call.native.data)) == ("call_id", "toolu/é 1")
    assert {message.origin, thinking.seal.origin, call.native.origin} == {Binding("imported", "anthropic")}


# Broken transcripts: the input, its outline, and a part of each finding.
SCENARIOS: dict[str, tuple[History, list[str], list[str]]] = {
    "1 five calls, one answer": (
        openai(user("u"), calling_message("a", "b", "c", "d", "e"), tool_message("c"), user("go")),
        ["user: 'u'", "assistant: call1 call2 call3 call4 call5", "tool: result3(ok)", "user: 'go'"],
        [],
    ),
    "2 a steering message between call and result": (
        openai(calling_message("a", "b"), tool_message("a"), user("stop"), tool_message("b")),
        ["assistant: call1 call2", "tool: result1(ok) result2(ok)", "user: 'stop'"],
        [],
    ),
    "3 text before results": (
        anthropic(assistant(*tool_use_blocks("a")), user([text("x"), tool_result_block("a")])),
        ["assistant: call1", "tool: result1(ok)", "user: 'x'"],
        [],
    ),
    "4 results split over messages": (
        anthropic(
            assistant(*tool_use_blocks("a", "b")),
            user([tool_result_block("a")]),
            user([tool_result_block("b")]),
        ),
        ["assistant: call1 call2", "tool: result1(ok) result2(ok)"],
        [],
    ),
    "6 a duplicate result": (
        openai(calling_message("a"), tool_message("a", "one"), tool_message("a", "two")),
        ["assistant: call1", "tool: result1(one)"],
        ["messages[2]: another result for call 'a' kept as a duplicate"],
    ),
    "7 an orphan at the start": (
        anthropic(user([tool_result_block("gone")]), assistant(text("x"))),
        ["assistant: 'x'", "user: '[A tool result without its call: ok]'"],
        ["messages[0]: result for unknown call 'gone' kept as text"],
    ),
    "9 results of turn 1 after calls of turn 2": (
        openai(calling_message("a"), calling_message("b"), tool_message("a", "1"), tool_message("b", "2")),
        ["assistant: call1", "tool: result1(1)", "assistant: call2", "tool: result2(2)"],
        [],
    ),
    "11 a call in a tool message": (
        openai({**tool_message("a"), "tool_calls": calling_message("a")["tool_calls"]}),
        ["assistant: call1", "tool: result1(ok)"],
        [],
    ),
    "11 a result in an assistant message": (
        anthropic(assistant(text("x"), *tool_use_blocks("a"), tool_result_block("a"), text("y"))),
        ["assistant: 'x' call1", "tool: result1(ok)", "assistant: 'y'"],
        [],
    ),
    "12 a fork duplicates a turn": (
        openai(calling_message("a"), tool_message("a"), calling_message("a"), tool_message("a")),
        ["assistant: call1", "tool: result1(ok)", "assistant: call2", "tool: result2(ok)"],
        [],
    ),
    "12 a fork duplicates the calls, then the results": (
        anthropic(
            assistant(*tool_use_blocks("a")),
            assistant(*tool_use_blocks("a")),
            user([tool_result_block("a", 1), tool_result_block("a", 2)]),
        ),
        [
            "assistant: call1",
            "assistant: call2",
            "tool: result2(1)",
            "user: '[A tool result without its call: 2]'",
        ],
        ["result with ambiguous call id 'a' kept as text"],
    ),
    "17 ids reused per response": (
        anthropic(
            assistant(*tool_use_blocks("call_0")),
            user([tool_result_block("call_0", 1)]),
            assistant(*tool_use_blocks("call_0")),
            user([tool_result_block("call_0", 2)]),
        ),
        ["assistant: call1", "tool: result1(1)", "assistant: call2", "tool: result2(2)"],
        [],
    ),
    "18 blank and missing ids": (
        openai(calling_message("", None, " "), tool_message(""), tool_message(None), tool_message("  ")),
        ["assistant: call1 call2 call3", "tool: result1(ok) result2(ok) result3(ok)"],
        ["has no id"] * 3,
    ),
    "18 blank ids of more calls than results": (
        openai(calling_message("", None), tool_message("")),
        ["assistant: call1 call2", "user: '[A tool result without its call: ok]'"],
        ["has no id"] * 2 + ["result without a call id kept as text"],
    ),
    "34 thinking without its signature": (
        anthropic(assistant({"type": "thinking", "thinking": "half"})),
        ["assistant: thinks(half)"],
        [],
    ),
    "35 and 36 nothing but emptiness": (
        anthropic(
            assistant(text("")), user(""), assistant({"type": "thinking", "thinking": ""}), assistant()
        ),
        [],
        [],
    ),
    "42 an image in a result": (
        anthropic(
            assistant(*tool_use_blocks("a")),
            user(
                [
                    tool_result_block(
                        "a",
                        [
                            text("see"),
                            {
                                "type": "image",
                                "source": {"type": "base64", "media_type": "image/gif", "data": png_base64()},
                            },
                        ],
                    ),
                    text("?"),
                ]
            ),
        ),
        ["assistant: call1", "tool: result1(see + image/png)", "user: '?'"],
        [],
    ),
    "43 a lone surrogate": (
        openai(calling_message("a"), tool_message("a", "x\ud800y"), user("z\udc00")),
        ["assistant: call1", "tool: result1(x\ufffdy)", "user: 'z\ufffd'"],
        ["messages[1]: result was changed on import: surrogate"],
    ),
    "44 blocks only their provider knows": (
        anthropic(
            assistant({"type": "server_tool_use", "input": {"q": 1}}),
            user([tool_result_block("a", [{"type": "tool_reference", "tool_name": "f"}])]),
        ),
        [
            """assistant: '[block of type \\'server_tool_use\\'] {"type":"server_tool_use","input":{"q":1}}'""",
            """user: '[A tool result without its call: {"type":"tool_reference","tool_name":"f"}]'""",
        ],
        ["messages[0]: block of type 'server_tool_use' kept as text", "unknown call 'a'"],
    ),
    "a result before its call": (
        openai(tool_message("a", "early"), calling_message("a"), tool_message("a", "late")),
        ["assistant: call1", "tool: result1(late)", "user: '[A tool result without its call: early]'"],
        ["messages[0]: result with ambiguous call id 'a' kept as text"],
    ),
    "the old function call": (
        openai(
            {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
            {"role": "function", "name": "f", "content": "ok"},
        ),
        ["assistant: call1", "tool: result1(ok)"],
        [],
    ),
    "an empty function call of the old protocol": (
        openai(
            {"role": "assistant", "content": "a", "function_call": {"name": "", "arguments": ""}},
            {"role": "assistant", "content": "b", "function_call": {"name": None, "arguments": None}},
            {"role": "assistant", "content": "c", "function_call": {"name": " ", "arguments": "{}"}},
            calling_message("x", content="d", function_call={"name": "", "arguments": ""}),
            tool_message("x"),
        ),
        ["assistant: 'a'", "assistant: 'b'", "assistant: 'c'", "assistant: 'd' call1", "tool: result1(ok)"],
        [],
    ),
    "a function call of the old protocol without a name": (
        openai({"role": "assistant", "function_call": {"name": "", "arguments": '{"a":1}'}}),
        ["""assistant: '[function_call without a name] {"a":1}'"""],
        ["messages[0]: function_call without a name kept as text"],
    ),
    "a system message in mid-conversation": (
        openai(user("u"), {"role": "system", "content": "now"}, user("v")),
        ["user: 'u'", "user: '[System note] now'", "user: 'v'"],
        ["messages[1]: system message in mid-conversation kept as a note"],
    ),
    "an unknown role and an item that is none": (
        openai({"role": "narrator", "content": "once"}, 7, {"no": "role"}),
        [
            "user: '[message of role narrator] once'",
            "user: '[item that is no message] 7'",
            """user: '[message of role null] {"no":"role"}'""",
        ],
        ["messages[0]: message of role narrator kept as text", "messages[1]", "messages[2]"],
    ),
    "calls of odd shapes": (
        openai(
            {
                "role": "assistant",
                "tool_calls": [
                    {"id": 5, "name": "flat", "arguments": {"a": 1}},
                    {"id": "c", "type": "custom", "custom": {"name": "c", "input": "words"}},
                    "junk",
                ],
            },
            tool_message(5),
            tool_message("c"),
        ),
        ["assistant: call1 call2 '[item that is no tool call] junk'", "tool: result1(ok) result2(ok)"],
        ["item that is no tool call"],
    ),
    "parts of odd kinds": (
        openai(
            user(
                [text("a"), "b", {"type": "file", "file": {"file_data": "data:application/pdf;base64,AAAA"}}]
            ),
            user(
                [
                    {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
                    {"type": "video"},
                ]
            ),
            user(5),
            user(text("c")),
        ),
        [
            "user: 'a' 'b' media(application/pdf)",
            """user: media(audio/wav) '[content part of type \\'video\\'] {"type":"video"}'""",
            "user: '[content of an unknown kind] 5'",
            "user: 'c'",
        ],
        ["'video' kept as text", "unknown kind kept as text"],
    ),
}


@pytest.mark.requirement("REQ-915-047")
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_broken_transcript_is_imported_without_repair(name: str) -> None:
    imported, expected, remarks = SCENARIOS[name]
    assert outline(imported) == expected
    assert len(imported.report.notes) == len(remarks)
    for line, remark in zip(imported.report.notes, remarks, strict=True):
        assert remark in line


@pytest.mark.parametrize("arguments", ['{"path":"/a', "null", "[1]", '"x"', "3", '{"a":1}{}', [1], 7])
def test_malformed_arguments_become_an_empty_object_and_are_kept_verbatim(arguments: object) -> None:
    call = {"id": "a", "function": {"name": "f", "arguments": arguments}}
    imported = openai({"role": "assistant", "tool_calls": [call]})
    (read,) = imported[0].calls
    assert read.json == b"{}"
    assert read.raw == (arguments if isinstance(arguments, str) else json.dumps(arguments))
    assert len(imported.report.notes) == 1


@pytest.mark.parametrize("arguments", ["", None, "{}", " {} ", {}])
def test_blank_arguments_are_imported_as_an_empty_object(arguments: object) -> None:
    call = {"id": "a", "function": {"name": "f", "arguments": arguments}}
    imported = openai({"role": "assistant", "tool_calls": [call]})
    (read,) = imported[0].calls
    assert (read.json, read.raw, imported.report.notes) == (b"{}", None, ())


def test_valid_arguments_keep_the_exact_bytes_of_the_model() -> None:
    written = '{ "z":1.10, "a":"\\u00e9" }'
    imported = openai({"role": "assistant", "tool_calls": [{"id": "a", "function": {"arguments": written}}]})
    assert imported[0].calls[0].json == written.encode()


@pytest.mark.requirement("REQ-915-048")
@pytest.mark.parametrize("content", [None, "", []])
def test_an_empty_result_counts_as_a_result(content: object) -> None:
    (result,) = openai(calling_message("a"), tool_message("a", content))[1].results
    assert result.status == "complete"
    (failed,) = anthropic(
        assistant(*tool_use_blocks("a")), user([tool_result_block("a", None, is_error=True)])
    )[1].results
    assert failed.status == "error"


def test_an_imported_tool_result_may_be_any_json_value() -> None:
    for value in ({"a": [1, None]}, [1, 2], 7, True, [{"no": "type"}]):
        (result,) = openai(calling_message("a"), tool_message("a", value))[1].results
        assert result.content == value


def test_a_request_body_is_imported_with_its_system_prompt() -> None:
    body = {"model": "m", "system": [text("one"), text("two")], "messages": [user("u")]}
    imported, _ = from_wire(body, "anthropic")
    assert (imported.system, outline(imported)) == ("one\ntwo", ["user: 'u'"])


class Returned:
    """An object of a vendor's client: not a dict, but convertible to one."""

    def __init__(self, plain: Wire) -> None:
        self._plain = plain

    def model_dump(self) -> Wire:
        return self._plain


def test_message_objects_of_a_vendor_client_are_imported_like_dicts() -> None:
    imported = openai(
        user("u"), Returned({**calling_message("a"), "function_call": None, "audio": None}), tool_message("a")
    )
    assert outline(imported) == ["user: 'u'", "assistant: call1", "tool: result1(ok)"]
    blocks = {"role": "assistant", "content": [Returned(block) for block in tool_use_blocks("a")]}
    assert outline(anthropic(blocks)) == ["assistant: call1"]


@pytest.mark.parametrize(
    "value", [None, 3, "text", b"bytes", {}, {"message": []}, {"messages": 3}, [1, 2], ["x"], {1, 2}]
)
def test_an_invalid_transcript_is_rejected_with_a_one_line_error(value: object) -> None:
    with pytest.raises(
        TranscriptError, match=r"^(?:A transcript must be|The (?:object|list) is not a transcript)[^\n]+$"
    ):
        from_wire(value, "openai_chat")


def test_the_error_for_an_unknown_dialect_names_the_dialect() -> None:
    with pytest.raises(UnknownTarget, match="antropic"):
        from_wire([], "antropic")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=4,
)
ids = st.sampled_from(["a", "b", "", " ", None, 0])
loose = st.sampled_from(
    ["user", "assistant", "tool", "system", "text", "tool_use", "tool_result", "image", "thinking"]
)
blocks = st.one_of(
    json_values,
    ids.map(lambda id: tool_use_blocks(id)[0]),  # noqa: A006
    st.builds(tool_result_block, ids, json_values, is_error=json_values),
    st.dictionaries(
        st.sampled_from(["type", "text", "source", "input", "content", "image_url"]), json_values | loose
    ),
)
messages = st.one_of(
    json_values,
    st.builds(calling_message, ids, ids, content=json_values),
    st.builds(tool_message, ids, json_values),
    st.fixed_dictionaries(
        {"role": loose | json_values, "content": st.lists(blocks, max_size=4) | json_values}
    ),
    st.dictionaries(
        st.sampled_from(["role", "content", "tool_calls", "function_call", "name"]), json_values | loose
    ),
)


@pytest.mark.parametrize("name", ["gemini", "vertex", "gemini_2"])
@pytest.mark.parametrize("holder", ["messages", ""])
def test_messages_with_a_content_key_are_not_mistaken_for_gemini_contents(name: str, holder: str) -> None:
    said = [{"role": "user"}, {"role": "user", "content": "Hi."}]
    transcript = {holder: said} if holder else said
    with pytest.raises(
        TranscriptError, match=rf"dialect {name}: messages\[1\] has 'content' instead of 'parts'"
    ):
        from_wire(transcript, name)


@pytest.mark.parametrize("dialect", ["openai_chat", "anthropic"])
@given(transcript=st.lists(messages, max_size=6))
def test_any_list_of_messages_is_imported_or_raises_a_transcript_error(
    dialect: str, transcript: list[object]
) -> None:
    try:
        imported, _ = from_wire(transcript, dialect)
    except TranscriptError as error:
        other = "looks like" in str(error)  # a transcript of another dialect, by chance
        assert other or not any(isinstance(message, dict) for message in transcript)
        return
    calls = [call.id for message in imported for call in message.calls]
    assert len(set(calls)) == len(calls)
    assert all(message.blocks for message in imported)
    assert all(role_fits(message) for message in imported)
    assert imported == from_wire(transcript, dialect)[0]


def role_fits(message: Message) -> bool:
    """Return True if calls have the model's role and results the tool's."""
    kinds: Sequence[type[Block]] = [type(block) for block in message.blocks]
    return (ToolCall not in kinds or message.role == "assistant") and (
        ToolResult not in kinds or message.role == "tool"
    )
