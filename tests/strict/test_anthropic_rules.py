"""Each rule of the Anthropic judge refuses its fault in the provider's words, and nothing next to it.

The rules about thinking that need a signature are in `test_loopback_thinking`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from actors.strict.rules import ANTHROPIC_RULES, AnthropicProfile, AnthropicSettings, validate
from tests.core.test_check import photo
from tests.strict.cases_answers import shown

Json = dict[str, Any]  # a body under test may be anything

TEXT: Json = {"type": "text", "text": "u"}
TOOL: Json = {"name": "read", "input_schema": {"type": "object"}}
MARK: Json = {"type": "ephemeral"}
NEXT = "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
PREVIOUS = "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
UNANSWERED = "`tool_use` ids were found without `tool_result` blocks immediately after"


def user(*blocks: Json | str) -> Json:
    return {"role": "user", "content": [text(b) if isinstance(b, str) else b for b in blocks]}


def said(*blocks: Json | str) -> Json:
    return {"role": "assistant", "content": [text(b) if isinstance(b, str) else b for b in blocks]}


def text(words: str, **more: Any) -> Json:  # any key at all may be under test
    return {"type": "text", "text": words, **more}


def use(call_id: str = "toolu_a", **more: Any) -> Json:  # any key at all may be under test
    return {"type": "tool_use", "id": call_id, "name": "read", "input": {}, **more}


def answer(call_id: str = "toolu_a", **more: Any) -> Json:  # any key at all may be under test
    return {"type": "tool_result", "tool_use_id": call_id, "content": "r", **more}


def body(*messages: Json, **more: Any) -> Json:  # any key at all may be under test
    return {"model": "m", "max_tokens": 4096, "messages": list(messages), **more}


def image(size: int) -> Json:
    return {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "A" * size},
    }


def tool(**more: Any) -> Json:  # any key at all may be under test
    return {**TOOL, **more}


def profile(**values: Any) -> AnthropicSettings:  # passed on to a typed constructor
    return AnthropicSettings(AnthropicProfile(**values))


@dataclass(frozen=True)
class Case:
    rule: str
    refused: Json | bytes
    message: str
    accepted: Json
    settings: AnthropicSettings = field(default=AnthropicSettings())
    status: int = 400
    type: str = "invalid_request_error"


ONE = body(user("u"), said(use()), user(answer()))
TWO = body(user("u"), said(use(), use("toolu_b")), user(answer(), answer("toolu_b"), "go"))
PLAIN = body(user("u"))
SERVER_CALL = {"type": "server_tool_use", "id": "srvtoolu_a", "name": "advisor", "input": {}}
SERVER_RESULT = {"type": "advisor_tool_result", "tool_use_id": "srvtoolu_a", "content": "r"}
MCP_CALL = {"type": "mcp_tool_use", "id": "mcptoolu_a", "name": "read", "server_name": "s", "input": {}}
MCP_RESULT = {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_a", "content": "r", "is_error": False}

PAIRING = [
    Case("ANT-01", body(user("u"), said(use())), f"messages.1: {UNANSWERED}: toolu_a. {NEXT}", ONE),
    Case(
        "ANT-01",
        body(user("u"), said(use(), use("toolu_b"), use("toolu_c")), user(answer("toolu_b"), "go")),
        f"messages.1: {UNANSWERED}: toolu_a, toolu_c. {NEXT}",
        TWO,
    ),
    Case(
        "ANT-02",
        body(user(answer(), "u")),
        "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_a. " + PREVIOUS,
        ONE,
    ),
    Case(
        "ANT-02",
        body(user("u"), said(use()), user(answer()), said("t"), user(answer())),
        "messages.4.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_a. " + PREVIOUS,
        body(user("u"), said(use()), user(answer()), said("t"), user("u")),
    ),
    Case(
        "ANT-03",
        body(user("u"), said(use()), user("go", answer())),
        "messages.2: Did not find 1 `tool_result` block(s) at the beginning of this message. Messages "
        "following `tool_use` blocks must begin with a matching number of `tool_result` blocks.",
        body(user("u"), said(use()), user(answer(), "go")),
    ),
    Case(
        "ANT-04",
        body(user("u"), said(use()), said("t"), user(answer())),
        "Messages containing `tool_use` blocks must be followed by a user message with `tool_result` blocks",
        ONE,
    ),
    Case(
        "ANT-05",
        body(user("u"), said(use()), user(answer()), said("t", use()), user(answer())),
        "messages.3.content.1: `tool_use` ids must be unique",
        body(user("u"), said(use()), user(answer()), said("t", use("toolu_b")), user(answer("toolu_b"))),
    ),
    Case(
        "ANT-06",
        body(user("u"), said(use()), user(answer(), answer())),
        "messages.2.content.1: each tool_use must have a single result. Found multiple `tool_result` blocks "
        "with id: toolu_a",
        ONE,
    ),
    Case(
        "ANT-07",
        body(user("u"), said(use("functions.read:0")), user(answer("functions.read:0"))),
        "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
        body(user("u"), said(use("functions-read-0")), user(answer("functions-read-0"))),
    ),
    Case(
        "ANT-07-server",
        body(user("u"), said({**SERVER_CALL, "id": "toolu_a"}), user("go")),
        "messages.1.content.0.server_tool_use.id: String should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'",
        body(user("u"), said(SERVER_CALL, SERVER_RESULT), user("go")),
    ),
    Case(
        "ANT-07",
        body(user("u"), said(use("")), user(answer(""))),
        "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
        ONE,
    ),
    Case(
        "ANT-07-mcp",
        body(user("u"), said({**MCP_CALL, "id": "srvtoolu_a"}), user("go")),
        "messages.1.content.0.mcp_tool_use.id: String should match pattern '^mcptoolu_[a-zA-Z0-9_]+$'",
        body(user("u"), said(MCP_CALL, MCP_RESULT), user("go")),
    ),
    Case(
        "ANT-08",
        body(user("u"), tools=[tool(name="read.file")]),
        "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
        body(user("u"), tools=[tool(name="read_file")]),
    ),
    Case(
        "ANT-08",
        body(user("u"), said(use(name="read file")), user(answer())),
        "messages.1.content.0.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
        ONE,
    ),
    Case(
        "ANT-08-length",
        body(user("u"), tools=[tool(name="n" * 129)]),
        "tools.0.custom.name: String should have at most 128 characters",
        body(user("u"), tools=[tool(name="n" * 128)]),
    ),
    Case(
        "ANT-09",
        body(user("u"), tools=[TOOL, TOOL]),
        "tools: Tool names must be unique.",
        body(user("u"), tools=[TOOL, tool(name="write")]),
    ),
    Case(
        "ANT-10",
        body(user("u"), said(SERVER_CALL, use()), user(answer(), "go")),
        "messages.2: only `tool_result` blocks may be sent while a server tool call is pending.",
        body(user("u"), said(SERVER_CALL, use()), user(answer())),
    ),
    Case(
        "ANT-11",
        body(user("u"), said(SERVER_RESULT), user("u")),
        "messages.1.content.0: unexpected `tool_use_id` found in `advisor_tool_result` blocks: srvtoolu_a. "
        "Each `advisor_tool_result` block must have a corresponding `server_tool_use` block before it.",
        body(user("u"), said(SERVER_CALL, SERVER_RESULT), user("u")),
    ),
    Case(
        "ANT-11",
        body(user("u"), said(SERVER_CALL, {**MCP_RESULT, "tool_use_id": "srvtoolu_a"}), user("u")),
        "messages.1.content.1: unexpected `tool_use_id` found in `mcp_tool_result` blocks: srvtoolu_a. Each "
        "`mcp_tool_result` block must have a corresponding `mcp_tool_use` block before it.",
        body(user("u"), said(MCP_CALL, MCP_RESULT), user("u")),
    ),
    Case(
        "ANT-12",
        body(user("u"), said(use(), use("toolu_b")), user(answer()), user(answer("toolu_b"))),
        f"messages.1: {UNANSWERED}: toolu_b. {NEXT}",
        TWO,
    ),
]

CONTENT = [
    Case("ANT-20", body(user("")), "messages: text content blocks must be non-empty", PLAIN),
    Case(
        "ANT-20",
        body(user("u"), said("", use()), user(answer())),
        "messages: text content blocks must be non-empty",
        ONE,
    ),
    Case(
        "ANT-20",
        body(user("u"), said(use()), user(answer(content=[text("")]))),
        "messages: text content blocks must be non-empty",
        body(user("u"), said(use()), user(answer(content=[text("r")]))),
    ),
    Case(
        "ANT-21", body(user(" \n")), "messages: text content blocks must contain non-whitespace text", PLAIN
    ),
    Case(
        "ANT-21",
        body(user("u"), system=[text(" ")]),
        "system: text content blocks must contain non-whitespace text",
        body(user("u"), system=[text("s")]),
    ),
    Case(
        "ANT-22",
        body(user("u"), said(), user("u")),
        "messages.1: all messages must have non-empty content except for the optional final assistant "
        "message",
        body(user("u"), said("t"), user("u")),
    ),
    Case(
        "ANT-23",
        body(user("u"), said("t ")),
        "messages: final assistant content cannot end with trailing whitespace",
        body(user("u"), said("t")),
        profile(prefill=True),
    ),
    Case("ANT-24", body(said("t"), user("u")), 'messages: first message must use the "user" role', PLAIN),
    Case("ANT-25", body(), "messages: at least one message is required", PLAIN),
    Case(
        "ANT-26",
        body(user("u"), user("u")),
        'messages: roles must alternate between "user" and "assistant", but found multiple "user" roles in a '
        "row",
        body(user("u", "u")),
    ),
    Case(
        "ANT-27",
        body(user("u"), said("t")),
        "This model does not support assistant message prefill. The conversation must end with a user "
        "message.",
        body(user("u"), said("t"), user("u")),
    ),
    Case("ANT-28", body(user("u"), zzz=1), "zzz: Extra inputs are not permitted", PLAIN),
    Case(
        "ANT-28",
        body({**user("u"), "name": "n"}),
        "messages.0.name: Extra inputs are not permitted",
        PLAIN,
    ),
    Case(
        "ANT-28",
        body(user("u"), said(use(index=0)), user(answer())),
        "messages.1.content.0.tool_use.index: Extra inputs are not permitted",
        ONE,
    ),
    Case(
        "ANT-29",
        body(user("u"), said(use()), user(answer(content=[]))),
        "messages.2.content.0.tool_result.content: List should have at least 1 item after validation, not 0",
        body(user("u"), said(use()), user(answer(content=""))),
    ),
    Case(
        "ANT-30",
        body(user(image(5_242_881))),
        "messages.0.content.0.image.source.base64: image exceeds 5 MB maximum: 5242881 bytes > 5242880 bytes",
        body(user(image(5_242_880))),
    ),
    Case(
        "ANT-54",
        body(user(*[image(4)] * 100), said(use()), user(answer(content=[image(4)]))),
        "too many images and documents: 101 + 0 > 100",
        body(user(*[image(4)] * 99), said(use()), user(answer(content=[image(4)]))),
    ),
    Case(
        "ANT-55",
        body(*[user("u")] * 100_001),
        "messages: List should have at most 100000 items after validation, not 100001",
        PLAIN,
    ),
    Case(
        "ANT-31",
        b'{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"\\ud800 u"}]}',
        "The request body is not valid JSON: no low surrogate in string: line 1 column 73",
        PLAIN,
    ),
    Case(
        "ANT-32",
        body(user(*[text("u", cache_control=MARK)] * 5)),
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
        body(user(*[text("u", cache_control=MARK)] * 4)),
    ),
    Case(
        "ANT-33",
        body(user(text("", cache_control=MARK))),
        "messages.0: cache_control cannot be set for empty text blocks",
        body(user(text("u", cache_control=MARK))),
    ),
    Case(
        "ANT-34",
        body(user("u"), said({"type": "thinking", "thinking": "", "signature": "s", "cache_control": MARK})),
        "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted",
        PLAIN,
    ),
    Case(
        "ANT-34-ttl",
        body(user(text("u", cache_control=MARK), text("u", cache_control={**MARK, "ttl": "1h"}))),
        "messages.0.content.1.cache_control.ttl: a ttl='1h' cache_control block must not come after a "
        "ttl='5m' cache_control block.",
        body(user(text("u", cache_control={**MARK, "ttl": "1h"}), text("u", cache_control=MARK))),
    ),
    Case(
        "ANT-35",
        body(user("u"), max_tokens=100_000),
        "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for m",
        body(user("u"), max_tokens=64_000),
        profile(max_output_tokens=64_000),
    ),
    Case(
        "ANT-36",
        body(user("u" * 800)),
        "prompt is too long: 227 tokens > 200 maximum",
        PLAIN,
        profile(context_tokens=200),
    ),
    Case(
        "ANT-37",
        body(user("u"), max_tokens=400),
        "input length and `max_tokens` exceed context limit: 27 + 400 > 400, decrease input length or "
        "`max_tokens` and try again",
        body(user("u"), max_tokens=300),
        profile(context_tokens=400, window_counts_output=True),
    ),
    Case(
        "ANT-38",
        PLAIN,
        "model: m",
        {**PLAIN, "model": "known"},
        AnthropicSettings(models={"known": AnthropicProfile()}),
        404,
        "not_found_error",
    ),
]

MANUAL: Json = {"type": "enabled", "budget_tokens": 2048}
FORCED: Json = {"type": "any"}

ANSWER = {
    "type": "json_schema",
    "schema": {"type": "object", "properties": {}, "additionalProperties": False},
}

CONFIG = [
    Case(
        "ANT-45",
        body(user("u"), thinking=MANUAL),
        '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and '
        '"output_config.effort" to control thinking behavior.',
        body(user("u"), thinking={"type": "adaptive"}),
        profile(thinking=frozenset({"adaptive"})),
    ),
    Case(
        "ANT-46",
        body(user("u"), thinking={"type": "adaptive"}),
        "adaptive thinking is not supported on this model",
        body(user("u"), thinking=MANUAL),
        profile(thinking=frozenset({"enabled"})),
    ),
    Case(
        "ANT-47",
        body(user("u"), thinking={"type": "disabled"}),
        '"thinking.type.disabled" is not supported for this model.',
        body(user("u"), thinking={"type": "adaptive"}),
        profile(thinking=frozenset({"adaptive"})),
    ),
    Case(
        "ANT-47-between",
        body(user("u"), thinking={"type": "between_tools"}),
        '"thinking.type.between_tools" is not supported for this model.',
        body(user("u"), thinking={"type": "adaptive"}),
        profile(thinking=frozenset({"adaptive"})),
    ),
    Case(
        "ANT-48",
        body(user("u"), tools=[TOOL], tool_choice=FORCED),
        'tool_choice: type "tool" and "any" are not supported for this model.',
        body(user("u"), tools=[TOOL], tool_choice={"type": "auto"}),
        profile(forced_tool_choice=False),
    ),
    Case(
        "ANT-48-thinking",
        body(user("u"), tools=[TOOL], tool_choice=FORCED, thinking=MANUAL),
        "Thinking may not be enabled when tool_choice forces tool use.",
        body(user("u"), tools=[TOOL], tool_choice=FORCED),
    ),
    Case(
        "ANT-49",
        body(user("u"), output_config={"effort": "xhigh"}),
        "This model does not support effort level 'xhigh'. Supported levels: high, low, max, medium.",
        body(user("u"), output_config={"effort": "high"}),
        profile(efforts=frozenset({"low", "medium", "high", "max"})),
    ),
    Case(
        "ANT-49-none",
        body(user("u"), model="claude-haiku-4-5", output_config={"effort": "low"}),
        "This model does not support the effort parameter.",
        body(user("u"), model="claude-opus-4-5", output_config={"effort": "low"}),
    ),
    Case(
        "ANT-49-between",
        body(user("u"), thinking={"type": "between_tools"}, output_config={"effort": "max"}),
        "thinking.type.between_tools is not supported with effort level 'max'.",
        body(user("u"), thinking={"type": "between_tools"}, output_config={"effort": "high"}),
    ),
    Case(
        "ANT-S31",
        body(user("u"), model="claude-3-7-sonnet-20250219", output_config={"format": ANSWER}),
        "output_config.format: structured outputs are not supported on this model.",
        body(user("u"), model="claude-sonnet-4-5", output_config={"format": ANSWER}),
    ),
    Case(
        "ANT-50",
        body(user("u"), thinking={"type": "adaptive", "block_binding": {}}),
        "thinking.adaptive.block_binding: Extra inputs are not permitted",
        body(user("u"), thinking={"type": "adaptive"}),
    ),
    Case(
        "ANT-51",
        body(user("u"), said(use()), user(answer(content=[image(4)], is_error=True))),
        "messages.2.content.0.tool_result.content: all content must be type `text` if `is_error` is true",
        body(user("u"), said(use()), user(answer(content=[image(4)]))),
    ),
    Case(
        "ANT-52",
        body(user("u"), said({"type": "redacted_thinking", "data": "x"}), user("v")),
        "messages.1: The final block in an assistant message cannot be `thinking`.",
        body(user("u"), said({"type": "text", "text": "t"}), user("v")),
        AnthropicSettings(signatures="trust"),
    ),
    Case(
        "ANT-53",
        body(user("u"), said(use()), user(answer(content="", is_error=True))),
        "messages.2.content.0.tool_result: content cannot be empty if `is_error` is true",
        body(user("u"), said(use()), user(answer(content=""))),
    ),
]

MID = {"role": "system", "content": "s"}

SHAPES = [
    Case("ANT-S01", {"model": "m", "messages": [user("u")]}, "max_tokens: Field required", PLAIN),
    Case(
        "ANT-S02",
        body(user("u"), said(use(input="{}")), user(answer())),
        "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
        ONE,
    ),
    Case(
        "ANT-S03",
        body({"role": "tool", "content": "r"}),
        "messages.0.role: Input should be 'user' or 'assistant'",
        PLAIN,
    ),
    Case(
        "ANT-S04",
        body(user("u"), tools=[TOOL], tool_choice={"type": "required"}),
        "tool_choice: Input tag 'required' found using 'type' does not match any of the expected tags: "
        "'any', 'auto', 'none', 'tool'",
        body(user("u"), tools=[TOOL], tool_choice={"type": "none"}),
    ),
    Case(
        "ANT-S05",
        body(user(use())),
        "messages.0.content.0: `tool_use` blocks can only be in `assistant` messages",
        ONE,
    ),
    Case(
        "ANT-S06",
        body(user("u"), MID),
        "role 'system' is not supported on this model",
        PLAIN,
        profile(mid_system=False),
    ),
    Case(
        "ANT-S07",
        body(user("u"), MID, user("u")),
        "messages.1: a `system` message must follow a user message and precede an assistant message or end "
        "the conversation.",
        body(user("u"), MID, said("t"), user("u")),
    ),
    Case(
        "ANT-S07",
        body(user("u"), MID, MID),
        "messages.2: a `system` message must follow a user message and precede an assistant message or end "
        "the conversation.",
        body(user("u"), MID),
    ),
    Case(
        "ANT-S08",
        body(user("u"), thinking={"type": "enabled", "budget_tokens": 1000}),
        "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
        body(user("u"), thinking=MANUAL),
    ),
    Case(
        "ANT-S09",
        body(user("u"), thinking={"type": "enabled", "budget_tokens": 4096}),
        "`max_tokens` must be greater than `thinking.budget_tokens`.",
        body(user("u"), thinking=MANUAL),
    ),
    Case(
        "ANT-S10",
        body(user("u"), thinking=MANUAL, temperature=0.5),
        "`temperature` may only be set to 1 when thinking is enabled.",
        body(user("u"), thinking=MANUAL, temperature=1),
    ),
    Case(
        "ANT-S14",
        body(user("u"), temperature=1.5),
        "temperature: Input should be less than or equal to 1",
        body(user("u"), temperature=1),
    ),
    Case(
        "ANT-S11",
        body(user("u"), tool_choice={"type": "none"}),
        "`tool_choice` may only be specified while providing `tools`.",
        body(user("u"), tool_choice={"type": "none"}, tools=[TOOL]),
    ),
    Case(
        "ANT-S12",
        body(user("u"), tools=[TOOL], tool_choice={"type": "tool", "name": "write"}),
        "Tool 'write' not found in provided tools",
        body(user("u"), tools=[TOOL], tool_choice={"type": "tool", "name": "read"}),
    ),
    Case(
        "ANT-58",
        body(user("u", photo(9000, 800))),
        "messages.0.content.1.image.source.base64.data: At least one of the image dimensions exceed max allowed size: "
        "8000 pixels",
        body(user("u", photo(8000, 800))),
    ),
    Case(
        "ANT-59",
        body(user("u", *[photo()] * 20), said(use()), user(answer(content=[photo(9, 2500)]))),
        "messages.2.content.0.tool_result.content.0.image.source.base64.data: At least one of the image dimensions "
        "exceed max allowed size for many-image requests: 2000 pixels",
        body(user("u", *[photo()] * 19), said(use()), user(answer(content=[photo(9, 2500)]))),
    ),
    Case(
        "ANT-61",
        body(user("u", photo(media_type="image/jpeg"))),
        "messages.0.content.1.image.source.base64.data: Image does not match the provided media type image/jpeg",
        body(user("u", photo())),
    ),
    Case(
        "ANT-57",
        body(user("u"), tools=[{**TOOL, "input_schema": {"type": "object", "properties": {"$top": {}}}}]),
        "tools.0.custom.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'",
        body(user("u"), tools=[{**TOOL, "input_schema": {"type": "object", "properties": {"a.b-c_1": {}}}}]),
    ),
    Case(
        "ANT-S30",
        body(
            user("u"), tools=[{**TOOL, "input_schema": {"type": "object", "properties": {"type": "object"}}}]
        ),
        "tools.0.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12 "
        "(https://json-schema.org/draft/2020-12). Learn more about tool use at "
        "https://docs.claude.com/en/docs/tool-use.",
        body(user("u"), tools=[{**TOOL, "input_schema": {"type": "object", "properties": {"type": True}}}]),
    ),
    Case(
        "ANT-S13",
        body(user("u"), tools=[{**TOOL, "input_schema": {"type": "object", "oneOf": [{}]}}]),
        "tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level",
        body(user("u"), tools=[TOOL]),
    ),
]

PLACEHOLDER: Json = {"type": "thinking", "thinking": "(None.)", "signature": ""}
COPIES = [
    Case(
        "DSK-06",
        body(user("u"), said(use()), user(answer())),
        "The `content[].thinking` in the thinking mode must be passed back to the API.",
        body(user("u"), said(PLACEHOLDER, use()), user(answer())),
        profile(reasoning=True),
    ),
    Case(
        "DSK-06",
        body(user("u"), said("t", use()), user(answer())),
        "The `content[].thinking` in the thinking mode must be passed back to the API.",
        body(user("u"), said("t", use()), user(answer()), thinking={"type": "disabled"}),
        profile(reasoning=True),
    ),
]

CASES = COPIES + PAIRING + CONTENT + CONFIG + SHAPES
THREADS = {
    "ANT-S21",
    "ANT-S22",
    "ANT-S23",
}  # in `test_loopback_anthropic_server_tools`, with a server that keeps threads
SIGNED = {"ANT-39", "ANT-40", "ANT-41", "ANT-42", "ANT-43", "ANT-44"}
# The official host merges neighbours of one role, so what follows the call there is the message behind it.
ACCEPTED_BY_HOST = {"ANT-12", "ANT-26", "ANT-04"}


def wire(value: Mapping[str, Any] | bytes) -> bytes:  # a body under test may be anything
    return value if isinstance(value, bytes) else json.dumps(value).encode()


@pytest.mark.requirement("REQ-915-005")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_broken_rule_is_refused_in_the_providers_own_words(case: Case) -> None:
    refusal = validate(wire(case.refused), "anthropic", settings=case.settings)
    assert refusal is not None
    assert (refusal.rule, refusal.message) == (case.rule, case.message)
    assert (refusal.status, refusal.type) == (case.status, case.type)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_the_nearest_sound_body_is_accepted(case: Case) -> None:
    assert validate(wire(case.accepted), "anthropic", settings=case.settings) is None


def test_every_rule_has_a_case() -> None:
    assert {case.rule for case in CASES} | SIGNED | THREADS | shown(ANTHROPIC_RULES) == set(ANTHROPIC_RULES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_hosted_accepts_whatever_strict_accepts_and_little_more(case: Case) -> None:
    hosted = validate(wire(case.refused), "anthropic", mode="hosted", settings=case.settings)
    assert (hosted is None) == (case.rule in ACCEPTED_BY_HOST)
    assert validate(wire(case.accepted), "anthropic", mode="hosted", settings=case.settings) is None


def test_hosted_names_text_before_results_in_its_current_words() -> None:
    misplaced = wire(body(user("u"), said(use()), user("go", answer())))
    refusal = validate(misplaced, "anthropic", mode="hosted")
    assert refusal is not None
    assert refusal.rule == "ANT-01"


def test_results_may_come_in_any_order() -> None:
    last = user(answer("toolu_b"), answer())
    assert validate(wire(body(user("u"), said(use(), use("toolu_b")), last)), "anthropic") is None


def test_the_results_of_one_turn_must_follow_that_turn() -> None:
    shifted = body(user("u"), said(use()), said(use("toolu_b")), user(answer()), user(answer("toolu_b")))
    for mode in ("strict", "hosted"):
        refusal = validate(wire(shifted), "anthropic", mode=mode)
        assert (refusal is None) == (mode == "hosted")
