"""`actors convert` from any dialect to any other and back, and `actors preview` of the way there."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from actors.cli import main
from actors.core.check import check
from actors.core.dialects.profiles import PROFILES, dialect
from actors.core.values.content import Media, Message, Text, ToolCall, ToolResult
from actors.testing import validate
from actors.transcripts import History, Ledger, encode, from_wire, render
from tests.commands.at_scale import spread

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
RICH = (
    Message("user", (Text("Look at \u2603 and \U0001f600."), Media("image/png", PIXEL))),
    Message(
        "assistant",
        (
            Text("Two at once."),
            ToolCall("hist_tool_1", "weather", {"city": "Oslo", "days": [1, 2.5, None]}),
            ToolCall("hist_tool_2", "weather", {"city": "Nowhere"}),
        ),
    ),
    Message(
        "tool",
        (
            ToolResult("hist_tool_1", {"temp": 4, "sky": "clear"}),
            ToolResult("hist_tool_2", error="no such city"),
        ),
    ),
    Message("assistant", (Text("Oslo has 4 C."),)),
    Message("user", (Text("And Rome?"),)),
    Message("assistant", (ToolCall("hist_tool_3", "weather", {"city": "Rome"}),)),
    Message("tool", (ToolResult("hist_tool_3", "21 C"),)),
    Message("user", (Text("Thanks."),)),
)
TOOL = {"name": "weather", "description": "W", "parameters": {"type": "object", "properties": {}}}

Json = dict[str, Any]  # Any: a request body


def rich_body(name: str) -> Json:
    """Return a conversation with a bit of everything as a request body of a dialect."""
    profile = PROFILES[name]
    rendered = render(History(RICH), Ledger(), profile)
    body: Json = json.loads(encode(rendered, model="m", system="Be brief.", tools=[TOOL], max_tokens=99))
    return body


def contents(body: Json, name: str) -> Iterator[tuple[str, str]]:
    """Yield the content of a body, without ids and dialect: texts by paragraph, media, calls and results in order."""
    history, _ = from_wire(body, name)
    for message in history:
        for block in message.blocks:
            match block:
                case Text(text=text):
                    yield from ((message.role, words) for words in text.split("\n\n"))
                case Media(data=data):
                    yield "media", data
                case ToolCall():
                    yield "call", f"{block.id} {block.name} {block.json.decode()}"
                case ToolResult():
                    yield (
                        "result",
                        f"{block.call_id} {json.loads(block.rendered_json).removeprefix('ERROR: ')}",
                    )
                case _:
                    pass


def write(path: Path, body: Json) -> str:
    path.write_text(json.dumps(body))
    return str(path)


def convert(
    body: Json, source: str, target: str, path: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[Json, str]:
    """Return the output and the messages of `actors convert`."""
    file = write(path / "body.json", body)
    assert main(["convert", file, "--from", source, "--to", target, "--model", "m"]) == 0
    out, err = capsys.readouterr()
    assert check(out.encode(), PROFILES[target]) == []
    assert validate(out.encode(), target) is None, (source, target)
    made: Json = json.loads(out)
    return made, err


@pytest.mark.parametrize("source", PROFILES)
def test_converting_a_file_back_and_forth_keeps_everything_that_both_dialects_support(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = rich_body(source)
    for target in spread(list(PROFILES), list(PROFILES).index(source)):
        there, _ = convert(body, source, target, tmp_path, capsys)
        back, _ = convert(there, target, source, tmp_path, capsys)
        images = "image" in PROFILES[target].media.user_kinds
        wanted = [fact for fact in contents(body, source) if images or fact[0] != "media"]
        came = list(contents(back, source))
        left = iter(came)
        assert [fact for fact in wanted if fact not in left] == [], target
        for kind in ("call", "result", "media"):
            assert [fact for fact in came if fact[0] == kind] == [fact for fact in wanted if fact[0] == kind]
        assert from_wire(back, source)[0].system == "Be brief.", target
        assert json.dumps(TOOL["name"]) in json.dumps(there.get("tools") or there.get("toolConfig")), target


DOCUMENTS = [name for name, profile in PROFILES.items() if "document" in profile.media.user_kinds]
PDF = "JVBERi0xLjQKJSVFT0YK"


@pytest.mark.parametrize("source", PROFILES)
def test_the_dialect_of_a_file_is_recognised(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = rich_body(source)
    named, _ = convert(body, source, "anthropic", tmp_path, capsys)
    file = write(tmp_path / "body.json", body)
    assert main(["convert", file, "--to", "anthropic", "--model", "m"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == named
    family = PROFILES[source].family
    (looks,) = [name for name, profile in PROFILES.items() if f"transcript: read as {name}: " in err]
    assert PROFILES[looks].family == family


@pytest.mark.parametrize("source", PROFILES)
def test_a_file_in_another_dialect_is_rejected_and_its_dialect_is_named(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "body.json", rich_body(source))
    for told in ("openai", "anthropic", "responses", "gemini", "bedrock"):
        if PROFILES[source].family == dialect(told).family:
            continue
        assert main(["convert", file, "--from", told, "--to", "mistral"]) == 2, told
        out, err = capsys.readouterr()
        assert out == ""
        (line,) = err.splitlines()
        (looks,) = [name for name in PROFILES if f"looks like {name} (" in line]
        assert PROFILES[looks].family == PROFILES[source].family
        assert f"not like {dialect(told).name}" in line


@pytest.mark.parametrize("source", DOCUMENTS)
def test_a_document_survives_every_dialect_that_supports_documents(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = (Message("user", (Text("Read this."), Media("application/pdf", PDF))),)
    body: Json = json.loads(
        encode(render(History(said), Ledger(), PROFILES[source]), model="m", max_tokens=99)
    )
    for target in spread(DOCUMENTS, DOCUMENTS.index(source)):
        there, _ = convert(body, source, target, tmp_path, capsys)
        back, _ = convert(there, target, source, tmp_path, capsys)
        assert ("media", PDF) in contents(there, target), target
        came = iter(contents(back, source))  # Bedrock's name of the document may follow it as text
        assert [fact for fact in contents(body, source) if fact not in came] == [], target


ASKED, ASKED_AGAIN = {"role": "user", "content": "Sure?"}, {"role": "user", "content": "Well?"}
CLEAR = {"role": "assistant", "reasoning_content": "Hm.", "content": "Yes."}
SIGNED = [{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}, {"type": "text", "text": "Yes."}]
SEALED = [
    {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}},
    {"text": "Yes."},
]
ITEM = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2ln"}
THOUGHT: dict[str, Json] = {
    "anthropic": {"messages": [ASKED, {"role": "assistant", "content": SIGNED}, ASKED_AGAIN]},
    "bedrock": {
        "messages": [
            {"role": "user", "content": [{"text": "Sure?"}]},
            {"role": "assistant", "content": SEALED},
            {"role": "user", "content": [{"text": "Well?"}]},
        ]
    },
    "gemini": {
        "contents": [
            {"role": "user", "parts": [{"text": "Sure?"}]},
            {"role": "model", "parts": [{"text": "Yes.", "thoughtSignature": "c2ln"}]},
            {"role": "user", "parts": [{"text": "Well?"}]},
        ]
    },
    "openai_responses": {"input": [ASKED, ITEM, {"role": "assistant", "content": "Yes."}, ASKED_AGAIN]},
    "kimi": {"messages": [ASKED, CLEAR, ASKED_AGAIN]},
    "deepseek": {"messages": [ASKED, CLEAR, ASKED_AGAIN]},
}
"""A conversation with thinking, in the form of each dialect."""


@pytest.mark.parametrize("source", THOUGHT)
def test_thinking_is_dropped_for_another_provider_and_reported(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for target in spread(tuple(PROFILES), tuple(THOUGHT).index(source)):
        made, said = convert(THOUGHT[source], source, target, tmp_path, capsys)
        assert "dropped: 1 thinking" in said, target
        assert "Hm." not in json.dumps(made)
        assert "c2ln" not in json.dumps(made)
        assert "Yes." in json.dumps(made)


@pytest.mark.parametrize("target", PROFILES)
def test_the_preview_command_reports_the_same_body_and_notes_as_the_convert_command(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made, _ = convert(
        rich_body("openai_chat") | {"temperature": 0.5}, "openai_chat", target, tmp_path, capsys
    )
    line = ["preview", str(tmp_path / "body.json"), "--from", "openai_chat", "--to", target]
    assert main([*line, "--json"]) == 0
    shown, said = capsys.readouterr()
    told = json.loads(shown)
    assert said == ""
    assert told["body"] | {"model": "m"} == made | {"model": "m"}
    assert told["dialect"] == target
    words = " ".join(told["shape"])
    assert not set(words) & {"?", "*"}
    assert [words.count(f"c{at}") for at in (1, 2, 3)] == [1, 1, 1]
    assert [words.count(f"R{at}") for at in (1, 2, 3)] == [1, 1, 1]
    assert told["losses"][-1:] == ["left out: temperature"]
    assert main(line) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert first == f"{target}: {told['size']:,} bytes"
    assert rest == [words, *told["repairs"], *told["additions"], *told["losses"]]


def test_the_preview_command_reports_repairs_and_synthetic_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    left = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    file = write(tmp_path / "t.json", {"messages": left})
    assert main(["preview", file, "--from", "openai", "--to", "anthropic"]) == 0
    _, words, *lines = capsys.readouterr().out.splitlines()
    assert words == "U A[c1] U[R1*]"
    assert lines == [
        "synthesized: a result for hist_tool_1 (lost)",
        "assumed: max_tokens 8192",
        "assumed: model 'model'",
    ]
