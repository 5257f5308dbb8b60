"""The judge finds each broken rule, and says nothing about a request that keeps them all.

One row a rule: the smallest request that breaks it, beside the same request mended.
"""

import json
from dataclasses import dataclass
from typing import Any, TypeAlias

import pytest

from actors.core.check import check
from actors.core.data.record import replace
from actors.core.dialects.dialect import Dialect
from actors.core.dialects.profiles import ANTHROPIC, OPENAI_CHAT, PROFILES
from actors.core.rulebook import FAULTS, RULES
from actors.testing.images import png_base64
from tests.core import converse_rows

Json: TypeAlias = dict[str, Any]  # Any: wire bodies are built by hand, broken ones on purpose

IMAGE = {"type": "base64", "media_type": "image/png", "data": "aGk="}
LINKED = {"type": "image_url", "image_url": {"url": "https://a.example/i.png"}}
FILE = {"type": "file", "file": {"file_id": "f"}}
SURROGATE = "\ud800"


def say(role: str, content: Any = "hi", **more: Any) -> Json:  # Any: whatever the row wants to try
    return {"role": role, "content": content, **more}


def call(
    call_id: Any = "c1", name: Any = "read", arguments: Any = "{}", **more: Any
) -> Json:  # Any: likewise
    function = {"name": name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function, **more}


def calls(*made: Json) -> Json:
    return say("assistant", None, tool_calls=list(made or [call()]))


def result(call_id: str = "c1", content: Any = "ok") -> Json:  # Any: likewise
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def chat(*messages: Any, **top: Any) -> Json:  # Any: likewise
    return {"model": "m", "messages": list(messages), **top}


def function_tool(name: str = "read", **more: Any) -> Json:  # Any: likewise
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object"}, **more}}


def text(words: Any = "hi", **more: Any) -> Json:  # Any: likewise
    return {"type": "text", "text": words, **more}


def use(call_id: Any = "t1", name: Any = "read", arguments: Any = None, **more: Any) -> Json:  # Any: likewise
    block = {"type": "tool_use", "id": call_id, "name": name}
    return {**block, "input": {} if arguments is None else arguments, **more}


def answer(call_id: Any = "t1", content: Any = "ok", **more: Any) -> Json:  # Any: likewise
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def thought(signature: Any = "sig", **more: Any) -> Json:  # Any: likewise
    return {"type": "thinking", "thinking": "hm", "signature": signature, **more}


def photo(width: int = 1, height: int = 1, **told: str) -> Json:
    data = png_base64(width, height)
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data, **told}}


def server_use(call_id: str = "srvtoolu_1") -> Json:
    return {"type": "server_tool_use", "id": call_id, "name": "web_search", "input": {}}


def server_answer(call_id: str = "srvtoolu_1") -> Json:
    return {"type": "web_search_tool_result", "tool_use_id": call_id, "content": []}


def user(*blocks: Any) -> Json:  # Any: likewise
    return say("user", list(blocks))


def model(*blocks: Any) -> Json:  # Any: likewise
    return say("assistant", list(blocks))


def messages(*said: Any, **top: Any) -> Json:  # Any: likewise
    return {"model": "m", "max_tokens": 9, "messages": list(said), **top}


def messages_tool(name: str = "read", **more: Any) -> Json:  # Any: likewise
    return {"name": name, "input_schema": {"type": "object"}, **more}


def schema(properties: Json) -> Json:
    return {"type": "object", "properties": properties}


def without(body: Json, key: str) -> Json:
    return {name: value for name, value in body.items() if name != key}


MARK = {"type": "ephemeral"}
LONG_MARK = {"type": "ephemeral", "ttl": "1h"}
LONG = "x" * (OPENAI_CHAT.turns.max_string or 0)
BIG = "A" * (7 * 1024 * 1024)
CAUTIOUS = replace(OPENAI_CHAT, turns=replace(OPENAI_CHAT.turns, first_roles=frozenset({"user"})))
PER_MESSAGE = replace(OPENAI_CHAT, ids=replace(OPENAI_CHAT.ids, unique_scope="message"))
TEXT_ONLY = replace(
    ANTHROPIC,
    media=replace(ANTHROPIC.media, user_kinds=frozenset()),
    reasoning=replace(ANTHROPIC.reasoning, carrier="none"),
)
WITHOUT_FILES = replace(OPENAI_CHAT, media=replace(OPENAI_CHAT.media, user_files=False))
ONE_FILE = replace(OPENAI_CHAT, media=replace(OPENAI_CHAT.media, max_count=1))
COPY = replace(
    ANTHROPIC, reasoning=replace(ANTHROPIC.reasoning, required="with_calls", placeholder="(None.)")
)
ROUND = (user(text()), model(use()), user(answer()))


@dataclass(frozen=True)
class Row:
    """A rule, a request that breaks it, and the same request mended."""

    rule: str
    broken: Json | bytes
    sanitised: Json
    dialect: Dialect = OPENAI_CHAT
    also: tuple[str, ...] = ()  # rules that cannot but be broken with it


HI = chat(say("user"))
DONE = chat(say("user"), calls(), result())

CHOSEN = {"type": "function", "function": {"name": "read"}}
OTHER = {"type": "function", "function": {"name": "write"}}

EVERYWHERE = [
    Row("ALL-02", chat(say("user"), stream_options={}), chat(say("user"), stream=True, stream_options={})),
    Row("ALL-14", chat(say("user"), tool_choice="none"),
        chat(say("user"), tool_choice="none", tools=[function_tool()])),
    Row("ALL-14", chat(say("user"), parallel_tool_calls=True), HI),
    Row("ALL-14", chat(say("user"), tool_choice=OTHER, tools=[function_tool()]),
        chat(say("user"), tool_choice=CHOSEN, tools=[function_tool()])),
    Row("ALL-01", b'{"model":"m","messages":[{"role":"user","content":"hi"}]', HI),
    Row("ALL-01", b'{"model":"m","model":"m","messages":[{"role":"user","content":"hi"}]}', HI),
    Row("ALL-01", b'{"model":"m","messages":[{"role":"user","content":"hi"}],"temperature":NaN}', HI),
    Row("ALL-01", b"[]", HI),
    Row("ALL-02", chat(say("user"), max_tokens=0), chat(say("user"), max_tokens=1)),
    Row("ALL-02", chat(say("user"), max_completion_tokens=-1), chat(say("user"), max_completion_tokens=1)),
    Row("ALL-02", chat(say("user"), max_tokens=1.5), chat(say("user"), max_tokens=None)),
    Row("ALL-02", chat(say("user"), max_completion_tokens=True), HI),
    Row("ALL-02", without(HI, "messages"), HI),
    Row("ALL-02", chat("hi", say("user")), HI),
    Row("ALL-02", chat(say("user"), calls(), {"role": "tool", "content": "ok"}), DONE, also=("OAC-01",)),
    Row("ALL-02", chat(say("user"), calls(call(None)), result("c1")), DONE, also=("OAC-02",)),
    Row("ALL-02", chat(say("user"), calls(call(type="other")), say("user")), HI),
    Row("ALL-02", chat(say("user"), say("assistant", "x", tool_calls=[]), say("user")), DONE),
    Row("ALL-02", chat(say("user"), calls({**call(), "function": 1}), result()), DONE),
    Row("ALL-02", chat(say("user"), tools=[]), chat(say("user"), tools=[function_tool()])),
    Row("ALL-02", chat(say("user"), tools=[{"type": "x"}]), chat(say("user"), tools=[function_tool()])),
    Row("ALL-02", chat(say("user"), tools=[{"type": "function"}]),
        chat(say("user"), tools=[function_tool()])),
    Row("ALL-02", chat(say("user", [text(1)])), chat(say("user", [text()]))),
    Row("ALL-02", chat(say("user", [{"type": "image_url", "image_url": "x"}])), chat(say("user"))),
    Row("ALL-03", chat(say("user"), calls(call("")), result("")), DONE),
    Row("ALL-03", chat(say("user"), calls(call("functions.read:0")), result("functions.read:0")), DONE),
    Row("ALL-04", chat(*DONE["messages"], calls(), result()),
        chat(*DONE["messages"], calls(call("c2")), result("c2"))),
    Row("ALL-04", chat(say("user"), calls(call(), call()), result()), DONE, PER_MESSAGE),
    Row("ALL-05", chat(say("user"), say("assistant")), chat(say("user"), say("assistant"), say("user"))),
    Row("ALL-05", chat(say("user"), say("system")), chat(say("system"), say("user"))),
    Row("ALL-06", chat(say("user"), calls(call(arguments="")), result()), DONE),
    Row("ALL-06", chat(say("user"), calls(call(arguments="[]")), result()), DONE),
    Row("ALL-06", chat(say("user"), calls(call(arguments="null")), result()), DONE),
    Row("ALL-06", chat(say("user"), calls(call(arguments='{"a')), result()), DONE),
    Row("ALL-06", chat(say("user"), calls(call(arguments={})), result()), DONE),
    Row("ALL-06", messages(user(text()), model(use(arguments=[1])), user(answer())), messages(*ROUND),
        ANTHROPIC),
    Row("ALL-07", chat(say("user"), say("assistant", "x", reasoning_content="hm"), say("user")), HI),
    Row("ALL-07", chat(say("user", [text(cache_control=MARK)])), HI),
    Row("ALL-07", chat(say("user"), calls(call(index=0)), result()), DONE),
    Row("ALL-07", chat(say("user"), calls({**call(), "function": {**call()["function"], "x": 1}}), result()),
        DONE),
    Row("ALL-07", chat(say("user"), tools=[{**function_tool(), "x": 1}]),
        chat(say("user"), tools=[function_tool()])),
    Row("ALL-07", chat(say("user"), tools=[function_tool(x=1)]), chat(say("user"), tools=[function_tool()])),
    Row("ALL-08", messages(user(text(), use())), messages(user(text())), ANTHROPIC),
    Row("ALL-08", messages(user(text()), model(answer()), user(text())), messages(user(text())), ANTHROPIC),
    Row("ALL-08", messages(user(text(), {"type": "compaction"})), messages(user(text())), ANTHROPIC),
    Row("ALL-08", messages(*ROUND[:2], user(answer(content=[use()]))), messages(*ROUND), ANTHROPIC),
    Row("ALL-08", messages(user(text()), model(thought(), text()), user(text())), messages(user(text())), TEXT_ONLY),
    Row("ALL-09", chat(say("assistant"), say("user")), HI, CAUTIOUS),
    Row("ALL-10", chat(say("user", [FILE])), chat(say("user", [LINKED])), WITHOUT_FILES),
    Row("ALL-10", messages(user({"type": "image", "source": IMAGE})), messages(user(text())), TEXT_ONLY),
    Row("ALL-15", chat(say("user", [LINKED] * 501)), chat(say("user", [LINKED] * 500))),
    Row("ALL-15", chat(say("user", [LINKED]), say("assistant"), say("user", [LINKED])),
        chat(say("user", [LINKED]), say("assistant"), say("user")), ONE_FILE),
    Row(
        "ALL-10",
        messages(user({"type": "image", "source": IMAGE | {"media_type": {}}})),
        messages(user({"type": "image", "source": IMAGE})),
        ANTHROPIC,
    ),
    Row("ALL-11", chat(say("user", [])), HI),
    Row("ALL-11", chat(say("user", [text("")])), HI),
    Row("ALL-11", chat(say("user"), say("assistant", None), say("user")), HI),
    Row("ALL-12", json.dumps(chat(say("user", SURROGATE))).encode(), HI),
    Row("ALL-12", json.dumps(HI).encode().replace(b"hi", b"\xed\xa0\x80"), HI),
    Row("ALL-13", chat(say("user"), tools=[function_tool(), function_tool()]),
        chat(say("user"), tools=[function_tool(), function_tool("write")])),
]  # fmt: skip

TWO = calls(call("c1"), call("c2"))

OPENAI = [
    Row("OAC-01", chat(say("user"), calls(), say("user")), DONE),
    Row("OAC-01", chat(say("user"), TWO, result("c1")), chat(say("user"), TWO, result("c1"), result("c2"))),
    Row("OAC-01", chat(say("user"), calls(), say("system"), result()), DONE, also=("OAC-02",)),
    Row("OAC-01", chat(say("user"), calls(), calls(call("c2")), result("c2")), DONE),
    Row("OAC-02", chat(say("user"), result()), DONE),
    Row("OAC-02", chat(say("user"), calls(), result(), result()), DONE),
    Row("OAC-02", chat(say("user"), TWO, result("c1"), result("c1"), result("c2")),
        chat(say("user"), TWO, result("c2"), result("c1"))),
    Row("OAC-02", chat(*DONE["messages"], say("user"), result()), chat(*DONE["messages"], say("user"))),
    Row("OAC-03", chat(say("user"), calls(call("c" * 41)), result("c" * 41)),
        chat(say("user"), calls(call("c" * 40)), result("c" * 40))),
    Row("OAC-04", chat(), HI),
    Row("OAC-05", chat(say("user", 1)), HI),
    Row("OAC-05", chat({"role": "user"}), HI),
    Row("OAC-05", chat(say("user", ["hi"])), HI),
    Row("OAC-05", chat(say("user"), say("assistant", 1), say("user")), HI),
    Row("OAC-05", chat(say("user"), calls(), result(content=None)), DONE),
    Row("OAC-06", chat(say("user"), say("bogus"), say("user")), HI),
    Row("OAC-06", chat(say("user"), {"role": ["user"], "content": "hi"}, say("user")), HI),
    Row("OAC-07", chat({"content": "hi"}, say("user")), HI),
    Row("OAC-08", chat(say("user", [answer()])), HI),
    Row("OAC-08",
        chat(say("user"), calls(), result(content=[{"type": "image_url", "image_url": {"url": "u"}}])),
        chat(say("user"), calls(), result(content=[text()]))),
    Row("OAC-09", chat(say("user"), tools=[function_tool(f"t{n}") for n in range(129)]),
        chat(say("user"), tools=[function_tool(f"t{n}") for n in range(128)])),
    Row("OAC-10", chat(say("user"), tools=[function_tool("x" * 65)]),
        chat(say("user"), tools=[function_tool("x" * 64)])),
    Row("OAC-10", chat(say("user"), calls(call(name="functions.read")), result()), DONE),
    Row("OAC-10", chat(say("user"), calls(call(name="")), result()), DONE),
    Row("OAC-11", chat(say("user"), tools=[function_tool(parameters={"type": "string"})]),
        chat(say("user"), tools=[{"type": "function", "function": {"name": "read"}}])),
    Row("OAC-11", chat(say("user"), tools=[function_tool(parameters={})]),
        chat(say("user"), tools=[function_tool()])),
    Row("OAC-11", chat(say("user"), tools=[function_tool(parameters={"type": "object", "anyOf": []})]),
        chat(say("user"), tools=[function_tool()])),
    Row("OAC-12", chat(say("user"), zzz_unknown=1), chat(say("user"), temperature=1)),
    Row("OAC-14", chat(say("user", LONG + "x")), chat(say("user", LONG))),
    Row("OAC-14", chat(say("user", [text(LONG + "x")])), chat(say("user", [text(LONG)]))),
    Row("OAC-14", chat(say("user"), calls(call(arguments=json.dumps({"a": LONG}))), result()), DONE),
    Row("OAC-17", chat(say("user"), prompt_cache_key="k" * 65), chat(say("user"), prompt_cache_key="k" * 64)),
    Row("OAC-18", chat(say("user"), model="o3", temperature=0.2), chat(say("user"), model="o3", temperature=1)),
    Row("OAC-19", without(HI, "model"), HI),
    Row("OAC-20", chat(say("user"), model="gpt-5.6", tools=[function_tool()]),
        chat(say("user"), model="gpt-5.6", tools=[function_tool()], reasoning_effort="none")),
    Row("OAC-20", chat(say("user"), model="gpt-5.5", tools=[function_tool()], reasoning_effort="low"),
        chat(say("user"), model="gpt-5.5", tools=[function_tool()])),
    Row("OAC-20", chat(say("user"), model="gpt-6-astra", tools=[function_tool()]),
        chat(say("user"), model="gpt-6-astra")),
    Row("ALL-16", chat(say("user"), model="gpt-5", reasoning_effort="none"),
        chat(say("user"), model="gpt-5", reasoning_effort="minimal")),
]  # fmt: skip

OK = messages(user(text()))
FULL = messages(*ROUND)
PICTURE = {"type": "image", "source": IMAGE}
PAIR = (user(text()), model(use("t1"), use("t2")))
BOTH = messages(*PAIR, user(answer("t1"), answer("t2")))
MANUAL = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2048}
READ = [messages_tool()]
THOUGHT_ROUND = (user(text()), model(thought(), use()), user(answer()))
SERVER_ROUND = (user(text()), model(server_use(), use()))

ANTHROPICS = [
    ("ANT-01", messages(*PAIR, user(answer("t2"))), BOTH),
    ("ANT-01", messages(*ROUND[:2], user(text("go"))), FULL),
    ("ANT-01", messages(*ROUND[:2], user(text("go")), model(text()), user(text())), FULL),
    ("ANT-02", messages(user(answer())), OK),
    ("ANT-02", messages(user(text()), model(text()), user(answer())), FULL),
    ("ANT-02", messages(*ROUND, model(text()), user(answer())), FULL),
    ("ANT-03", messages(*ROUND[:2], user(text(), answer())), FULL),
    ("ANT-03", messages(*PAIR, user(answer("t1"), text(), answer("t2"))), BOTH),
    ("ANT-03", messages(*ROUND[:2], user(PICTURE, answer())), FULL),
    ("ANT-05", messages(*ROUND, model(use()), user(answer())),
     messages(*ROUND, model(use("t2")), user(answer("t2")))),
    ("ANT-05", messages(user(text()), model(use(), use()), user(answer())), FULL),
    ("ANT-05", messages(user(text()), model(server_use(), server_answer(), server_use(), server_answer()),
              user(text())),
     messages(user(text()), model(server_use(), server_answer()), user(text()))),
    ("ANT-06", messages(*ROUND[:2], user(answer(), answer())), FULL),
    ("ANT-07", messages(user(text()), model(use("functions.read:0")), user(answer("functions.read:0"))),
     FULL),
    ("ANT-07", messages(user(text()), model(use("")), user(answer(""))), FULL),
    ("ANT-07", messages(user(text()), model(server_use("x")), user(text())), FULL),
    ("ANT-08", messages(user(text()), model(use(name="read file")), user(answer())), FULL),
    ("ANT-08", messages(user(text()), tools=[messages_tool("x" * 129)]),
     messages(user(text()), tools=[messages_tool("x" * 128)])),
    ("ANT-57", messages(user(text()), tools=[messages_tool(input_schema=schema({"a b": {}}))]),
     messages(user(text()), tools=[messages_tool(input_schema=schema({"a.b": schema({"a b": {}})}))])),
    ("ALL-02", messages(user(text()), tools=[messages_tool(input_schema=schema({"type": "object"}))]),
     messages(user(text()), tools=[messages_tool(input_schema=schema({"type": True}))])),
    ("ANT-09", messages(user(text()), tools=[messages_tool(), messages_tool()]),
     messages(user(text()), tools=[messages_tool(), messages_tool("write")])),
    ("ANT-10", messages(*SERVER_ROUND, user(answer(), text())), messages(*SERVER_ROUND, user(answer()))),
    ("ANT-10", messages(*SERVER_ROUND, user(answer(), PICTURE)), messages(*SERVER_ROUND, user(answer()))),
    ("ANT-11", messages(user(text()), model(server_answer(), server_use(), server_answer()), user(text())),
     messages(user(text()), model(server_use(), server_answer()), user(text()))),
    ("ANT-20", messages(user(text(""))), OK),
    ("ANT-20", messages(user(text()), system=[text("")]), messages(user(text()), system=[text()])),
    ("ANT-20", messages(*ROUND[:2], user(answer(content=[text("")]))),
     messages(*ROUND[:2], user(answer(content="")))),
    ("ANT-21", messages(user(text(" \n"))), OK),
    ("ANT-21", messages(user(text()), system=" "), messages(user(text()), system="s")),
    ("ANT-22", messages(user(text()), model(), user(text())), OK),
    ("ANT-22", messages(user()), OK),
    ("ANT-22", messages(say("user", "")), messages(say("user", "hi"))),
    ("ANT-24", messages(model(text()), user(text())), OK),
    ("ANT-25", messages(), OK),
    ("ANT-26", messages(user(text()), user(text())), messages(user(text(), text()))),
    ("ANT-27", messages(user(text()), model(text())), OK),
    ("ANT-28", messages(user(text(x=1))), OK),
    ("ANT-28", messages(user(text()), zzz=1), OK),
    ("ANT-28", messages(say("user", "hi", name="bob")), OK),
    ("ANT-28", messages(user(text()), model(use(index=0)), user(answer())), FULL),
    ("ANT-28", messages(*ROUND[:2], user(answer(name="read"))),
     messages(*ROUND[:2], user(answer(is_error=True)))),
    ("ANT-28", messages(user(text()), model(thought(seal=1), text()), user(text())), OK),
    ("ANT-28", messages(user({"type": "image", "source": {**IMAGE, "x": 1}})),
     messages(user({"type": "image", "source": IMAGE}))),
    ("ANT-28", messages(user(text()), tools=[messages_tool(parameters={})]),
     messages(user(text()), tools=[messages_tool(description="d")])),
    ("ANT-28",
     messages(user(text()), model({"type": "redacted_thinking", "data": "x", "y": 1}, text()), user(text())), OK),
    ("ANT-28", messages(user({**PICTURE, "x": 1})), messages(user(PICTURE))),
    ("ANT-28", messages(user({"type": "search_result", "source": "s", "title": "t", "content": [], "x": 1})),
     messages(user({"type": "search_result", "source": "s", "title": "t", "content": []}))),
    ("ANT-39", messages(user(text()), model(text(), {"type": "redacted_thinking", "data": "x"}, text()),
     user(text())), OK),
    ("ALL-02", messages(*ROUND[:2], user(answer(content=[{"type": "image"}]))), FULL),
    ("ALL-02", messages(*ROUND[:2], user(answer(content=[text(1)]))), FULL),
    ("ANT-29", messages(*ROUND[:2], user(answer(content=[]))),
     messages(*ROUND[:2], user(answer(content="")))),
    ("ANT-30", messages(user({"type": "image", "source": {**IMAGE, "data": BIG}})), OK),
    ("ANT-58", messages(user(photo(8001, 9))), messages(user(photo(8000, 9)))),
    ("ANT-59", messages(user(photo(9, 2001), *[photo()] * 20)), messages(user(photo(9, 2001), *[photo()] * 19))),
    ("ANT-59", messages(*ROUND[:2], user(answer(content=[photo()] * 20), photo(2001, 9))),
     messages(*ROUND[:2], user(answer(content=[photo()] * 20), photo(2000, 9)))),
    ("ANT-61", messages(user(photo(media_type="image/jpeg"))), messages(user(photo()))),
    ("ANT-54", messages(*ROUND[:2], user(answer(content=[PICTURE] * 100), PICTURE)),
     messages(*ROUND[:2], user(answer(content=[PICTURE] * 99), PICTURE))),
    ("ANT-52", messages(user(text()), model({"type": "redacted_thinking", "data": "x"}), user(text())),
     messages(user(text()), model({"type": "redacted_thinking", "data": "x"}, text()), user(text()))),
    ("ANT-53", messages(*ROUND[:2], user(answer(content=" ", is_error=True))),
     messages(*ROUND[:2], user(answer(content=" ")))),
    ("ANT-51", messages(*ROUND[:2], user(answer(content=[text(), PICTURE], is_error=True))),
     messages(*ROUND[:2], user(answer(content=[text(), PICTURE])))),
    ("ANT-32", messages(user(*(text(cache_control=MARK) for _ in range(5)))),
     messages(user(*(text(cache_control=MARK) for _ in range(4))))),
    ("ANT-32",
     messages(user(*(text(cache_control=MARK) for _ in range(3))), system=[text(cache_control=MARK)],
                        tools=[messages_tool(cache_control=MARK)]),
     messages(user(*(text(cache_control=MARK) for _ in range(2))), system=[text(cache_control=MARK)],
              tools=[messages_tool(cache_control=MARK)])),
    ("ANT-34", messages(user(text()), model(thought(cache_control=MARK), text()), user(text())), OK),
    ("ANT-34", messages(user(text(cache_control=MARK), text(cache_control=LONG_MARK))),
     messages(user(text(cache_control=LONG_MARK), text(cache_control=MARK)))),
    ("ANT-39", messages(user(text()), model(text(), thought(), use()), user(answer())),
     messages(user(text()), model(thought(), text(), thought(), use()), user(answer()))),
    ("ANT-40", messages(*ROUND, **MANUAL), messages(*THOUGHT_ROUND, **MANUAL)),
    ("ANT-40", messages(*ROUND, model(thought(), use("t2")), user(answer("t2")), **MANUAL),
     messages(*THOUGHT_ROUND, model(use("t2")), user(answer("t2")), **MANUAL)),
    ("ANT-40", messages(*THOUGHT_ROUND, model(text()), user(text()), model(use("t2")), user(answer("t2")),
                        **MANUAL),
     messages(*ROUND, model(text()), user(text()), model(thought(), use("t2")), user(answer("t2")),
              **MANUAL)),
    ("ANT-40", messages(*ROUND[:2], user(answer(), text()), **MANUAL),
     messages(*ROUND[:2], user(answer(), text()), thinking={"type": "adaptive"})),
    ("ANT-43", messages(user(text()), model(thought(""), text()), user(text())), OK),
    ("ANT-43", messages(user(text()), model(without(thought(), "signature"), text()), user(text())),
     messages(user(text()), model({**thought(), "thinking": ""}, text()), user(text()))),
    ("ANT-45", messages(user(text()), **MANUAL, model="claude-opus-5"),
     messages(user(text()), model="claude-opus-5", thinking={"type": "adaptive"})),
    ("ANT-46", messages(user(text()), model="claude-haiku-4-5", thinking={"type": "adaptive"}),
     messages(user(text()), model="claude-sonnet-4-6", thinking={"type": "adaptive"})),
    ("ANT-47", messages(user(text()), model="claude-opus-5-5", thinking={"type": "disabled"}),
     messages(user(text()), model="claude-sonnet-5-5", thinking={"type": "between_tools"})),
    ("ANT-48", messages(user(text()), model="claude-opus-5-5", tools=READ, tool_choice={"type": "any"}),
     messages(user(text()), model="claude-opus-5-5", tools=READ, tool_choice={"type": "auto"})),
    ("ANT-49", messages(user(text()), model="claude-opus-4-6", output_config={"effort": "xhigh"}),
     messages(user(text()), model="claude-opus-4-7", output_config={"effort": "xhigh"})),
    ("ANT-56", messages(user(text()), model="claude-opus-4-7", temperature=0.2),
     messages(user(text()), model="claude-opus-4-6", temperature=0.2)),
    ("ANT-48", messages(user(text()), **MANUAL, tools=READ, tool_choice={"type": "any"}),
     messages(user(text()), **MANUAL, tools=READ, tool_choice={"type": "auto"})),
    ("ALL-02", messages(user(text()), **{**MANUAL, "max_tokens": 1024}), messages(user(text()), **MANUAL)),
    ("ALL-02", messages(user(text()), **{**MANUAL, "thinking": {"type": "enabled", "budget_tokens": 9}}), OK),
    ("ALL-02", messages(user(text()), tools=READ, tool_choice="auto"), OK),
    ("ALL-14", messages(user(text()), tool_choice={"type": "none"}),
     messages(user(text()), tools=READ, tool_choice={"type": "none"})),
    ("ALL-14", messages(user(text()), tools=READ, tool_choice={"type": "tool", "name": "write"}),
     messages(user(text()), tools=READ, tool_choice={"type": "tool", "name": "read"})),
    ("ALL-02", without(OK, "max_tokens"), OK),
    ("ALL-02", {**OK, "max_tokens": 0}, {**OK, "max_tokens": 1}),
    ("ALL-02", without(OK, "model"), OK),
    ("ALL-02", messages(1, user(text())), OK),
    ("ALL-02", messages(say("system"), user(text())), OK),
    ("ALL-02", messages(say("user", None)), OK),
    ("ALL-02", messages(user("hi")), OK),
    ("ALL-02", messages(user(text(None))), OK),
    ("ALL-02", messages(user(text(cache_control={}))), OK),
    ("ALL-02", messages(*ROUND[:2], user(answer(is_error="no"))), FULL),
    ("ALL-02", messages(*ROUND[:2], user(answer(content=None))), FULL),
    ("ALL-02", messages(user({"type": "image", "source": {}})), OK),
    ("ALL-02", messages(user({"type": "image", "source": {**IMAGE, "data": ""}})), OK),
    ("ALL-02", messages(user(text()), model({**thought(), "thinking": None}, text()), user(text())), OK),
    ("ALL-02", messages(user(text()), model({"type": "redacted_thinking", "data": ""}, text()), user(text())),
     messages(user(text()), model({"type": "redacted_thinking", "data": "x"}, text()), user(text()))),
    ("ALL-02", messages(user(text()), tools=[{"name": "read"}]),
     messages(user(text()), tools=[messages_tool()])),
    ("ALL-02", messages(user(text()), tools=[{"name": "read", "input_schema": {"type": "object", "oneOf": []}}]),
        messages(user(text()), tools=[{"name": "read", "input_schema": {"type": "object", "not": {}}}])),
    ("ALL-02", messages(user(text()), tools={}), messages(user(text()), tools=[])),
    ("ALL-02", messages(user(text()), tools=[1]), messages(user(text()), tools=[])),
    ("ALL-02", messages(user(text()), system=1), messages(user(text()), system="s")),
    ("ALL-02", messages(user(text()), system=[IMAGE]), messages(user(text()), system=[text()])),
]  # fmt: skip

ANTHROPIC_WITH_MORE = [
    Row("ALL-02", messages(*ROUND), messages(ROUND[0], model(thought(""), use()), ROUND[2]), COPY),
    Row("ANT-43", messages(ROUND[0], model(without(thought(), "signature"), use()), ROUND[2]),
        messages(ROUND[0], model(thought(), use()), ROUND[2]), COPY),
    Row("ANT-01", messages(*ROUND[:2]), FULL, ANTHROPIC, ("ANT-27",)),
    Row("ALL-02", messages(*ROUND[:2], user(answer(None))), FULL, ANTHROPIC, ("ANT-01",)),
    Row("ANT-04", messages(*ROUND[:2], model(text()), user(answer())), FULL, ANTHROPIC, ("ANT-26",)),
    Row("ANT-11", messages(*SERVER_ROUND, user(answer()), model(server_answer("srvtoolu_2")), user(text())),
        FULL,
        ANTHROPIC, ("ANT-10",)),
    Row("ANT-12", messages(*PAIR, user(answer("t1")), user(answer("t2"))), BOTH, ANTHROPIC, ("ANT-26",)),
    Row("ANT-23", messages(user(text()), model(text("hi "))), OK, ANTHROPIC, ("ANT-27",)),
    Row("ANT-31", json.dumps(messages(user(text(SURROGATE)))).encode(), OK, ANTHROPIC),
    Row("ANT-31", json.dumps(messages(user(text("\\" + SURROGATE + "x")))).encode(), OK, ANTHROPIC),
    Row("ANT-31", json.dumps(messages(user(text("\ude00")))).encode(), OK, ANTHROPIC),
    Row("ANT-33", messages(user(text("", cache_control=MARK))), OK, ANTHROPIC, ("ANT-20",)),
]  # fmt: skip

HOSTED = {**without(messages(user(text())), "model"), "anthropic_version": "bedrock-2023-05-31"}
CLOUDS = [
    Row("ANT-60", {**HOSTED, "anthropic_version": version}, HOSTED, PROFILES["bedrock_anthropic"])
    for version in (None, "2023-06-01", "vertex-2023-10-16")
]
ROWS = [*EVERYWHERE, *OPENAI, *(Row(*row, ANTHROPIC) for row in ANTHROPICS), *ANTHROPIC_WITH_MORE, *CLOUDS]
ROWS += [Row(*row) for row in converse_rows.ROWS]


def encoded(body: Json | bytes) -> bytes:
    return body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()


def named(index: int, row: Row) -> str:
    return f"{row.rule}-{index}"


IDS = [named(index, row) for index, row in enumerate(ROWS)]


@pytest.mark.requirement("PROMISE-1", "REQ-915-005", "REQ-915-013")
@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_broken_rule_is_found_and_no_other_is_blamed(row: Row) -> None:
    found = {fault.rule for fault in check(encoded(row.broken), row.dialect)}
    assert found == {row.rule, *row.also}


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_request_that_keeps_the_rules_has_no_fault(row: Row) -> None:
    assert [str(fault) for fault in check(encoded(row.sanitised), row.dialect)] == []


def test_every_rule_that_can_be_judged_has_a_request_that_breaks_it() -> None:
    judged = {rule.id for rule in RULES.values() if rule.is_judged}
    assert {row.rule for row in ROWS} == {
        rule for rule in judged if rule.startswith(("ALL", "OAC", "ANT", "BED"))
    }


@pytest.mark.requirement("REQ-915-040")
@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_fault_has_the_class_of_its_rule_and_one_short_line(row: Row) -> None:
    for fault in check(encoded(row.broken), row.dialect):
        assert fault.rule is not None
        assert type(fault) is FAULTS[RULES[fault.rule].fault_class]
        assert str(fault).endswith(f"({fault.rule})")
        assert "\n" not in str(fault)
        assert len(str(fault)) < 500


PLACES = [
    (chat(say("user"), TWO, result("c1")), OPENAI_CHAT, ("c2",), "messages[2]: no result for tool call 'c2'"),
    (chat(say("user"), calls(call(name="a b")), result()), OPENAI_CHAT, (), "messages[1].tool_calls[0].function"),
    (chat(*DONE["messages"], result()), OPENAI_CHAT, ("c1",), "messages[3]: a second result"),
    (chat(*DONE["messages"], say("user"), result()), OPENAI_CHAT, ("c1",), "messages[4]: a result for 'c1'"),
    (messages(*PAIR, user(answer("t2"))), ANTHROPIC, ("t1",), "messages[2]: no result for tool call 't1'"),
    (messages(*ROUND[:2], user(answer(), answer())), ANTHROPIC, ("t1",), "messages[2].content[1]: a second"),
    (messages(user(text()), 1, model(text()), user(text())), ANTHROPIC, (), "messages[1]: a message is"),
    (messages(user(text()), say("x"), model(text()), user(text())), ANTHROPIC, (), "messages[1]: role 'x'"),
]  # fmt: skip


@pytest.mark.requirement("REQ-915-040")
@pytest.mark.parametrize(("body", "dialect", "ids", "words"), PLACES)
def test_a_fault_names_the_place_and_the_calls(
    body: Json, dialect: Dialect, ids: tuple[str, ...], words: str
) -> None:
    (fault,) = check(encoded(body), dialect)
    assert fault.call_ids == ids
    assert str(fault).startswith(words)


def test_everything_an_openai_request_may_hold_is_accepted() -> None:
    part = {"type": "image_url", "image_url": {"url": "https://a.example/i.png"}}
    custom = {"id": "c3", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
    body = chat(
        say("system", "be brief"),
        say("developer", [text("more")]),
        say("user", [text(), part, FILE], name="bob"),
        say("assistant", "t", tool_calls=[call("c1", arguments=' {"p":1}'), call("c2"), custom]),
        {**result("c3"), "name": "sql"},
        result("c1", [text()]),
        result("c2", ""),
        say("assistant", [text(), {"type": "refusal", "refusal": "no"}]),
        say("assistant", None, refusal="no"),
        {"role": "assistant", "tool_calls": [call("c4")]},
        result("c4"),
        say("user"),
        say("user", "\U0001f600"),
        tools=[function_tool(strict=True), {"type": "custom", "custom": {"name": "sql"}}],
        tool_choice="none",
        stream=True,
        stream_options={"include_usage": True},
    )
    assert check(json.dumps(body).encode(), OPENAI_CHAT) == []  # ASCII: the pair of escapes is one character


def test_a_call_id_used_again_is_accepted_where_the_scope_is_one_message() -> None:
    assert check(encoded(chat(*DONE["messages"], calls(), result())), PER_MESSAGE) == []


def test_everything_an_anthropic_request_may_hold_is_accepted() -> None:
    image = {"type": "image", "source": IMAGE}
    document = {"type": "document", "source": {"type": "url", "url": "https://a.example/d.pdf"}}
    body = messages(
        say("user", "plain"),
        model(
            thought(),
            {"type": "redacted_thinking", "data": "x"},
            text("t", citations=None),
            use("t1"),
            use("t2"),
        ),
        user(
            answer("t2", [text(), image, document]),
            {"type": "tool_result", "tool_use_id": "t1"},
            text("go"),
            image,
        ),
        model(server_use(), server_answer(), text("found")),
        user(text("thanks", cache_control=LONG_MARK), document),
        system=[text("be brief", cache_control=LONG_MARK)],
        tools=[
            messages_tool(type="custom"),
            {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
        ],
        tool_choice={"type": "none"},
        thinking={"type": "adaptive"},
        temperature=None,
        stream=True,
    )
    assert [str(fault) for fault in check(encoded(body), ANTHROPIC)] == []
