"""What vendors of Chat Completions demand otherwise: one row a rule, broken and mended."""

from collections.abc import Sequence
from typing import Any

import pytest

from actors.core.check import check
from actors.core.data.record import replace
from actors.core.dialects.dialect import Dialect
from actors.core.dialects.profiles import OPENAI_CHAT, PROFILES, VLLM
from actors.core.rulebook import FAULTS, RULES
from tests.core.test_check import Json, Row, call, chat, encoded, function_tool, result, say, text

MISTRAL, KIMI, DEEPSEEK = PROFILES["mistral"], PROFILES["kimi"], PROFILES["deepseek"]
ROUTER, OLLAMA, QWEN = (PROFILES[name] for name in ("openrouter", "ollama", "qwen"))
ONE_CALL = replace(VLLM, turns=replace(VLLM.turns, calls_together=False))

A, B = "aaaaaaaaa", "bbbbbbbbb"
USER = say("user")
STRING = {"type": "string"}
CUSTOM = {"type": "custom", "custom": {"name": "sql"}}
IMAGE = {"type": "image_url", "image_url": {"url": "https://a.example/i.png"}}
INLINE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}


def thinking(words: str = "hm") -> Json:
    return {"type": "thinking", "thinking": [{"type": "text", "text": words}]}


def asked(*made: Json, **more: Any) -> Json:  # Any: whatever the row wants to try
    return {"role": "assistant", "tool_calls": list(made), **more}


def thought(*made: Json, words: Any = "hm") -> Json:  # Any: likewise
    return asked(*(made or [call()]), reasoning_content=words)


def typed(required: Sequence[str] = (), **properties: Any) -> Json:  # Any: what no schema is, too
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return function_tool(parameters=parameters)


HI = chat(USER)
M_ROUND = (USER, asked(call(A)), result(A))
M_DONE = chat(*M_ROUND)
K_DONE = chat(USER, thought(), result())
FORCED = {"tools": [function_tool()], "tool_choice": "required"}
FREE = {"tools": [function_tool()], "tool_choice": "auto"}

MISTRALS: list[tuple[Any, ...]] = [
    ("MIS-01", chat(USER, asked(call("call_abc123")), result("call_abc123")), M_DONE),
    ("MIS-01", chat(USER, asked(call("aaaa-aaaa")), result("aaaa-aaaa")), M_DONE),
    ("MIS-02", chat(USER, asked(call(A), call(B)), result(A)), M_DONE),
    ("MIS-02", chat(USER, asked(call(A)), USER), M_DONE),
    ("MIS-03", chat(*M_ROUND, result(A)), M_DONE),
    ("MIS-04", chat(USER, asked(call(A), call(A)), result(A)), M_DONE),
    ("MIS-05", chat(USER, result(A)), M_DONE),
    ("MIS-05", chat(result(A)), M_DONE),
    ("MIS-06", chat(USER, say("assistant"), result(A)), M_DONE),
    ("MIS-07", chat(USER, asked(call(A), call(B)), result(A), result("ccccccccc"), result(B)), M_DONE),
    ("MIS-07", chat(*M_ROUND, result(B)), M_DONE),
    ("MIS-10", chat(USER, say("assistant")), HI),
    ("MIS-11", chat(USER, say("assistant", prefix=True), USER), chat(USER, say("assistant", prefix=False), USER)),
    ("MIS-12", chat(*M_ROUND, say("system"), say("assistant"), USER), chat(say("system"), *M_ROUND)),
    ("MIS-12", chat(USER, say("assistant"), say("system"), USER), chat(say("system"), USER)),
    ("MIS-17", chat(USER, {"role": "assistant", "tool_calls": []}, USER),
     chat(USER, say("assistant", "x", tool_calls=[]), USER)),
    ("ALL-02", chat(USER, asked({"id": A, "type": "custom", "custom": {"name": "sql", "input": "x"}}), result(A)),
     M_DONE),
    ("ALL-02", chat(USER, tools=[CUSTOM]), chat(USER, tools=[function_tool()])),
    ("MIS-13", chat(), HI),
    ("MIS-13", chat(say("assistant"), USER), HI),
    ("MIS-14", chat(USER, asked(call(A, "a.b")), result(A)), M_DONE),
    ("MIS-14", chat(USER, tools=[function_tool("a.b")]), HI),
    ("MIS-15", chat(USER, asked(call(A)), {"role": "tool", "content": "ok"}), M_DONE, ("MIS-02",)),
    ("MIS-16", chat(USER, asked(call(None)), USER), HI),
    ("MIS-17", chat(USER, {"role": "assistant"}, USER), HI),
    ("MIS-18", chat(USER, asked(call(A)), result(A, [IMAGE])), M_DONE),
    ("MIS-19", chat(USER, say("assistant", reasoning_content="hm"), USER), HI),
    ("MIS-21", chat(*M_ROUND, USER), chat(*M_ROUND, say("assistant", "(Noted.)"), USER)),
    ("MIS-23", chat(USER, say("assistant", [text(), thinking()]), USER),
     chat(USER, say("assistant", [thinking(), thinking(), text()]), USER)),
    ("MIS-32", chat(USER, tools=[]), chat(USER, tools=[function_tool()])),
    ("MIS-32", chat(USER, stream=True, stream_options={"include_usage": True}), chat(USER, stream=True)),
    ("MIS-32", chat(say("user", name="bob")), chat(USER, asked(call(A)), {**result(A), "name": "read"})),
    ("MIS-32", chat(USER, asked({**call(A), "name": "read"}), result(A)), M_DONE),
    ("MIS-32", chat(USER, max_completion_tokens=9), chat(USER, max_tokens=9)),
    ("OAC-06", chat(say("developer"), USER), chat(say("system"), USER)),
    ("ALL-02", chat(USER, say("assistant", [{"type": "thinking", "thinking": "hm"}]), USER), HI),
]  # fmt: skip

KIMIS: list[tuple[Any, ...]] = [
    ("KIM-01", chat(USER, thought(), USER), K_DONE),
    ("KIM-02", chat(USER, result()), K_DONE),
    ("KIM-02", chat(USER, thought(), result(), result()), K_DONE),
    ("KIM-03", chat(USER, asked(call()), result()), K_DONE),
    ("KIM-03", chat(USER, thought(words=""), result()), K_DONE),
    ("KIM-03", chat(USER, thought(words=None), result()), K_DONE),
    ("KIM-04", chat(USER, {"role": "assistant"}, USER), HI),
    ("KIM-04", chat(USER, say("assistant", ""), USER), HI),
    ("KIM-04", chat(USER, {"role": "assistant", "reasoning_content": "hm"}, USER), HI),
    ("KIM-05", chat(USER, {**thought(), "content": [text("")]}, result()),
     chat(USER, {**thought(), "content": [text()]}, result())),
    ("KIM-06", chat(USER, thought(call(name="1st")), result()), K_DONE),
    ("KIM-06", chat(USER, tools=[function_tool("_x")]), HI),
    ("KIM-07", chat(USER, tools=[typed(x={"enum": ["a"]})]), chat(USER, tools=[typed(x={"type": "string"})])),
    ("KIM-07", chat(USER, tools=[typed(x={"type": "array", "items": {"$ref": "#/definitions/X"}})]),
     chat(USER, tools=[typed(x={"type": "array", "items": {"$ref": "#/$defs/X"}})])),
    ("KIM-07", chat(USER, tools=[typed(x=True)]), HI),
    ("KIM-07", chat(USER, tools=[typed(x={"type": "string", "anyOf": [STRING]})]),
     chat(USER, tools=[typed(x={"anyOf": [STRING]})])),
    ("KIM-07", chat(USER, tools=[typed(x={"anyOf": [{"minLength": 1}]})]),
     chat(USER, tools=[typed(x={"anyOf": [{"minLength": 1, **STRING}]})])),
    ("KIM-07", chat(USER, tools=[typed(x={"type": "string", "$ref": "#/$defs/X"})]),
     chat(USER, tools=[typed(x={"$ref": "#/$defs/X"})])),
    ("KIM-07", chat(USER, tools=[typed(x={"type": "array", "items": [STRING]})]),
     chat(USER, tools=[typed(x={"type": "array", "items": STRING})])),
    ("KIM-07", chat(USER, tools=[typed(x={"type": "array", "items": {}})]),
     chat(USER, tools=[typed(x={"type": "array", "prefixItems": [STRING]})])),
    ("KIM-07", chat(USER, tools=[typed(x={"type": "object", "additionalProperties": {}})]),
     chat(USER, tools=[typed(x={"type": "object", "additionalProperties": False})])),
    ("KIM-07", chat(USER, tools=[typed(x={"type": "object", "patternProperties": {"^a": {"$ref": "#/a"}}})]),
     chat(USER, tools=[typed(x={"type": "object", "patternProperties": {"^a": STRING}})])),
    ("KIM-07", chat(USER, tools=[typed(["y"], x=STRING)]), chat(USER, tools=[typed(["x"], x=STRING)])),
    ("KIM-08", chat(USER, tools=[CUSTOM]), chat(USER, tools=[function_tool()])),
    ("KIM-09", chat(USER, model="kimi-k3", temperature=0.2), chat(USER, model="kimi-k3", temperature=1)),
    ("KIM-10", chat(USER, **FORCED), chat(USER, **FREE)),
    ("KIM-10", chat(USER, **FORCED, thinking={"type": "disabled"}), chat(USER, thinking={"type": "enabled"})),
    ("KIM-11", chat(), HI),
    ("ALL-02", chat(USER, thought(words=[1]), result()), K_DONE),
]  # fmt: skip

DEEPSEEKS: list[tuple[Any, ...]] = [
    ("DSK-01", chat(USER, result()), K_DONE),
    ("DSK-01", chat(USER, thought(), result(), result()), K_DONE),
    ("DSK-02", chat(USER, thought(), USER), K_DONE),
    ("DSK-03", chat(USER, thought(call("c1"), call("c2")), result("c1"), result("c9"), result("c2")), K_DONE),
    ("DSK-04", chat(USER, thought(), {"role": "tool", "content": "ok"}), K_DONE, ("DSK-02",)),
    ("DSK-05", chat(USER, asked(call()), result()), K_DONE),
    ("DSK-08", chat(USER, **FORCED), chat(USER, **FORCED, thinking={"type": "disabled"})),
    ("ALL-10", chat(say("user", [IMAGE])), HI),
]  # fmt: skip


def patterned(pattern: str) -> Json:
    """Return a tool with a pattern deep in its schema."""
    inner = {"anyOf": [{"type": "string", "pattern": pattern}, {"type": "null"}]}
    parameters = {"type": "object", "properties": {"a": {"type": "array", "items": inner}}}
    return {"type": "function", "function": {"name": "read", "parameters": parameters}}


OTHERS = [
    Row("CMP-01", chat(USER, USER), chat(USER, say("assistant"), USER), VLLM),
    Row("CMP-01", chat(USER, say("assistant"), say("assistant"), USER), HI, VLLM),
    Row("CMP-01", chat(USER, asked(call()), result(), USER), HI, ROUTER),
    Row("CMP-02", chat(USER, asked(call("c1"), call("c2")), result("c1"), result("c2")),
        chat(USER, asked(call("c1")), result("c1"), asked(call("c2")), result("c2")),
        ONE_CALL),
    *(
        Row("CMP-03", chat(USER, tools=[patterned(around)]), chat(USER, tools=[patterned(r"^\(?!\d(?:a|b)$")]), VLLM)
        for around in (r"^(?!a)b$", r"a(?=b)", r"(?<=a)b", r"(?<!a)b", r"(?<name>a)", r"(?i)a")
    ),
    Row("ALL-07", chat(USER, say("assistant", reasoning_content="hm"), USER), HI, ROUTER),
    Row("ALL-02", chat(USER, say("assistant", reasoning_details="hm"), USER),
        chat(USER, say("assistant", reasoning_details=[{"type": "reasoning.text"}]), USER), ROUTER),
    Row("ALL-10", chat(say("user", [IMAGE])), chat(say("user", [INLINE])), OLLAMA),
    Row("OAC-10", chat(USER, tools=[function_tool("search")]), chat(USER, tools=[function_tool("searches")]), QWEN),
    *(Row("OAC-06", chat(say("developer"), USER), chat(say("system"), USER), PROFILES[name])
      for name in ("kimi", "deepseek", "qwen", "glm")),
    Row("OAC-12", chat(USER, reasoning={"effort": "low"}), HI, PROFILES["xai"]),
    Row("OAC-08", chat(USER, say("assistant", [thinking()]), USER), HI, OPENAI_CHAT),


    Row("ALL-02", chat(USER, say("assistant", "x", tool_calls=[]), USER), HI),
    Row("OAC-03", chat(USER, asked(call("c" * 65)), result("c" * 65), say("assistant"), USER),
        chat(USER, asked(call("c" * 50)), result("c" * 50), say("assistant"), USER), ROUTER),
]  # fmt: skip


def _rows(rows: list[tuple[Any, ...]], dialect: Dialect) -> list[Row]:  # Any: rule, broken, mended, also
    return [Row(rule, broken, sanitised, dialect, *also) for rule, broken, sanitised, *also in rows]


ROWS = [*_rows(MISTRALS, MISTRAL), *_rows(KIMIS, KIMI), *_rows(DEEPSEEKS, DEEPSEEK), *OTHERS]
IDS = [f"{row.dialect.name}-{row.rule}-{index}" for index, row in enumerate(ROWS)]


@pytest.mark.requirement("PROMISE-1", "REQ-915-005", "REQ-915-013")
@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_broken_rule_of_a_vendor_is_found_and_no_other_is_blamed(row: Row) -> None:
    found = check(encoded(row.broken), row.dialect)
    assert {fault.rule for fault in found} == {row.rule, *row.also}
    for fault in found:
        assert fault.rule is not None
        assert type(fault) is FAULTS[RULES[fault.rule].fault_class]
        assert str(fault).endswith(f"({fault.rule})")


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_request_that_keeps_the_vendors_rules_has_no_fault(row: Row) -> None:
    assert [str(fault) for fault in check(encoded(row.sanitised), row.dialect)] == []


def test_every_rule_of_a_vendor_that_can_be_judged_has_a_request_that_breaks_it() -> None:
    judged = {
        rule.id
        for rule in RULES.values()
        if rule.is_judged and rule.id.startswith(("MIS", "KIM", "DSK", "CMP"))
    }
    assert judged <= {row.rule for row in ROWS}


@pytest.mark.parametrize("dialect", [MISTRAL, DEEPSEEK], ids=lambda dialect: dialect.name)
def test_an_id_of_an_earlier_turn_may_come_again_where_the_scope_is_one_message(dialect: Dialect) -> None:
    words = {"reasoning_content": "hm"} if dialect is DEEPSEEK else {}
    turn = (asked(call(A), **words), result(A))
    assert check(encoded(chat(USER, *turn, *turn)), dialect) == []
