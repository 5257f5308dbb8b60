"""Check that chat templates render valid transcripts, and reject or truncate the broken transcripts listed for them.

The authors of the models wrote the templates, so they check the strict rules of self-hosted vendors independently.
`tests/adapters/chat_templates.py` describes their origin.
"""

import os
from typing import Any

import pytest

from actors.strict.rules import CompatibleProfile, CompatibleSettings, validate
from actors.strict.rules.base import dump
from tests.adapters.chat_templates import is_missing, refusal
from tests.adapters.template_files import DIRECTORY, WHY_SKIPPED

pytestmark = pytest.mark.skipif(DIRECTORY is None, reason=WHY_SKIPPED)

Json = dict[str, Any]  # a message of any form

A, B = "aaaaaaaa1", "bbbbbbbb2"
SYSTEM: Json = {"role": "system", "content": "S1."}
USER: Json = {"role": "user", "content": "U1."}
MORE: Json = {"role": "user", "content": "U2."}
SAID: Json = {"role": "assistant", "content": "A1."}
PARAMETERS: Json = {
    "type": "object",
    "properties": {"p": {"type": "integer", "description": "P"}},
    "required": ["p"],
}
TOOLS: list[Json] = [
    {"type": "function", "function": {"name": "read", "description": "Read.", "parameters": PARAMETERS}}
]


def calls(*ids: str) -> Json:
    made = [
        {"id": each, "type": "function", "function": {"name": "read", "arguments": '{"p": 1}'}}
        for each in ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


def result(call_id: str, mark: str = "R1.") -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": mark}


GOLDEN = {
    "no tools": [SYSTEM, USER, SAID, MORE],
    "one call": [USER, calls(A), result(A)],
    "one call, then on": [SYSTEM, USER, calls(A), result(A), SAID, MORE],
    "two calls": [USER, calls(A, B), result(A), result(B, "R2.")],
    "two calls, then on": [USER, calls(A, B), result(A), result(B, "R2."), SAID, MORE],
    "two rounds": [USER, calls(A), result(A), calls(B), result(B, "R2."), SAID, MORE],
}
BROKEN = {
    "foreign id": [USER, calls("call_abc"), result("call_abc")],
    "orphan result": [USER, result(A)],
    "result first": [result(A), USER],
    "result of nothing": [USER, SAID, result(A)],
    "two users": [USER, MORE],
    "unanswered": [USER, calls(A), MORE],
    "user between": [USER, calls(A), MORE, result(A)],
    "user after tool": [USER, calls(A), result(A), MORE],
}
NINE = "Tool call IDs should be alphanumeric strings with length 9!"
ALTERNATE = "After the optional system message, conversation roles must alternate user"
NO_CALL = "Message has tool role, but there was no previous assistant message"
LOST = "R1. is lost"
ROLES = dict.fromkeys(("two users", "unanswered", "user between", "user after tool"), ALTERNATE)
ORPHANS = dict.fromkeys(("orphan result", "result first", "result of nothing"), NO_CALL)

JUDGES: dict[str, dict[str, str]] = {
    "mistralai-Mistral-Nemo-Instruct-2407": {"foreign id": NINE, **ROLES},
    "Mistral-Small-3.2-24B-Instruct-2506": {"foreign id": NINE, **ROLES},
    "mistralai-Ministral-3-14B-Reasoning-2512": ROLES,
    "openai-gpt-oss-120b": ORPHANS,
    "MiniMax-M2": ORPHANS,
    "MiniMaxAI-MiniMax-M3-MXFP8": ORPHANS,
    "google-gemma-4-31B-it": {
        **dict.fromkeys(ORPHANS, LOST),
        "user between": LOST,
    },
    "Apertus-8B-Instruct": dict.fromkeys(
        ("orphan result", "result first", "user between"), "Tool message outside of assistant"
    ),
}
# Templates that reject nothing here; they must still render every valid text.
LENIENT = (
    "Qwen3-Coder",
    "GLM-4.6",
    "moonshotai-Kimi-K2.7-Code",
    "deepseek-ai-DeepSeek-V3.2",
    "ibm-granite-granite-4.0",
)


def test_every_chat_template_that_the_tests_use_is_installed() -> None:
    if "ACTORS_CHAT_TEMPLATES" not in os.environ:
        assert [name for name in (*JUDGES, *LENIENT) if is_missing(name)] == []


def _marks(messages: list[Json]) -> list[str]:
    return [message["content"] for message in messages if message["content"]]


@pytest.mark.parametrize("name", [*JUDGES, *LENIENT])
@pytest.mark.parametrize("transcript", GOLDEN)
def test_every_chat_template_renders_a_valid_transcript_completely(transcript: str, name: str) -> None:
    messages = GOLDEN[transcript]
    assert refusal(name, messages, TOOLS, _marks(messages)) is None


@pytest.mark.parametrize("name", JUDGES)
@pytest.mark.parametrize("transcript", BROKEN)
def test_each_chat_template_rejects_or_truncates_its_listed_broken_transcripts(
    transcript: str, name: str
) -> None:
    messages = BROKEN[transcript]
    why = refusal(name, messages, TOOLS, _marks(messages))
    wanted = JUDGES[name].get(transcript)
    assert (why is None) if wanted is None else (why is not None and why.startswith(wanted))


def test_a_chat_template_for_single_calls_rejects_parallel_calls() -> None:
    name = "meta-llama-Llama-3.1-8B-Instruct"
    assert refusal(name, GOLDEN["one call, then on"], TOOLS) is None
    assert refusal(name, GOLDEN["two calls"], TOOLS) == "This model only supports single tool-calls at once!"


@pytest.mark.parametrize("transcript", [*GOLDEN, *BROKEN])
def test_the_strict_server_rejects_what_a_chat_template_with_alternating_roles_rejects(
    transcript: str,
) -> None:
    messages = (GOLDEN | BROKEN)[transcript]
    why = refusal("mistralai-Ministral-3-14B-Reasoning-2512", messages, TOOLS)
    settings = CompatibleSettings(CompatibleProfile(template="alternate_around_tools"))
    body = dump({"model": "m", "messages": messages, "tools": TOOLS})
    ours = validate(body, "vllm", mode="hosted", settings=settings)
    assert (ours is None) == (why is None)
    assert ours is None or ours.message == why


@pytest.mark.parametrize("transcript", BROKEN)
def test_strict_rules_reject_every_transcript_that_a_chat_template_rejects(transcript: str) -> None:
    body = dump({"model": "m", "messages": BROKEN[transcript], "tools": TOOLS})
    vllm = CompatibleSettings(CompatibleProfile(template="alternate_around_tools"))
    assert validate(body, "mistral") or validate(body, "minimax") or validate(body, "vllm", settings=vllm)
