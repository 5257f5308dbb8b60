"""Check the import of Responses transcripts, valid or broken."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.core.values.content import Thinking
from actors.testing.images import png_base64
from actors.transcripts import History, check, dialect, encode, from_wire, render
from tests.adapters.test_importing import outline

Wire = dict[str, object]


def user(content: object) -> Wire:
    return {"type": "message", "role": "user", "content": content}


def model(content: object, **more: object) -> Wire:
    return {"type": "message", "role": "assistant", "content": content, **more}


def call(call_id: object, **more: object) -> Wire:
    return {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}", **more}


def gave(call_id: object, output: object = "ok") -> Wire:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


THOUGHT: Wire = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "Hm."}],
    "encrypted_content": "gAAA",
}


def import_transcript(*items: object) -> History:
    history, _ = from_wire(list(items), "responses")
    return history


def test_importing_a_valid_transcript_reports_nothing() -> None:
    imported = import_transcript(
        {"role": "developer", "content": "Be brief."},
        user("u"),
        THOUGHT,
        model(
            [{"type": "output_text", "text": "Looking.", "annotations": []}], id="msg_1", phase="commentary"
        ),
        call("a", id="fc_1", status="completed"),
        call("b"),
        gave("b", "B"),
        gave("a", "A"),
        model("done"),
        {"role": "user", "content": [{"type": "input_text", "text": "thanks"}]},
    )
    assert outline(imported) == [
        "user: 'u'",
        "assistant: thinks(Hm.) 'Looking.' call1 call2",
        "tool: result1(A) result2(B)",
        "assistant: 'done'",
        "user: 'thanks'",
    ]
    assert (imported.system, imported.report.notes) == ("Be brief.", ())


def test_imported_reasoning_keeps_its_encrypted_content_with_the_origin_imported() -> None:
    (message,) = import_transcript(THOUGHT, model("t"))
    thought = message.blocks[0]
    assert isinstance(thought, Thinking)
    assert thought.seal is not None
    assert (thought.seal.kind, thought.seal.origin.backend) == ("reasoning_item", "imported")


@pytest.mark.parametrize(
    ("body", "system", "said"),
    [
        ({"input": [user("u")], "instructions": "s"}, "s", ["user: 'u'"]),
        ({"input": "u", "instructions": None}, None, ["user: 'u'"]),
        ({"input": [user("u")], "model": "m"}, None, ["user: 'u'"]),
    ],
)
def test_a_responses_body_is_imported_with_its_instructions(
    body: Wire, system: str | None, said: list[str]
) -> None:
    imported, _ = from_wire(body, "responses")
    assert (outline(imported), imported.system) == (said, system)


def test_a_custom_call_keeps_its_input_verbatim_and_its_output() -> None:
    made = {"type": "custom_tool_call", "call_id": "a", "name": "sql", "input": "select 1"}
    imported = import_transcript(made, {"type": "custom_tool_call_output", "call_id": "a", "output": "1"})
    assert outline(imported) == ["assistant: call1", "tool: result1(1)"]
    assert imported[0].calls[0].raw == "select 1"


@pytest.mark.parametrize(
    ("odd", "note"),
    [
        ({"type": "item_reference", "id": "msg_1"}, "reference to an item that its provider keeps"),
        ({"type": "web_search_call", "id": "ws_1"}, "item of type 'web_search_call'"),
        ({"type": "zzz"}, "item of type 'zzz'"),
        ({}, "item of type ''"),
        ("text", "entry that is no item"),
        ({"role": "narrator", "content": "x"}, "message of role narrator"),
        (user([{"type": "input_audio", "zzz": 1}]), "content part of type 'input_audio'"),
        (user(3), "content of an unknown kind"),
    ],
)
def test_unsupported_items_are_kept_as_labelled_text(odd: object, note: str) -> None:
    imported = import_transcript(user("u"), odd)
    assert len(imported) == 2
    assert imported[1].text.startswith(f"[{note}]")
    assert imported.report.notes == (f"input[1]: {note} kept as text",)


def test_items_of_server_tools_are_imported_as_model_text_and_not_as_calls() -> None:
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "x"}}
    mcp = {"type": "mcp_call", "id": "mcp_1", "name": "lookup", "arguments": "{}", "output": "found"}
    image = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "AAAA"}
    imported = import_transcript(user("u"), search, mcp, model("t"), image, user("v"))
    assert [message.role for message in imported] == ["user", "assistant", "user"]
    assert [call for message in imported for call in message.calls] == []
    assert [type(block).__name__ for block in imported[1].blocks] == ["Text", "Text", "Text", "Media"]
    assert "found" in imported[1].text
    assert [note.split(": ", 1)[1] for note in imported.report.notes] == [
        "item of type 'web_search_call' kept as text",
        "item of type 'mcp_call' kept as text",
        "image from the provider's own tool kept as an image of the model",
    ]


def test_opaque_provider_items_are_omitted_and_reported() -> None:
    compacted = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA"}
    tools = {"type": "additional_tools", "role": "developer", "tools": [{"type": "function", "name": "f"}]}
    imported = import_transcript(user("u"), compacted, tools)
    assert outline(imported) == ["user: 'u'"]
    assert [note.split(": ", 1)[1] for note in imported.report.notes] == [
        "item of type 'compaction' left out",
        "item of type 'additional_tools' left out",
    ]


def test_calls_without_outputs_and_outputs_without_calls_are_imported_without_repair() -> None:
    imported = import_transcript(
        gave("z"), user("u"), call("a"), call("a"), gave("a", "1"), gave("a", "2"), gave("a", "3")
    )
    assert outline(imported) == [
        "user: '[A tool result without its call: ok]'",
        "user: 'u'",
        "assistant: call1 call2",
        "user: " + " ".join(f"'[A tool result without its call: {number}]'" for number in (1, 2, 3)),
    ]
    assert len(imported.report.notes) == 4


@pytest.mark.requirement("REQ-915-048")
@pytest.mark.parametrize("status", ["in_progress", "incomplete"])
def test_an_imported_call_without_its_output_has_an_unknown_outcome(status: str) -> None:
    imported = import_transcript(
        call("a"), {"type": "function_call_output", "call_id": "a", "status": status}
    )
    (known,) = imported.ledger.interactions()
    assert (known.status, known.reason, known.started) == ("unknown", "outcome_unknown", True)
    assert len(imported.report.notes) == 1
    given = import_transcript(call("a"), {**gave("a"), "status": status})
    assert [item.status for item in given.ledger.interactions()] == ["complete"]


def test_a_call_without_a_call_id_is_identified_by_its_item_id() -> None:
    assert outline(import_transcript(call(None, id="fc_1"), gave("fc_1"))) == [
        "assistant: call1",
        "tool: result1(ok)",
    ]


def test_a_tool_message_of_chat_completions_is_imported_as_a_result() -> None:
    imported = import_transcript(call("a"), {"role": "tool", "tool_call_id": "a", "content": "ok"})
    assert outline(imported) == ["assistant: call1", "tool: result1(ok)"]


def test_imported_images_and_files_become_media_blocks_in_any_position() -> None:
    image = {"type": "input_image", "image_url": f"data:image/png;base64,{png_base64()}"}
    file = {"type": "input_file", "filename": "d.pdf", "file_data": "data:application/pdf;base64,aGk="}
    there = {"type": "input_file", "file_url": "https://x.example/d.pdf"}
    imported = import_transcript(
        user([image, file, there]), call("a"), gave("a", [{"type": "input_text", "text": "see"}, image])
    )
    assert outline(imported) == [
        "user: media(image/png) media(application/pdf) media(application/pdf)",
        "assistant: call1",
        "tool: result1(see + image/png)",
    ]


WORDS = st.sampled_from(
    """type role content id call_id name arguments output input summary encrypted_content text user assistant
    message function_call function_call_output reasoning item_reference custom_tool_call input_text
    input_image image_url system tool phase""".split()  # noqa: SIM905  as a list it is a page
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.text(max_size=4) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=8,
)


@pytest.mark.requirement("REQ-915-004")
@given(items=st.lists(JSON, min_size=1, max_size=5))
def test_every_import_renders_to_a_valid_request(items: list[object]) -> None:
    profile = dialect("responses")
    history, ledger = from_wire([user("u"), *items], "responses")
    body = encode(render(history, ledger, profile), model="m")
    assert check(body, profile) == []
    again, known = from_wire(json.loads(body), "responses")
    assert check(encode(render(again, known, profile), model="m"), profile) == []
