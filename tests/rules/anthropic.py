"""Rules of Anthropic Messages: a request that breaks each rule, and the nearest valid request."""

from typing import Any

from actors.core.data.record import replace
from actors.core.dialects.profiles import ANTHROPIC
from actors.strict.rules import AnthropicProfile, AnthropicSettings
from actors.testing.images import png_base64
from tests.rules.row import ACCEPTED, NOT_ASKED, UNSEEN, Answer, Json, Row, rows, without


def say(role: str, content: Any = "hi", **more: Any) -> Json:  # Any: a row may break a body in any way
    return {"role": role, "content": content, **more}


def user(*blocks: Any) -> Json:  # Any: likewise
    return say("user", [text(block) if isinstance(block, str) else block for block in blocks])


def assistant(*blocks: Any) -> Json:  # Any: likewise
    return {**user(*blocks), "role": "assistant"}


def text(words: Any = "hi", **more: Any) -> Json:  # Any: likewise
    return {"type": "text", "text": words, **more}


def use(
    call_id: Any = "toolu_a", name: Any = "read", arguments: Any = None, **more: Any
) -> Json:  # Any: likewise
    given = {} if arguments is None else arguments
    return {"type": "tool_use", "id": call_id, "name": name, "input": given, **more}


def answer(call_id: Any = "toolu_a", content: Any = "r", **more: Any) -> Json:  # Any: likewise
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def thinking(signature: Any = "sig", **more: Any) -> Json:  # Any: likewise
    return {"type": "thinking", "thinking": "hm", "signature": signature, **more}


def redacted_thinking(data: str = "x", **more: Any) -> Json:  # Any: likewise
    return {"type": "redacted_thinking", "data": data, **more}


def image(size: int) -> Json:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * size}}


def photo(width: int = 1, height: int = 1, **told: str) -> Json:
    data = png_base64(width, height)
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data, **told}}


def server_use(call_id: str = "srvtoolu_1") -> Json:
    return {"type": "server_tool_use", "id": call_id, "name": "web_search", "input": {}}


def server_answer(call_id: str = "srvtoolu_1") -> Json:
    return {"type": "web_search_tool_result", "tool_use_id": call_id, "content": []}


def tool(name: str = "read", **more: Any) -> Json:  # Any: likewise
    return {"name": name, "input_schema": {"type": "object"}, **more}


def schema(properties: Json) -> Json:
    return {"type": "object", "properties": properties}


def body(*messages: Any, **more: Any) -> Json:  # Any: likewise
    return {"model": "m", "max_tokens": 4096, "messages": list(messages), **more}


def model(**values: Any) -> AnthropicSettings:  # Any: passed on to a typed constructor
    """Return a host with a model of these properties."""
    return AnthropicSettings(AnthropicProfile(**values))


SURROGATE = "\ud800"
NEXT = "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
PREVIOUS = "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
UNANSWERED = "`tool_use` ids were found without `tool_result` blocks immediately after"
MARK = {"type": "ephemeral"}
LONG_MARK = {"type": "ephemeral", "ttl": "1h"}
MARKED = {"system": [text(cache_control=MARK)], "tools": [tool(cache_control=MARK)]}
SOURCE = {"type": "base64", "media_type": "image/png", "data": "aGk="}
PICTURE = {"type": "image", "source": SOURCE}
BIG = {**PICTURE, "source": {**SOURCE, "data": "A" * (7 * 1024 * 1024)}}
SERVER_CALL = {"type": "server_tool_use", "id": "srvtoolu_a", "name": "advisor", "input": {}}
SERVER_RESULT = {"type": "advisor_tool_result", "tool_use_id": "srvtoolu_a", "content": "r"}
MCP_CALL = {"type": "mcp_tool_use", "id": "mcptoolu_a", "name": "read", "server_name": "s", "input": {}}
MCP_RESULT = {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_a", "content": "r", "is_error": False}
MID = {"role": "system", "content": "s"}
PLACEHOLDER = {"type": "thinking", "thinking": "(None.)", "signature": ""}
MANUAL = {"type": "enabled", "budget_tokens": 2048}
FORCED = {"type": "any"}
TOOL = tool()
TOOLS = [TOOL]
ANSWER = {
    "type": "json_schema",
    "schema": {"type": "object", "properties": {}, "additionalProperties": False},
}
ROUND = (user("u"), assistant(use()), user(answer()))
PAIR = (user("u"), assistant(use(), use("toolu_b")))
SERVER_ROUND = (user("u"), assistant(server_use(), use()))
THOUGHT_ROUND = (user("u"), assistant(thinking(), use()), user(answer()))
PLAIN = body(user("u"))
ONE = body(*ROUND)
TWO = body(*PAIR, user(answer(), answer("toolu_b"), "go"))
CLOUD = {**without(PLAIN, "model"), "anthropic_version": "bedrock-2023-05-31"}
TEXT_ONLY = replace(
    ANTHROPIC,
    media=replace(ANTHROPIC.media, user_kinds=frozenset()),
    reasoning=replace(ANTHROPIC.reasoning, carrier="none"),
)
COPY = replace(
    ANTHROPIC, reasoning=replace(ANTHROPIC.reasoning, required="with_calls", placeholder="(None.)")
)


ROWS = rows(
    "anthropic",
    Row("ALL-02", body(*ROUND[:2], user(answer(content=[{"type": "image"}]))), ONE, server="ANT-S01"),
    Row("ALL-02", body(*ROUND[:2], user(answer(content=[text(1)]))), ONE, server="ANT-S02"),
    Row("ALL-02", body(user("u"), thinking=MANUAL, max_tokens=2048), body(user("u"), thinking=MANUAL),
        server="ANT-S09"),
    Row("ALL-02", body(user("u"), thinking={"type": "enabled", "budget_tokens": 9}), PLAIN, server="ANT-S08"),
    Row("ALL-02", body(user("u"), tools=TOOLS, tool_choice="auto"), PLAIN, server="ANT-S02"),
    Row("ALL-02", {**PLAIN, "max_tokens": 0}, {**PLAIN, "max_tokens": 1}, server="ANT-S08"),
    Row("ALL-02", without(PLAIN, "model"), PLAIN, server="ANT-S01"),
    Row("ALL-02", body(1, user("u")), PLAIN, server="ANT-S02"),
    Row("ALL-02", body(say("system"), user("u")), PLAIN, server="ANT-24"),
    Row("ALL-02", body(say("user", None)), PLAIN, server="ANT-S02"),
    Row("ALL-02", body(say("user", ["hi"])), PLAIN, server="ANT-S02"),
    Row("ALL-02", body(user(text(None))), PLAIN, server="ANT-S02"),
    Row("ALL-02", body(user(text(cache_control={}))), PLAIN, server="ANT-S03"),
    Row("ALL-02", body(*ROUND[:2], user(answer(is_error="no"))), ONE, server="ANT-S02"),
    Row("ALL-02", body(*ROUND[:2], user(answer(content=None))), ONE, server=ACCEPTED),
    Row("ALL-02", body(user({"type": "image", "source": {}})), PLAIN, server="ANT-S01"),
    Row("ALL-02", body(user({"type": "image", "source": {**SOURCE, "data": ""}})), PLAIN, server=ACCEPTED),
    Row("ALL-02", body(user("u"), assistant({**thinking(), "thinking": None}, "u"), user("u")), PLAIN,
        server="ANT-S02"),
    Row("ALL-02", body(user("u"), assistant({"type": "redacted_thinking", "data": ""}, "u"), user("u")),
        body(user("u"), assistant(redacted_thinking(), "u"), user("u")), server="ANT-42"),
    Row("ALL-02", body(user("u"), tools=[{"name": "read"}]), body(user("u"), tools=TOOLS), server="ANT-S01"),
    Row("ALL-02", body(user("u"), tools=[{"name": "read", "input_schema": {"type": "object", "oneOf": []}}]),
        body(user("u"), tools=[{"name": "read", "input_schema": {"type": "object", "not": {}}}]), server="ANT-S13"),
    Row("ALL-02", body(user("u"), tools={}), body(user("u"), tools=[]), server="ANT-S02"),
    Row("ALL-02", body(user("u"), tools=[1]), body(user("u"), tools=[]), server="ANT-S02"),
    Row("ALL-02", body(user("u"), system=1), body(user("u"), system="s"), server="ANT-S02"),
    Row("ALL-02", body(user("u"), system=[SOURCE]), body(user("u"), system=[text()]), server="ANT-S03"),
    Row("ALL-02", body(*ROUND), body(ROUND[0], assistant(thinking(""), use()), ROUND[2]), server=NOT_ASKED,
        profile=COPY),
    Row("ALL-02", body(*ROUND[:2], user(answer(None))), ONE, judge="ALL-02 ANT-01", server="ANT-S02"),
    Row("ALL-06", body(user("u"), assistant(use(arguments=[1])), user(answer())), body(*ROUND), server="ANT-S02"),
    Row("ALL-08", body(user("u", use())), body(user("u")), server="ANT-S05"),
    Row("ALL-08", body(user("u"), assistant(answer()), user("u")), body(user("u")), server="ANT-S05"),
    Row("ALL-08", body(user("u", {"type": "compaction"})), body(user("u")), server=ACCEPTED),
    Row("ALL-08", body(*ROUND[:2], user(answer(content=[use()]))), body(*ROUND), server="ANT-S04"),
    Row("ALL-08", body(user("u"), assistant(thinking(), "u"), user("u")), body(user("u")), server=NOT_ASKED,
        profile=TEXT_ONLY),
    Row("ALL-10", body(user(PICTURE)), body(user("u")), server=NOT_ASKED, profile=TEXT_ONLY),
    Row("ALL-10", body(user({"type": "image", "source": SOURCE | {"media_type": {}}})), body(user(PICTURE)),
        server="ANT-S02"),
    Row("ANT-01", body(user("u"), assistant(use())), ONE, f"messages.1: {UNANSWERED}: toolu_a. {NEXT}",
        judge="ANT-01 ANT-27"),
    Row("ANT-01", body(user("u"), assistant(use(), use("toolu_b"), use("toolu_c")), user(answer("toolu_b"), "go")),
        TWO, f"messages.1: {UNANSWERED}: toolu_a, toolu_c. {NEXT}"),
    Row("ANT-01", body(*PAIR, user(answer("toolu_b"))), TWO),
    Row("ANT-01", body(*ROUND[:2], user(text("go"))), ONE),
    Row("ANT-01", body(*ROUND[:2], user(text("go")), assistant("u"), user("u")), ONE),
    Row("ANT-02", body(user(answer(), "u")), ONE,
        "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_a. " + PREVIOUS),
    Row("ANT-02", body(user("u"), assistant(use()), user(answer()), assistant("t"), user(answer())),
        body(user("u"), assistant(use()), user(answer()), assistant("t"), user("u")),
        "messages.4.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_a. " + PREVIOUS),
    Row("ANT-02", body(user(answer())), PLAIN),
    Row("ANT-02", body(user("u"), assistant("u"), user(answer())), ONE),
    Row("ANT-03", body(user("u"), assistant(use()), user("go", answer())),
        body(user("u"), assistant(use()), user(answer(), "go")),
        "messages.2: Did not find 1 `tool_result` block(s) at the beginning of this message. Messages "
        "following `tool_use` blocks must begin with a matching number of `tool_result` blocks."),
    Row("ANT-03", body(*ROUND[:2], user("u", answer())), ONE),
    Row("ANT-03", body(*PAIR, user(answer(), "u", answer("toolu_b"))), TWO),
    Row("ANT-03", body(*ROUND[:2], user(PICTURE, answer())), ONE),
    Row("ANT-04", body(user("u"), assistant(use()), assistant("t"), user(answer())), ONE,
        "Messages containing `tool_use` blocks must be followed by a user message with `tool_result` blocks",
        judge="ANT-04 ANT-26", hosted=False),
    Row("ANT-05", body(user("u"), assistant(use()), user(answer()), assistant("t", use()), user(answer())),
        body(user("u"), assistant(use()), user(answer()), assistant("t", use("toolu_b")), user(answer("toolu_b"))),
        "messages.3.content.1: `tool_use` ids must be unique"),
    Row("ANT-05", body(*ROUND, assistant(use()), user(answer())),
        body(*ROUND, assistant(use("toolu_b")), user(answer("toolu_b")))),
    Row("ANT-05", body(user("u"), assistant(use(), use()), user(answer())), ONE),
    Row("ANT-05", body(user("u"), assistant(server_use(), server_answer(), server_use(), server_answer()), user("u")),
        body(user("u"), assistant(server_use(), server_answer()), user("u")), server=ACCEPTED),
    Row("ANT-06", body(user("u"), assistant(use()), user(answer(), answer())), ONE,
        "messages.2.content.1: each tool_use must have a single result. Found multiple `tool_result` blocks "
        "with id: toolu_a"),
    Row("ANT-07", body(user("u"), assistant(use("functions.read:0")), user(answer("functions.read:0"))),
        body(user("u"), assistant(use("functions-read-0")), user(answer("functions-read-0"))),
        "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"),
    Row("ANT-07", body(user("u"), assistant(use("")), user(answer(""))), ONE,
        "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"),
    Row("ANT-07", body(user("u"), assistant(server_use("x")), user("u")), ONE, server="ANT-07-server"),
    Row("ANT-07-mcp", body(user("u"), assistant({**MCP_CALL, "id": "srvtoolu_a"}), user("go")),
        body(user("u"), assistant(MCP_CALL, MCP_RESULT), user("go")),
        "messages.1.content.0.mcp_tool_use.id: String should match pattern '^mcptoolu_[a-zA-Z0-9_]+$'", judge="ANT-07",
        read="transcript ANT-07"),
    Row("ANT-07-server", body(user("u"), assistant({**SERVER_CALL, "id": "toolu_a"}), user("go")),
        body(user("u"), assistant(SERVER_CALL, SERVER_RESULT), user("go")),
        "messages.1.content.0.server_tool_use.id: String should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'",
        judge="ANT-07", read="transcript ANT-07"),
    Row("ANT-08", body(user("u"), tools=[tool(name="read.file")]), body(user("u"), tools=[tool(name="read_file")]),
        "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"),
    Row("ANT-08", body(user("u"), assistant(use(name="read file")), user(answer())), ONE,
        "messages.1.content.0.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"),
    Row("ANT-08", body(user("u"), tools=[tool("x" * 129)]), body(user("u"), tools=[tool("x" * 128)]),
        server="ANT-08-length"),
    Row("ANT-08-length", body(user("u"), tools=[tool(name="n" * 129)]), body(user("u"), tools=[tool(name="n" * 128)]),
        "tools.0.custom.name: String should have at most 128 characters", judge="ANT-08", read="transcript ANT-08"),
    Row("ANT-09", body(user("u"), tools=[TOOL, TOOL]), body(user("u"), tools=[TOOL, tool(name="write")]),
        "tools: Tool names must be unique."),
    Row("ANT-10", body(user("u"), assistant(SERVER_CALL, use()), user(answer(), "go")),
        body(user("u"), assistant(SERVER_CALL, use()), user(answer())),
        "messages.2: only `tool_result` blocks may be sent while a server tool call is pending.", read="transcript"),
    Row("ANT-10", body(*SERVER_ROUND, user(answer(), PICTURE)), body(*SERVER_ROUND, user(answer()))),
    Row("ANT-11", body(user("u"), assistant(SERVER_RESULT), user("u")),
        body(user("u"), assistant(SERVER_CALL, SERVER_RESULT), user("u")),
        "messages.1.content.0: unexpected `tool_use_id` found in `advisor_tool_result` blocks: srvtoolu_a. "
        "Each `advisor_tool_result` block must have a corresponding `server_tool_use` block before it."),
    Row("ANT-11", body(user("u"), assistant(SERVER_CALL, {**MCP_RESULT, "tool_use_id": "srvtoolu_a"}), user("u")),
        body(user("u"), assistant(MCP_CALL, MCP_RESULT), user("u")),
        "messages.1.content.1: unexpected `tool_use_id` found in `mcp_tool_result` blocks: srvtoolu_a. Each "
        "`mcp_tool_result` block must have a corresponding `mcp_tool_use` block before it.", judge=UNSEEN),
    Row("ANT-11", body(user("u"), assistant(server_answer(), server_use(), server_answer()), user("u")),
        body(user("u"), assistant(server_use(), server_answer()), user("u"))),
    Row("ANT-11", body(*SERVER_ROUND, user(answer()), assistant(server_answer("srvtoolu_2")), user("u")), ONE,
        judge="ANT-11 ANT-10"),
    Row("ANT-12", body(user("u"), assistant(use(), use("toolu_b")), user(answer()), user(answer("toolu_b"))), TWO,
        f"messages.1: {UNANSWERED}: toolu_b. {NEXT}", judge="ANT-12 ANT-26", read="transcript ANT-01", hosted=False),
    Row("ANT-20", body(user("")), PLAIN, "messages: text content blocks must be non-empty"),
    Row("ANT-20", body(user("u"), assistant("", use()), user(answer())), ONE,
        "messages: text content blocks must be non-empty"),
    Row("ANT-20", body(user("u"), assistant(use()), user(answer(content=[text("")]))),
        body(user("u"), assistant(use()), user(answer(content=[text("r")]))),
        "messages: text content blocks must be non-empty"),
    Row("ANT-20", body(user("u"), system=[text("")]), body(user("u"), system=[text()])),
    Row("ANT-20", body(*ROUND[:2], user(answer(content=[text("")]))), body(*ROUND[:2], user(answer(content="")))),
    Row("ANT-21", body(user(" \n")), PLAIN, "messages: text content blocks must contain non-whitespace text"),
    Row("ANT-21", body(user("u"), system=[text(" ")]), body(user("u"), system=[text("s")]),
        "system: text content blocks must contain non-whitespace text"),
    Row("ANT-21", body(user("u"), system=" "), body(user("u"), system="s"), server=ACCEPTED),
    Row("ANT-22", body(user("u"), assistant(), user("u")), body(user("u"), assistant("t"), user("u")),
        "messages.1: all messages must have non-empty content except for the optional final assistant message"),
    Row("ANT-22", body(user()), PLAIN),
    Row("ANT-22", body(say("user", "")), body(say("user", "hi"))),
    Row("ANT-23", body(user("u"), assistant("t ")), body(user("u"), assistant("t")),
        "messages: final assistant content cannot end with trailing whitespace", judge="ANT-23 ANT-27",
        stricter="ANT-27", settings=model(prefill=True)),
    Row("ANT-23", body(user("u"), assistant(text("hi "))), PLAIN, judge="ANT-23 ANT-27"),
    Row("ANT-24", body(assistant("t"), user("u")), PLAIN, 'messages: first message must use the "user" role'),
    Row("ANT-25", body(), PLAIN, "messages: at least one message is required"),
    Row("ANT-26", body(user("u"), user("u")), body(user("u", "u")),
        'messages: roles must alternate between "user" and "assistant", but found multiple "user" roles in a row',
        hosted=False),
    Row("ANT-27", body(user("u"), assistant("t")), body(user("u"), assistant("t"), user("u")),
        "This model does not support assistant message prefill. The conversation must end with a user message."),
    Row("ANT-27", body(user("u"), assistant("u")), PLAIN),
    Row("ANT-28", body(user("u"), zzz=1), PLAIN, "zzz: Extra inputs are not permitted"),
    Row("ANT-28", body({**user("u"), "name": "n"}), PLAIN, "messages.0.name: Extra inputs are not permitted"),
    Row("ANT-28", body(user("u"), assistant(use(index=0)), user(answer())), ONE,
        "messages.1.content.0.tool_use.index: Extra inputs are not permitted"),
    Row("ANT-28", body(user(text(x=1))), PLAIN),
    Row("ANT-28", body(say("user", "hi", name="bob")), PLAIN),
    Row("ANT-28", body(*ROUND[:2], user(answer(name="read"))), body(*ROUND[:2], user(answer(is_error=True)))),
    Row("ANT-28", body(user("u"), assistant(thinking(seal=1), "u"), user("u")), PLAIN),
    Row("ANT-28", body(user({"type": "image", "source": {**SOURCE, "x": 1}})), body(user(PICTURE)), server=ACCEPTED),
    Row("ANT-28", body(user("u"), tools=[tool(parameters={})]), body(user("u"), tools=[tool(description="d")])),
    Row("ANT-28", body(user("u"), assistant({"type": "redacted_thinking", "data": "x", "y": 1}, "u"), user("u")),
        PLAIN),
    Row("ANT-28", body(user({**PICTURE, "x": 1})), body(user(PICTURE))),
    Row("ANT-28", body(user({"type": "search_result", "source": "s", "title": "t", "content": [], "x": 1})),
        body(user({"type": "search_result", "source": "s", "title": "t", "content": []}))),
    Row("ANT-29", body(user("u"), assistant(use()), user(answer(content=[]))),
        body(user("u"), assistant(use()), user(answer(content=""))),
        "messages.2.content.0.tool_result.content: List should have at least 1 item after validation, not 0"),
    Row("ANT-30", body(user(image(5242881))), body(user(image(5242880))),
        "messages.0.content.0.image.source.base64: image exceeds 5 MB maximum: 5242881 bytes > 5242880 bytes",
        read="media ANT-30"),
    Row("ANT-30", body(user(BIG)), PLAIN),
    Row("ANT-31", b'{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"\\ud800 u"}]}', PLAIN,
        "The request body is not valid JSON: no low surrogate in string: line 1 column 73"),
    Row("ANT-31", body(user(text(SURROGATE))), PLAIN),
    Row("ANT-31", body(user(text("\\" + SURROGATE + "x"))), PLAIN),
    Row("ANT-31", body(user(text("\ude00"))), PLAIN),
    Row("ANT-32", body(user(*[text("u", cache_control=MARK)] * 5)), body(user(*[text("u", cache_control=MARK)] * 4)),
        "A maximum of 4 blocks with cache_control may be provided. Found 5."),
    Row("ANT-32", body(user(*(text(cache_control=MARK) for _ in range(5)))),
        body(user(*(text(cache_control=MARK) for _ in range(4))))),
    Row("ANT-32", body(user(*(text(cache_control=MARK) for _ in range(3))), **MARKED),
        body(user(*(text(cache_control=MARK) for _ in range(2))), **MARKED)),
    Row("ANT-33", body(user(text("", cache_control=MARK))), body(user(text("u", cache_control=MARK))),
        "messages.0: cache_control cannot be set for empty text blocks", judge="ANT-33 ANT-20"),
    Row("ANT-33", body(user(text("", cache_control=MARK))), PLAIN, judge="ANT-33 ANT-20"),
    Row("ANT-34",
        body(user("u"), assistant({"type": "thinking", "thinking": "", "signature": "s", "cache_control": MARK})),
        PLAIN, "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted", judge="ANT-34 ANT-27",
        read="parameter ANT-34"),
    Row("ANT-34", body(user("u"), assistant(thinking(cache_control=MARK), "u"), user("u")), PLAIN),
    Row("ANT-34-ttl", body(user(text("u", cache_control=MARK), text("u", cache_control={**MARK, "ttl": "1h"}))),
        body(user(text("u", cache_control={**MARK, "ttl": "1h"}), text("u", cache_control=MARK))),
        "messages.0.content.1.cache_control.ttl: a ttl='1h' cache_control block must not come after a "
        "ttl='5m' cache_control block.", judge="ANT-34", read="parameter ANT-34"),
    Row("ANT-35", body(user("u"), max_tokens=100000), body(user("u"), max_tokens=64000),
        "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for m", judge=UNSEEN,
        read="parameter:config ANT-35", settings=model(max_output_tokens=64000)),
    Row("ANT-36", body(user("u" * 800)), PLAIN, "prompt is too long: 227 tokens > 200 maximum", judge=UNSEEN,
        settings=model(context_tokens=200)),
    Row("ANT-37", body(user("u"), max_tokens=400), body(user("u"), max_tokens=300),
        "input length and `max_tokens` exceed context limit: 27 + 400 > 400, decrease input length or "
        "`max_tokens` and try again", judge=UNSEEN, settings=model(context_tokens=400, window_counts_output=True)),
    Row("ANT-38", PLAIN, {**PLAIN, "model": "known"}, "model: m", judge=UNSEEN,
        answer=Answer(status=404, type="not_found_error"),
        settings=AnthropicSettings(models={"known": AnthropicProfile()})),
    Row("ANT-39", body(user("u"), assistant("u", redacted_thinking(), "u"), user("u")), PLAIN,
        "messages.1.content.0: If an assistant message contains any thinking blocks, the first block must be "
        "`thinking` or `redacted_thinking`. Found `text`.", hosted=False),
    Row("ANT-39", body(user("u"), assistant("u", thinking(), use()), user(answer())),
        body(user("u"), assistant(thinking(), "u", thinking(), use()), user(answer())), hosted=False),
    Row("ANT-40", body(*ROUND, thinking=MANUAL), body(*THOUGHT_ROUND, thinking=MANUAL),
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When "
        "`thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the "
        "lastmost set of `tool_use` and `tool_result` blocks)."),
    Row("ANT-40", body(*ROUND, assistant(thinking(), use("toolu_b")), user(answer("toolu_b")), thinking=MANUAL),
        body(*THOUGHT_ROUND, assistant(use("toolu_b")), user(answer("toolu_b")), thinking=MANUAL)),
    Row("ANT-40",
        body(*THOUGHT_ROUND, assistant("u"), user("u"), assistant(use("toolu_b")), user(answer("toolu_b")),
             thinking=MANUAL),
        body(*ROUND, assistant("u"), user("u"), assistant(thinking(), use("toolu_b")), user(answer("toolu_b")),
             thinking=MANUAL)),
    Row("ANT-40", body(*ROUND[:2], user(answer(), "u"), thinking=MANUAL),
        body(*ROUND[:2], user(answer(), "u"), thinking={"type": "adaptive"})),
    Row("ANT-43", body(user("u"), assistant(thinking(""), "u"), user("u")), PLAIN,
        "messages.1.content.0: Invalid `signature` in `thinking` block", server="ANT-42"),
    Row("ANT-43", body(user("u"), assistant(thinking("", thinking=""), "u"), user("u")), PLAIN,
        "messages.1.content.0.thinking.thinking: each thinking block must contain thinking"),
    Row("ANT-43", body(user("u"), assistant(without(thinking(), "signature"), "u"), user("u")),
        body(user("u"), assistant({**thinking(), "thinking": ""}, "u"), user("u")), server="ANT-S01"),
    Row("ANT-43", body(ROUND[0], assistant(without(thinking(), "signature"), use()), ROUND[2]),
        body(ROUND[0], assistant(thinking(), use()), ROUND[2]), server=NOT_ASKED, profile=COPY),
    Row("ANT-45", body(user("u"), thinking=MANUAL), body(user("u"), thinking={"type": "adaptive"}),
        '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and '
        '"output_config.effort" to control thinking behavior.', judge=UNSEEN, read="parameter:config ANT-45",
        settings=model(thinking=frozenset({"adaptive"}))),
    Row("ANT-45", body(user("u"), thinking=MANUAL, model="claude-opus-5"),
        body(user("u"), model="claude-opus-5", thinking={"type": "adaptive"})),
    Row("ANT-46", body(user("u"), thinking={"type": "adaptive"}), body(user("u"), thinking=MANUAL),
        "adaptive thinking is not supported on this model", judge=UNSEEN, read="parameter:config ANT-46",
        settings=model(thinking=frozenset({"enabled"}))),
    Row("ANT-46", body(user("u"), model="claude-haiku-4-5", thinking={"type": "adaptive"}),
        body(user("u"), model="claude-sonnet-4-6", thinking={"type": "adaptive"})),
    Row("ANT-47", body(user("u"), thinking={"type": "disabled"}), body(user("u"), thinking={"type": "adaptive"}),
        '"thinking.type.disabled" is not supported for this model.', judge=UNSEEN, read="parameter:config ANT-47",
        settings=model(thinking=frozenset({"adaptive"}))),
    Row("ANT-47", body(user("u"), model="claude-opus-5-5", thinking={"type": "disabled"}),
        body(user("u"), model="claude-sonnet-5-5", thinking={"type": "between_tools"})),
    Row("ANT-47-between", body(user("u"), thinking={"type": "between_tools"}),
        body(user("u"), thinking={"type": "adaptive"}),
        '"thinking.type.between_tools" is not supported for this model.', judge="ALL-16", read="parameter",
        settings=model(thinking=frozenset({"adaptive"}))),
    Row("ANT-48", body(user("u"), tools=[TOOL], tool_choice=FORCED),
        body(user("u"), tools=[TOOL], tool_choice={"type": "auto"}),
        'tool_choice: type "tool" and "any" are not supported for this model.', judge=UNSEEN,
        read="parameter:config ANT-48", settings=model(forced_tool_choice=False)),
    Row("ANT-48", body(user("u"), model="claude-opus-5-5", tools=TOOLS, tool_choice={"type": "any"}),
        body(user("u"), model="claude-opus-5-5", tools=TOOLS, tool_choice={"type": "auto"})),
    Row("ANT-48", body(user("u"), thinking=MANUAL, tools=TOOLS, tool_choice={"type": "any"}),
        body(user("u"), thinking=MANUAL, tools=TOOLS, tool_choice={"type": "auto"}), server="ANT-48-thinking"),
    Row("ANT-48-thinking", body(user("u"), tools=[TOOL], tool_choice=FORCED, thinking=MANUAL),
        body(user("u"), tools=[TOOL], tool_choice=FORCED),
        "Thinking may not be enabled when tool_choice forces tool use.", judge="ANT-48",
        read="parameter:config ANT-48"),
    Row("ANT-49", body(user("u"), output_config={"effort": "xhigh"}),
        body(user("u"), output_config={"effort": "high"}),
        "This model does not support effort level 'xhigh'. Supported levels: high, low, max, medium.", judge=UNSEEN,
        read="parameter:config ANT-49", settings=model(efforts=frozenset({"low", "medium", "high", "max"}))),
    Row("ANT-49", body(user("u"), model="claude-opus-4-6", output_config={"effort": "xhigh"}),
        body(user("u"), model="claude-opus-4-7", output_config={"effort": "xhigh"})),
    Row("ANT-49-between", body(user("u"), thinking={"type": "between_tools"}, output_config={"effort": "max"}),
        body(user("u"), thinking={"type": "between_tools"}, output_config={"effort": "high"}),
        "thinking.type.between_tools is not supported with effort level 'max'.", judge="ALL-16", stricter="ALL-16",
        read="parameter"),
    Row("ANT-49-none", body(user("u"), model="claude-haiku-4-5", output_config={"effort": "low"}),
        body(user("u"), model="claude-opus-4-5", output_config={"effort": "low"}),
        "This model does not support the effort parameter.", judge="ANT-49", read="parameter"),
    Row("ANT-50", body(user("u"), thinking={"type": "adaptive", "block_binding": {}}),
        body(user("u"), thinking={"type": "adaptive"}),
        "thinking.adaptive.block_binding: Extra inputs are not permitted", judge=UNSEEN,
        read="parameter:config ANT-50"),
    Row("ANT-51", body(user("u"), assistant(use()), user(answer(content=[image(4)], is_error=True))),
        body(user("u"), assistant(use()), user(answer(content=[image(4)]))),
        "messages.2.content.0.tool_result.content: all content must be type `text` if `is_error` is true"),
    Row("ANT-51", body(*ROUND[:2], user(answer(content=[text(), PICTURE], is_error=True))),
        body(*ROUND[:2], user(answer(content=[text(), PICTURE])))),
    Row("ANT-52", body(user("u"), assistant({"type": "redacted_thinking", "data": "x"}), user("v")),
        body(user("u"), assistant({"type": "text", "text": "t"}), user("v")),
        "messages.1: The final block in an assistant message cannot be `thinking`.",
        settings=AnthropicSettings(signatures="trust")),
    Row("ANT-53", body(user("u"), assistant(use()), user(answer(content="", is_error=True))),
        body(user("u"), assistant(use()), user(answer(content=""))),
        "messages.2.content.0.tool_result: content cannot be empty if `is_error` is true"),
    Row("ANT-53", body(*ROUND[:2], user(answer(content=" ", is_error=True))),
        body(*ROUND[:2], user(answer(content=" ")))),
    Row("ANT-54", body(user(*[image(4)] * 100), assistant(use()), user(answer(content=[image(4)]))),
        body(user(*[image(4)] * 99), assistant(use()), user(answer(content=[image(4)]))),
        "too many images and documents: 101 + 0 > 100", read="media ANT-54"),
    Row("ANT-54", body(*ROUND[:2], user(answer(content=[PICTURE] * 100), PICTURE)),
        body(*ROUND[:2], user(answer(content=[PICTURE] * 99), PICTURE))),
    Row("ANT-55", body(*[user("u")] * 100001), PLAIN,
        "messages: List should have at most 100000 items after validation, not 100001", judge="ANT-26"),
    Row("ANT-56", body(user("u"), model="claude-opus-4-7", temperature=0.2),
        body(user("u"), model="claude-opus-4-6", temperature=0.2)),
    Row("ANT-57", body(user("u"), tools=[{**TOOL, "input_schema": {"type": "object", "properties": {"$top": {}}}}]),
        body(user("u"), tools=[{**TOOL, "input_schema": {"type": "object", "properties": {"a.b-c_1": {}}}}]),
        "tools.0.custom.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'",
        read="parameter ANT-57"),
    Row("ANT-57", body(user("u"), tools=[tool(input_schema=schema({"a b": {}}))]),
        body(user("u"), tools=[tool(input_schema=schema({"a.b": schema({"a b": {}})}))])),
    Row("ANT-58", body(user("u", photo(9000, 800))), body(user("u", photo(8000, 800))),
        "messages.0.content.1.image.source.base64.data: At least one of the image dimensions exceed max "
        "allowed size: 8000 pixels", read="media ANT-58"),
    Row("ANT-58", body(user(photo(8001, 9))), body(user(photo(8000, 9)))),
    Row("ANT-59", body(user("u", *[photo()] * 20), assistant(use()), user(answer(content=[photo(9, 2500)]))),
        body(user("u", *[photo()] * 19), assistant(use()), user(answer(content=[photo(9, 2500)]))),
        "messages.2.content.0.tool_result.content.0.image.source.base64.data: At least one of the image "
        "dimensions exceed max allowed size for many-image requests: 2000 pixels", read="media ANT-59"),
    Row("ANT-59", body(user(photo(9, 2001), *[photo()] * 20)), body(user(photo(9, 2001), *[photo()] * 19))),
    Row("ANT-59", body(*ROUND[:2], user(answer(content=[photo()] * 20), photo(2001, 9))),
        body(*ROUND[:2], user(answer(content=[photo()] * 20), photo(2000, 9)))),
    Row("ANT-60", {**CLOUD, "anthropic_version": None}, CLOUD, server="ANT-S01", dialect="bedrock_anthropic"),
    Row("ANT-60", {**CLOUD, "anthropic_version": "2023-06-01"}, CLOUD, server="ANT-S03", dialect="bedrock_anthropic"),
    Row("ANT-60", {**CLOUD, "anthropic_version": "vertex-2023-10-16"}, CLOUD, server="ANT-S03",
        dialect="bedrock_anthropic"),
    Row("ANT-61", body(user("u", photo(media_type="image/jpeg"))), body(user("u", photo())),
        "messages.0.content.1.image.source.base64.data: Image does not match the provided media type image/jpeg",
        read="media ANT-61"),
    Row("ANT-61", body(user(photo(media_type="image/jpeg"))), body(user(photo()))),
    Row("ANT-S01", {"model": "m", "messages": [user("u")]}, PLAIN, "max_tokens: Field required", judge="ALL-02",
        read="parameter"),
    Row("ANT-S02", body(user("u"), assistant(use(input="{}")), user(answer())), ONE,
        "messages.1.content.0.tool_use.input: Input should be a valid dictionary", judge="ALL-06"),
    Row("ANT-S03", body({"role": "tool", "content": "r"}), PLAIN,
        "messages.0.role: Input should be 'user' or 'assistant'", judge="ALL-02 ANT-25"),
    Row("ANT-S04", body(user("u"), tools=[TOOL], tool_choice={"type": "required"}),
        body(user("u"), tools=[TOOL], tool_choice={"type": "none"}),
        "tool_choice: Input tag 'required' found using 'type' does not match any of the expected tags: 'any', "
        "'auto', 'none', 'tool'", judge="ALL-02", read="parameter"),
    Row("ANT-S05", body(user(use())), ONE,
        "messages.0.content.0: `tool_use` blocks can only be in `assistant` messages", judge="ALL-08"),
    Row("ANT-S06", body(user("u"), MID), PLAIN, "role 'system' is not supported on this model", judge=UNSEEN,
        settings=model(mid_system=False)),
    Row("ANT-S07", body(user("u"), MID, user("u")), body(user("u"), MID, assistant("t"), user("u")),
        "messages.1: a `system` message must follow a user message and precede an assistant message or end "
        "the conversation.", judge="ALL-02 ANT-26"),
    Row("ANT-S07", body(user("u"), MID, MID), body(user("u"), MID),
        "messages.2: a `system` message must follow a user message and precede an assistant message or end "
        "the conversation.", judge="ALL-02"),
    Row("ANT-S08", body(user("u"), thinking={"type": "enabled", "budget_tokens": 1000}),
        body(user("u"), thinking=MANUAL),
        "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024", judge="ALL-02",
        read="parameter"),
    Row("ANT-S09", body(user("u"), thinking={"type": "enabled", "budget_tokens": 4096}),
        body(user("u"), thinking=MANUAL), "`max_tokens` must be greater than `thinking.budget_tokens`.",
        judge="ALL-02", read="parameter"),
    Row("ANT-S10", body(user("u"), thinking=MANUAL, temperature=0.5), body(user("u"), thinking=MANUAL, temperature=1),
        "`temperature` may only be set to 1 when thinking is enabled.", judge=UNSEEN, read="parameter"),
    Row("ANT-S11", body(user("u"), tool_choice={"type": "none"}),
        body(user("u"), tool_choice={"type": "none"}, tools=[TOOL]),
        "`tool_choice` may only be specified while providing `tools`.", judge="ALL-14", read="parameter"),
    Row("ANT-S12", body(user("u"), tools=[TOOL], tool_choice={"type": "tool", "name": "write"}),
        body(user("u"), tools=[TOOL], tool_choice={"type": "tool", "name": "read"}),
        "Tool 'write' not found in provided tools", judge="ALL-14"),
    Row("ANT-S13", body(user("u"), tools=[{**TOOL, "input_schema": {"type": "object", "oneOf": [{}]}}]),
        body(user("u"), tools=[TOOL]),
        "tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level",
        judge="ALL-02", read="transcript ALL-02"),
    Row("ANT-S14", body(user("u"), temperature=1.5), body(user("u"), temperature=1),
        "temperature: Input should be less than or equal to 1", judge=UNSEEN, read="parameter"),
    Row("ANT-S30",
        body(user("u"), tools=[{**TOOL, "input_schema": {"type": "object", "properties": {"type": "object"}}}]),
        body(user("u"), tools=[{**TOOL, "input_schema": {"type": "object", "properties": {"type": True}}}]),
        "tools.0.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12 "
        "(https://json-schema.org/draft/2020-12). Learn more about tool use at "
        "https://docs.claude.com/en/docs/tool-use.", judge="ALL-02"),
    Row("ANT-S31", body(user("u"), model="claude-3-7-sonnet-20250219", output_config={"format": ANSWER}),
        body(user("u"), model="claude-sonnet-4-5", output_config={"format": ANSWER}),
        "output_config.format: structured outputs are not supported on this model.", judge=UNSEEN, read="parameter"),
    Row("DSK-06", body(user("u"), assistant(use()), user(answer())),
        body(user("u"), assistant(PLACEHOLDER, use()), user(answer())),
        "The `content[].thinking` in the thinking mode must be passed back to the API.", judge="ALL-02",
        settings=model(reasoning=True), profile=COPY),
    Row("DSK-06", body(user("u"), assistant("t", use()), user(answer())),
        body(user("u"), assistant("t", use()), user(answer()), thinking={"type": "disabled"}),
        "The `content[].thinking` in the thinking mode must be passed back to the API.", judge="ALL-02",
        stricter="ALL-02", settings=model(reasoning=True), profile=COPY),
)  # fmt: skip
