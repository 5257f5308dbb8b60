"""Check that a transcript without a named dialect is imported only if its format is unambiguous."""

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import pytest

from actors.cli import main
from actors.core.dialects.profiles import PROFILES, dialect
from actors.core.values.content import Media, Message, Text, ToolCall, ToolResult
from actors.errors import TranscriptError
from actors.transcripts import History, Ledger, encode, from_wire, render

Json = Any  # of a file

USER, MODEL, RESULT = "words of the user", "words of the model", "words of the tool"


# ---- formats of other tools


OPENCODE = {
    "info": {"id": "ses_1", "title": "t"},
    "messages": [
        {"info": {"id": "msg_1", "role": "user"}, "parts": [{"id": "prt_1", "type": "text", "text": USER}]},
        {
            "info": {"id": "msg_2", "role": "assistant", "providerID": "anthropic", "modelID": "m"},
            "parts": [
                {"id": "prt_2", "type": "step-start"},
                {"id": "prt_3", "type": "text", "text": MODEL},
                {
                    "type": "tool",
                    "callID": "c",
                    "tool": "read",
                    "state": {"status": "completed", "input": {"p": 1}, "output": RESULT},
                },
            ],
        },
    ],
}
CHAT_ROWS = [
    {"role": "user", "content": USER, "active": 1},
    {"role": "assistant", "content": MODEL, "active": 0},
]
FOREIGN: dict[str, Json] = {
    "opencode": OPENCODE,
    "opencode, messages alone": OPENCODE["messages"],
    "Claude Code": [
        {
            "type": "user",
            "uuid": "u1",
            "parentUuid": None,
            "sessionId": "s",
            "message": {"role": "user", "content": USER},
        },
        {
            "type": "assistant",
            "uuid": "u2",
            "parentUuid": "u1",
            "message": {"id": "m", "role": "assistant", "content": [{"type": "text", "text": MODEL}]},
        },
    ],
    "Codex": [
        {"timestamp": "t", "type": "session_meta", "payload": {"id": "s", "cwd": "/"}},
        {
            "timestamp": "t",
            "type": "response_item",
            "payload": {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": MODEL}],
            },
        },
    ],
    "codex exec": [{"type": "thread.started"}, {"type": "item.completed", "item": {"text": MODEL}}],
    "Gemini CLI": {
        "sessionId": "s",
        "projectHash": "h",
        "messages": [
            {"id": "1", "type": "user", "content": USER},
            {"id": "2", "type": "gemini", "content": MODEL, "toolCalls": [], "thoughts": []},
        ],
    },
    "Gemini CLI, lines": [
        {"sessionId": "s", "projectHash": "h"},
        {"id": "1", "type": "user", "content": USER},
        {"id": "2", "type": "gemini", "content": [{"text": MODEL}]},
    ],
    "pi": [
        {"type": "session", "version": 3, "id": "s", "cwd": "/"},
        {"type": "message", "id": "a", "parentId": None, "message": {"role": "user", "content": USER}},
        {
            "type": "message",
            "id": "b",
            "parentId": "a",
            "message": {"role": "assistant", "content": [{"type": "text", "text": MODEL}]},
        },
    ],
    "pi, messages alone": [
        {"role": "user", "content": USER},
        {"role": "assistant", "content": [{"type": "toolCall", "id": "c", "name": "f", "arguments": {}}]},
        {"role": "toolResult", "toolCallId": "c", "content": [{"type": "text", "text": RESULT}]},
    ],
    "Copilot CLI": [
        {"type": "session.start", "data": {}},
        {"type": "user.message", "data": {"content": USER}},
    ],
    "Droid": [
        {"type": "session_start", "id": "s"},
        {"type": "message", "message": {"role": "assistant", "content": [{"type": "text", "text": MODEL}]}},
    ],
    "Cursor": [{"role": "user", "message": {"content": [{"type": "text", "text": USER}]}}],
    "OpenHands": [
        {
            "kind": "MessageEvent",
            "source": "user",
            "llm_message": {"role": "user", "content": [{"text": USER}]},
        },
        {"kind": "ActionEvent", "source": "agent", "thought": [{"text": MODEL}], "tool_call_id": "c"},
    ],
    "Hermes": {"session": {"id": "s"}, "messages": CHAT_ROWS},
    "Hermes, with calls": {
        "session": {"id": "s"},
        "messages": [
            *CHAT_ROWS,
            {
                "role": "assistant",
                "active": 0,
                "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}],
            },
        ],
    },
    "Continue": {
        "sessionId": "s",
        "title": "t",
        "workspaceDirectory": "/",
        "history": [{"message": {"role": "user", "content": USER}, "contextItems": []}],
    },
    "llxprt": [
        {
            "speaker": "ai",
            "blocks": [{"type": "text", "text": MODEL}, {"type": "tool_call", "id": "c", "name": "f"}],
        }
    ],
    "blocks alone": [
        {"type": "tool_call", "id": "c", "name": "f", "parameters": {}},
        {"type": "text", "text": MODEL},
    ],
    "ShareGPT": {"conversations": [{"from": "human", "value": USER}, {"from": "gpt", "value": MODEL}]},
    "ShareGPT, a list": [{"from": "human", "value": USER}, {"from": "gpt", "value": MODEL}],
    "pydantic-ai": [
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": USER}]},
        {"kind": "response", "parts": [{"part_kind": "text", "content": MODEL}]},
    ],
    "pydantic-ai, without a kind": [
        {"parts": [{"part_kind": "user-prompt", "content": USER}]},
        {"parts": [{"part_kind": "text", "content": MODEL}]},
    ],
    "LangChain": [{"type": "human", "data": {"content": USER}}, {"type": "ai", "data": {"content": MODEL}}],
    "LangChain, flat": [
        {"type": "human", "content": USER},
        {"type": "ai", "content": MODEL, "tool_calls": []},
    ],
    "LangChain, constructors": [
        {"lc": 1, "type": "constructor", "id": ["langchain", "AIMessage"], "kwargs": {"content": MODEL}}
    ],
    "LangChain, calls of its own form": [
        {"role": "user", "content": USER},
        {"role": "assistant", "content": MODEL, "tool_calls": [{"name": "f", "args": {"a": 1}, "id": "c"}]},
    ],
    "ATIF": {
        "schema_version": "ATIF-v1.2",
        "agent": {"name": "a", "version": "1"},
        "steps": [
            {"step_id": 1, "source": "user", "message": USER},
            {"step_id": 2, "source": "agent", "message": MODEL},
        ],
    },
    "Inspect": {"version": 2, "status": "success", "eval": {}, "samples": [{"messages": CHAT_ROWS}]},
    "OpenTelemetry": {"resourceSpans": [{"scopeSpans": []}]},
    "OpenTelemetry, messages": [
        {"role": "user", "parts": [{"type": "text", "content": USER}]},
        {"role": "assistant", "parts": [{"type": "text", "content": MODEL}]},
    ],
    "AI SDK, of a page": [
        {"id": "1", "role": "user", "parts": [{"type": "text", "text": USER}]},
        {"id": "2", "role": "assistant", "parts": [{"type": "text", "text": MODEL}]},
    ],
    "AI SDK, one message": [{"id": "1", "role": "user", "parts": [{"type": "text", "text": USER}]}],
    "rows of a database": [
        {"role": "user", "content": USER, "deleted": False},
        {"role": "assistant", "content": MODEL, "deleted": True},
    ],
    "AI SDK, of a model": [
        {"role": "user", "content": [{"type": "text", "text": USER}]},
        {
            "role": "assistant",
            "content": [{"type": "tool-call", "toolCallId": "c", "toolName": "f", "input": {}}],
        },
        {
            "role": "tool",
            "content": [{"type": "tool-result", "toolCallId": "c", "output": {"value": RESULT}}],
        },
    ],
    "conversation items": {"object": "list", "data": [{"type": "message", "role": "user", "content": USER}]},
    "a page of a chat": {
        "mapping": {"1": {"message": {"author": {"role": "user"}, "content": {"parts": [USER]}}}}
    },
    "objects without roles": [{"text": USER}, {"text": MODEL}],
    "messages without roles": {"messages": [{"content": USER}, {"content": MODEL}]},
    "one message without a role": [{"role": "user", "content": USER}, {"content": MODEL}],
    "contents without roles": {"contents": [{"parts": [{"text": USER}]}, {"parts": [{"text": MODEL}]}]},
    "roles of nobody": [{"role": "human", "content": USER}, {"role": "bot", "content": MODEL}],
    "a model among the assistants": [{"role": "user", "content": USER}, {"role": "model", "content": MODEL}],
    "Gemini's parts under other roles": [{"role": "assistant", "parts": [{"text": MODEL}]}],
    "texts among the messages": [{"role": "user", "content": USER}, MODEL],
}


def run(path: Path, value: Json, command: str) -> int:
    file = path / "file.json"
    file.write_text(json.dumps(value))
    return main([command, str(file), "--to", "openai"])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("command", ["convert", "preview"])
@pytest.mark.parametrize("name", FOREIGN)
def test_the_error_about_a_file_from_another_tool_lists_the_values_of_the_from_option(
    name: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, FOREIGN[name], command) == 2
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert "(--from)" in line
    assert ", ".join(PROFILES) in line


@pytest.mark.parametrize("named", ["gemini", "openai", "anthropic", "openai_responses"])
def test_an_export_of_another_tool_is_rejected_in_every_dialect(named: str) -> None:
    for tool in ("opencode", "Claude Code", "Codex", "pydantic-ai"):
        with pytest.raises(TranscriptError, match=f"in the format of {tool}, which cannot be imported"):
            from_wire(FOREIGN[tool], named)


# ---- near misses of the dialects themselves


RICH = (
    Message("user", (Text(USER),)),
    Message("assistant", (Text(MODEL), ToolCall("hist_tool_1", "read", {"p": 1}))),
    Message("tool", (ToolResult("hist_tool_1", RESULT),)),
    Message("assistant", (Text(f"more {MODEL}"),)),
    Message("user", (Text(f"more {USER}"), Media("image/png", "aGk="))),
)
FAMILIES = ("openai_chat", "anthropic", "openai_responses", "gemini", "bedrock")
HOLDER = {"gemini": "contents", "openai_responses": "input"}


def transcript(name: str) -> list[Json]:
    body = json.loads(encode(render(History(RICH), Ledger(), dialect(name)), model="m"))
    messages: list[Json] = body[HOLDER.get(name, "messages")]
    return messages


def marked_texts(history: History) -> Iterator[tuple[str, str]]:
    """Yield the role and text of each marked text."""
    for message in history:
        for block in message.blocks:
            words = block.text if isinstance(block, Text) else ""
            if isinstance(block, ToolResult):
                words = str(block.content)
            yield from ((message.role, mark) for mark in (USER, MODEL, RESULT) if mark in words)


SPEAKER = {USER: "user", MODEL: "assistant", RESULT: "tool"}


@pytest.mark.parametrize("name", FAMILIES)
def test_the_messages_of_a_dialect_are_recognised(name: str) -> None:
    history, _ = from_wire(transcript(name))
    assert list(marked_texts(history)) == list(marked_texts(History(RICH)))
    assert history.report.notes[0].startswith(f"transcript: read as {name}: ")


def distort(messages: list[Json], draw: Random) -> None:
    """Change one key or value in a message that determines its role or the type of a part."""
    message = draw.choice(messages)
    lists = [
        value
        for value in message.values()
        if isinstance(value, list) and value and isinstance(value[0], dict)
    ]
    target = (draw.choice(draw.choice(lists)) if lists and draw.randrange(2) else None) or message
    key = draw.choice(list(target))
    match draw.randrange(5):
        case 0:
            del target[key]
        case 1:
            target[draw.choice(("parts", "content", "info", "speaker", "kind", "message", "author"))] = (
                target.pop(key)
            )
        case 2:
            own = () if key == "role" else ("model", "assistant")  # these would only be another role
            target[key] = draw.choice((*own, "ai", "human", "bot", "tool-call", "text", "gemini"))
        case 3:
            target[key] = {"value": target[key]}
        case _:
            at = next(at for at, each in enumerate(messages) if each is message)
            messages[at] = draw.choice(
                ({"message": message}, {"info": {}, "parts": [message]}, {"data": message})
            )


@pytest.mark.parametrize("name", FAMILIES)
def test_a_distorted_transcript_is_rejected_or_imported_with_correct_roles(name: str) -> None:
    refused = 0
    for seed in range(400):
        draw, messages = Random(seed), deepcopy(SAMPLES[name])
        for _ in range(draw.randint(1, 2)):
            distort(messages, draw)
        try:
            history, _ = from_wire(messages)
        except TranscriptError:
            refused += 1
            continue
        for role, mark in marked_texts(history):
            note = mark == RESULT and role == "user"  # a result that lost its id is a labelled text
            assert role == SPEAKER[mark] or note, (seed, messages)
    assert refused > 100


SAMPLES = {name: transcript(name) for name in FAMILIES}
