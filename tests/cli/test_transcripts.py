"""`actors lint` and `actors convert` on realistic files."""

import json
from pathlib import Path
from typing import Any

import pytest

from actors.adapters.importing import read_declarations
from actors.cli import main
from actors.core.check import check
from actors.core.dialects.profiles import dialect
from actors.testing import validate


def call(call_id: str, arguments: str = "{}") -> dict[str, Any]:  # Any: JSON
    return {"id": call_id, "type": "function", "function": {"name": "weather", "arguments": arguments}}


BROKEN = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Weather?"},
    {"role": "assistant", "content": None, "tool_calls": [call("a", '{"city":'), call("b")]},
    {"role": "tool", "tool_call_id": "zz", "content": "lost"},
    {"role": "tool", "tool_call_id": "b", "content": "4 C"},
    {"role": "tool", "tool_call_id": "b", "content": "4 C"},
]
TOOL = {"name": "weather", "description": "W", "parameters": {"type": "object", "properties": {}}}
BODY = {"model": "gpt-5.2", "temperature": 0.2, "tools": [{"type": "function", "function": TOOL}]}


def file(path: Path, value: object) -> str:
    target = path / "transcript.json"
    target.write_text(json.dumps(value))
    return str(target)


def test_the_lint_command_prints_one_line_for_each_violation_and_gives_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lint", file(tmp_path, BROKEN), "--for", "openai"]) == 1
    lines = capsys.readouterr().out.splitlines()
    body = json.dumps({"model": "model", "messages": BROKEN}).encode()
    assert lines == [str(fault) for fault in check(body, dialect("openai"))]
    assert [line[-8:] for line in lines] == ["(ALL-06)", "(OAC-02)", "(OAC-02)", "(OAC-01)"]


def test_the_lint_command_prints_nothing_for_a_valid_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clean = [{"role": "user", "content": "Hi."}]
    for name in ("openai", "anthropic"):
        assert main(["lint", file(tmp_path, clean), "--for", name]) == 0
        assert capsys.readouterr().out == ""


def test_the_lint_command_with_the_from_option_lists_the_necessary_repairs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lint", file(tmp_path, BROKEN), "--for", "anthropic", "--from", "openai"]) == 1
    out = capsys.readouterr().out
    assert "synthesized: a result for hist_tool_1 (lost)" in out
    assert "kept as text" in out
    clean = [{"role": "user", "content": "Hi."}]
    assert main(["lint", file(tmp_path, clean), "--for", "anthropic", "--from", "openai"]) == 0


@pytest.mark.parametrize("to", ["openai_chat", "anthropic"])
def test_the_convert_command_prints_a_valid_body_and_lists_the_repairs(
    to: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["convert", file(tmp_path, {**BODY, "messages": BROKEN}), "--from", "openai", "--to", to]) == 0
    )
    out, err = capsys.readouterr()
    body = out.encode()
    assert check(body, dialect(to)) == []
    assert validate(body, to) is None
    sent = json.loads(body)
    assert sent["model"] == "gpt-5.2"
    assert len(sent["tools"]) == 1
    assert "Be brief." in out
    for said in (
        "kept as raw text",
        "kept as text",
        "kept as a duplicate",
        "(lost)",
        "left out: temperature",
    ):
        assert said in err


def test_a_converted_file_passes_lint_and_converts_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["convert", file(tmp_path, BROKEN), "--from", "openai", "--to", "anthropic", "--model", "m"])
    there = json.loads(capsys.readouterr().out)
    assert there["model"] == "m"
    assert main(["lint", file(tmp_path, there), "--for", "anthropic"]) == 0
    assert main(["convert", file(tmp_path, there), "--from", "anthropic", "--to", "openai"]) == 0
    back = capsys.readouterr().out
    assert check(back.encode(), dialect("openai")) == []
    assert "4 C" in back


@pytest.mark.parametrize(
    "text", ["{", "[1, 2", "nonsense", "12", '"text"', "", "{}", '{"a": 1}', "[1]", "[" * 100_000]
)
def test_a_malformed_transcript_file_gives_one_line_and_exit_code_2(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.json").write_text(text)
    assert main(["convert", str(tmp_path / "t.json"), "--from", "openai", "--to", "anthropic"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert err.startswith("actors: ")


def test_binary_and_missing_files_give_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.json").write_bytes(b"[\xff]")
    for path, says in (
        (tmp_path / "t.json", "not UTF-8 text"),
        (tmp_path / "none.json", "no such file"),
        (tmp_path, ""),
    ):
        assert main(["lint", str(path), "--for", "openai"]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert says in line


def test_an_unknown_dialect_gives_exit_code_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", file(tmp_path, []), "--for", "claude"]) == 3
    assert "known: " in capsys.readouterr().err


def test_the_debug_option_shows_the_traceback(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        main(["lint", str(tmp_path / "none.json"), "--for", "openai", "--debug"])


def test_a_bedrock_body_is_linted_and_converted_with_its_tools_and_its_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tool = {"name": "weather", "description": "W", "inputSchema": {"json": {"type": "object"}}}
    use = {"toolUse": {"toolUseId": "tooluse_1", "name": "weather", "input": {"city": "Oslo"}}}
    said = [
        {"role": "user", "content": [{"text": "Weather?"}]},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [{"text": "And?"}]},
    ]
    body = {
        "messages": said,
        "system": [{"text": "Be brief."}],
        "toolConfig": {"tools": [{"toolSpec": tool}]},
        "inferenceConfig": {"maxTokens": 50},
    }
    assert main(["lint", file(tmp_path, body), "--for", "bedrock"]) == 1
    assert capsys.readouterr().out.strip().endswith("(BED-01)")
    assert main(["lint", file(tmp_path, said[:1]), "--for", "bedrock"]) == 0
    capsys.readouterr()
    for target in ("bedrock", "anthropic", "openai"):
        assert main(["convert", file(tmp_path, body), "--from", "converse", "--to", target]) == 0
        made = capsys.readouterr().out.encode()
        assert check(made, dialect(target)) == []
        assert validate(made, dialect(target).name) is None
        for kept in (b"Be brief.", b'"weather"', b'"W"', b"50", b"And?"):
            assert kept in made


def test_a_responses_body_is_linted_and_converted_with_its_items(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = {"type": "function_call", "call_id": "a", "name": "weather", "arguments": "{}"}
    items = [{"role": "user", "content": "Weather?"}, made, {"role": "user", "content": "Well?"}]
    assert main(["lint", file(tmp_path, items), "--for", "responses"]) == 1
    assert "(OAR-01)" in capsys.readouterr().out
    body = {"model": "gpt-5.2", "instructions": "Be brief.", "input": items, "max_output_tokens": 99}
    source = file(tmp_path, {**body, "store": False})
    assert main(["convert", source, "--from", "responses", "--to", "anthropic"]) == 0
    shown = capsys.readouterr()
    assert "left out" not in shown.err
    made_of_it = json.loads(shown.out)
    assert made_of_it["max_tokens"] == 99
    assert made_of_it["system"] == [{"type": "text", "text": "Be brief."}]
    assert validate(shown.out.encode(), "anthropic") is None
    assert main(["convert", source, "--from", "responses", "--to", "responses"]) == 0
    assert validate(capsys.readouterr().out.encode(), "openai_responses") is None


@pytest.mark.requirement("PROMISE-13")
def test_a_long_broken_file_gives_a_few_lines_with_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said: list[dict[str, Any]] = []  # Any: JSON
    for number in range(1_050):
        said += [
            {"role": "user", "content": "Weather?", "name": "x"},
            {"role": "assistant", "content": None, "tool_calls": [call("", '{"city":'), call("c")]},
            {"role": "tool", "tool_call_id": f"zz{number}", "content": f"lost {number}"},
            {"role": "tool", "tool_call_id": "c", "content": "4 C"},
        ]
    source = file(tmp_path, said)
    assert main(["convert", source, "--from", "openai", "--to", "mistral"]) == 0
    _, err = capsys.readouterr()
    lines = err.splitlines()
    assert len(lines) < 25
    for counted in (
        "1,047 more: call to ... has no id",
        "1,047 more: arguments of ... are not a JSON object; replaced by {} and kept as raw text",
        "1,047 more: result for unknown call ... kept as text",
        "1,047 more: a result for ... (lost)",
        "left out: messages[].name (1,050)",
        "added: a model message between two others (",
        "assumed: model 'model'",
    ):
        assert [line for line in lines if counted in line], counted


TOOLS_OF_PROVIDERS: dict[str, list[dict[str, Any]]] = {  # Any: JSON
    "anthropic": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 3}],
    "responses": [
        {"type": "web_search"},
        {"type": "code_interpreter", "container": {"type": "auto"}},
        {"type": "mcp", "server_label": "x", "server_url": "https://x.test"},
    ],
    "gemini": [{"googleSearch": {}}, {"codeExecution": {}}],
    "openai": [{"type": "builtin_function", "function": {"name": "$web_search"}}],
}


@pytest.mark.requirement("PROMISE-13")
@pytest.mark.parametrize("source", TOOLS_OF_PROVIDERS)
def test_tools_of_the_provider_do_not_become_client_functions(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = TOOLS_OF_PROVIDERS[source]
    container = {"responses": "input", "gemini": "contents"}.get(source, "messages")
    said = [{"role": "user", "parts": [{"text": "u"}]} if source == "gemini" else BROKEN[1]]
    flat: dict[str, Any] = {  # Any: JSON
        "anthropic": {"name": "weather", "input_schema": TOOL["parameters"]},
        "gemini": {"functionDeclarations": [TOOL]},
        "responses": {"type": "function", **TOOL},
    }
    ours = flat.get(source, {"type": "function", "function": TOOL})
    path = file(tmp_path, {container: said, "tools": [*theirs, ours]})
    for target in ("openai", "anthropic", "responses", "gemini", "bedrock", "mistral"):
        assert main(["convert", path, "--from", source, "--to", target]) == 0
        out, err = capsys.readouterr()
        kept = [tool.name for tool in read_declarations(json.loads(out)).tools]
        assert kept == ["weather"]
        (left,) = [line for line in err.splitlines() if "left out: " in line]
        for tool in theirs:
            name = tool.get("type") or next(iter(tool))
            assert name in left
            assert f'"{name}"' not in out


@pytest.mark.requirement("PROMISE-13")
def test_the_convert_command_names_each_omitted_key_by_its_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    function = {
        "type": "function",
        "function": {**TOOL, "strict": True},
        "cache_control": {"type": "ephemeral"},
    }
    body = {"model": "m", "messages": BROKEN[:2], "tools": [function], "seed": 0, "metadata": {"a": "b"}}
    assert main(["convert", file(tmp_path, body), "--to", "gemini"]) == 0
    _, err = capsys.readouterr()
    assert "left out: tools[].function.strict, tools[].cache_control, seed, metadata" in err
    config = {"maxOutputTokens": 5, "temperature": 1.0}
    body = {
        "contents": [{"role": "user", "parts": [{"text": "u"}]}],
        "generationConfig": config,
        "safetySettings": [{"a": 1}],
    }
    assert main(["convert", file(tmp_path, body), "--to", "responses"]) == 0
    _, err = capsys.readouterr()
    assert "left out: generationConfig.temperature, safetySettings" in err
    assert "assumed: max_output_tokens 16" in err


def test_the_lint_command_names_the_probable_dialect_of_an_invalid_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lint", file(tmp_path, BROKEN), "--for", "anthropic"]) == 1
    assert (
        "looks like openai_chat (messages[2] has 'tool_calls'), not like anthropic" in capsys.readouterr().err
    )


def test_a_transcript_of_an_ambiguous_dialect_needs_the_from_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    use = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]}
    path = file(tmp_path, [*BROKEN, use])
    assert main(["convert", path, "--to", "gemini"]) == 2
    err = capsys.readouterr().err
    assert "openai_chat (messages[2] has 'tool_calls')" in err
    assert "anthropic (messages[6].content[0] is a tool_use block)" in err
    assert main(["convert", path, "--from", "openai", "--to", "gemini"]) == 0
