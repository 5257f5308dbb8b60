"""The judge of generateContent finds each broken rule, and says nothing about a request that keeps them all.

One row a rule: the smallest request that breaks it, beside the same request mended.
"""

import json
from dataclasses import dataclass
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.core.check import check, extend, finish, start
from actors.core.data.record import replace
from actors.core.dialects.dialect import Dialect
from actors.core.dialects.profiles import GEMINI, GEMINI_2, VERTEX
from actors.core.rulebook import FAULTS, RULES
from tests.core.session_log import examples

Json: TypeAlias = dict[str, Any]  # Any: wire bodies are built by hand, broken ones on purpose

ONE_IMAGE = replace(GEMINI, media=replace(GEMINI.media, max_count=1))
SIGNATURE = "c2lnbmF0dXJl"


def user(*parts: Any) -> Json:  # Any: whatever the row wants to try
    return {"role": "user", "parts": [text(part) if isinstance(part, str) else part for part in parts]}


def model(*parts: Any) -> Json:  # Any: likewise
    return {**user(*parts), "role": "model"}


def text(words: Any, **more: Any) -> Json:  # Any: likewise
    return {"text": words, **more}


def call(
    name: Any = "read", args: Any = None, *, signature: Any = SIGNATURE, **more: Any
) -> Json:  # Any: likewise
    part = {"functionCall": {"name": name, "args": {} if args is None else args, **more}}
    return part if signature is None else {**part, "thoughtSignature": signature}


def plain(name: str = "read", **more: Any) -> Json:  # Any: likewise
    return call(name, signature=None, **more)


def result(name: Any = "read", response: Any = None, **more: Any) -> Json:  # Any: likewise
    said = {"output": "ok"} if response is None else response
    return {"functionResponse": {"name": name, "response": said, **more}}


def body(*contents: Any, **top: Any) -> Json:  # Any: likewise
    return {"contents": list(contents), **top}


def tools(*declared: Json) -> list[Json]:
    return [{"functionDeclarations": list(declared or [{"name": "read"}])}]


def calling(mode: str = "ANY", **more: Any) -> Json:  # Any: likewise
    return {"functionCallingConfig": {"mode": mode, **more}}


@dataclass(frozen=True)
class Row:
    """A rule, what breaks it, and what mends that."""

    rule: str
    broken: Json
    sanitised: Json
    dialect: Dialect = GEMINI
    also: tuple[str, ...] = ()


U, GO = user("u"), user("go")
BATCH = model(call(), plain("run"))
ANSWERED = user(result(), result("run"))
GOOD = body(U, BATCH, ANSWERED, model("said"), GO)
IMAGE = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
CALLED = model(call())


def seen(*parts: Any) -> Json:  # Any: likewise
    """A response with these parts beside its words."""
    return body(U, CALLED, user(result(parts=list(parts))))


ROWS = (
    Row("GEM-01", body(U, BATCH, user(result())), body(U, BATCH, ANSWERED)),
    Row("GEM-01", body(U, BATCH, user("go")), body(U, BATCH, user(result(), result("run"), "go"))),
    Row("GEM-01", body(U, BATCH, user(result(), result("run"), result())), body(U, BATCH, ANSWERED)),
    Row("GEM-01", body(U, model(call())), body(U, model(call()), user(result())), also=("ALL-05",)),
    Row(
        "GEM-02",
        body(model(call()), user(result())),
        body(U, model(call()), user(result())),
        also=("ALL-09",),
    ),
    Row("GEM-03", body(user(result(), "go")), GOOD),
    Row("GEM-03", body(U, model("t"), user(result())), GOOD),
    Row("GEM-03", body(U, model(call()), user("so", result())), body(U, model(call()), user(result(), "so"))),
    Row("GEM-03", body(U, BATCH, user(result()), user(result("run"))), GOOD, also=("GEM-01", "GEM-18")),
    Row("GEM-04", body(U, model(plain()), user(result())), body(U, model(call()), user(result()))),
    Row("GEM-04", body(U, model(plain(), call("run")), ANSWERED), body(U, BATCH, ANSWERED)),
    Row("GEM-04", body(U, model(plain()), user(result())), body(U, model(call()), user(result())), VERTEX),
    Row("GEM-06", body(U, model(call(signature="not base64!")), user(result())), GOOD),
    Row("GEM-07", body(), GOOD),
    Row("GEM-08", body(U, {"role": "assistant", "parts": [text("t")]}), GOOD),
    Row("GEM-08", body({"role": "system", "parts": [text("t")]}, U), GOOD),
    Row("GEM-09", body(U, model(call(id="a")), user(result())), GOOD, VERTEX),
    Row("GEM-09", body(U, model(call()), user(result(id="a"))), GOOD, VERTEX),
    Row("GEM-10", body(U, model(call(type="function")), user(result())), GOOD),
    Row("GEM-10", body(user(text("u", cacheControl={}))), GOOD),
    Row("GEM-10", body(U, messages=[]), GOOD),
    Row(
        "GEM-10",
        body(
            U, tools=tools({"name": "read", "parameters": {"type": "OBJECT", "additionalProperties": False}})
        ),
        body(U, tools=tools({"name": "read", "parametersJsonSchema": {"additionalProperties": False}})),
    ),
    Row(
        "GEM-10",
        body(U, generationConfig={"max_tokens": 5}),
        body(U, generationConfig={"maxOutputTokens": 5}),
    ),
    Row("GEM-11", body(U, model(), GO), GOOD),
    Row("GEM-11", body(user({})), body(user(""))),
    Row("GEM-11", body(user({**text("u"), **IMAGE})), body(user("u", IMAGE))),
    Row("GEM-11", body(U, model({**text("t"), **call()}), GO), GOOD),
    Row("GEM-16", body(U, BATCH, user(result("run"), result())), body(U, BATCH, ANSWERED)),
    Row(
        "GEM-16",
        body(U, model(call(id="a")), user(result(id="b"))),
        body(U, model(call(id="a")), user(result())),
    ),
    Row("GEM-17", body(U, model(call("1st")), user(result("1st"))), GOOD),
    Row("GEM-17", body(U, tools=tools({"name": "a b"})), body(U, tools=tools({"name": "a_b"}))),
    Row("GEM-18", body(U, GO), body(user("u", "go"))),
    Row("ALL-02", body(U, {"role": "model", "parts": "t"}, GO), GOOD),
    Row("ALL-02", body(U, BATCH, user(result(response="text"), result("run"))), GOOD),
    Row("ALL-02", body(U, systemInstruction="s"), body(U, systemInstruction={"parts": [text("s")]})),
    Row(
        "ALL-02",
        body(U, generationConfig={"thinkingConfig": {"thinkingBudget": 1, "thinkingLevel": "LOW"}}),
        body(U, generationConfig={"thinkingConfig": {"thinkingLevel": "LOW"}}),
    ),
    Row("ALL-03", body(U, model(call(id="a b")), user(result(id="a b"))), GOOD),
    Row(
        "ALL-04",
        body(U, model(call(id="a"), plain(id="a")), user(result(id="a"), result(id="a"))),
        body(U, model(call(id="a"), plain(id="b")), user(result(id="a"), result(id="b"))),
    ),
    Row("ALL-05", body(U, model("t")), body(U, model("t"), GO)),
    Row("ALL-06", body(U, model(call(args="{}")), user(result())), GOOD),
    Row("ALL-08", body(user(text("u", thoughtSignature=SIGNATURE))), GOOD),
    Row("ALL-08", body(U, model(text("t", thought=True)), GO), body(U, model("t"), GO)),
    Row("ALL-08", body(user("u", plain())), GOOD),
    Row("ALL-08", body(U, model(result()), GO), GOOD),
    Row("ALL-09", body(model("t"), GO), body(U, model("t"), GO)),
    Row("ALL-10", body(user({"inlineData": {"mimeType": "audio/wav", "data": "aGk="}})), body(user(IMAGE))),
    Row("ALL-10", body(user({"fileData": {"fileUri": "https://x.example/a.png"}})), body(user(IMAGE))),
    Row("ALL-15", body(user(IMAGE, IMAGE)), body(user(IMAGE)), ONE_IMAGE),
    Row("ALL-10", seen(IMAGE), body(U, CALLED, user(result(), IMAGE)), GEMINI_2),
    Row("ALL-10", seen({"inlineData": {**IMAGE["inlineData"], "mimeType": "application/pdf"}}), seen(IMAGE)),
    Row("ALL-02", seen(), seen(IMAGE)),
    Row("ALL-02", seen({"inlineData": {"mimeType": "image/png", "data": ""}}), seen(IMAGE)),
    Row("GEM-10", seen({"text": "t"}), seen(IMAGE, IMAGE)),
    Row("ALL-13", body(U, tools=tools({"name": "a"}, {"name": "a"})), body(U, tools=tools({"name": "a"}))),
    Row("ALL-14", body(U, toolConfig=calling()), body(U, tools=tools(), toolConfig=calling())),
    Row(
        "ALL-14",
        body(U, tools=tools(), toolConfig=calling(allowedFunctionNames=["x"])),
        body(U, tools=tools(), toolConfig=calling(allowedFunctionNames=["read"])),
    ),
)
IDS = [f"{row.rule}-{index}" for index, row in enumerate(ROWS)]


def faults(value: Json, dialect: Dialect = GEMINI) -> list[Any]:  # Any: faults of several classes
    return list(check(json.dumps(value).encode(), dialect))


@pytest.mark.requirement("PROMISE-1", "REQ-915-005", "REQ-915-013")
@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_broken_rule_is_found_and_no_other_is_blamed(row: Row) -> None:
    assert {fault.rule for fault in faults(row.broken, row.dialect)} == {row.rule, *row.also}


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_request_that_keeps_the_rules_has_no_fault(row: Row) -> None:
    assert [str(fault) for fault in faults(row.sanitised, row.dialect)] == []


def test_every_rule_that_can_be_judged_has_a_request_that_breaks_it() -> None:
    judged = {rule.id for rule in RULES.values() if rule.is_judged and rule.id.startswith("GEM-")}
    assert judged <= {row.rule for row in ROWS}


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_fault_has_the_class_of_its_rule_and_one_short_line(row: Row) -> None:
    for fault in faults(row.broken, row.dialect):
        assert type(fault) is FAULTS[RULES[fault.rule].fault_class]
        assert str(fault).endswith(f"({fault.rule})")
        assert "\n" not in str(fault)
        assert len(str(fault)) < 500


def test_before_generation_three_a_first_call_needs_no_signature() -> None:
    assert faults(body(U, model(plain()), user(result())), GEMINI_2) == []


SNAKE = {
    "contents": [
        U,
        {"role": "model", "parts": [{"function_call": {"name": "read", "args": {"a_b": 1}},
                                     "thought_signature": SIGNATURE}]},
        {"role": "user", "parts": [{"function_response": {"name": "read", "response": {"a_b": 1}}},
                                   {"inline_data": {"mime_type": "image/png", "data": "aGk="}}]},
    ],
    "system_instruction": {"parts": [text("s")]},
    "tools": [{"function_declarations": [{"name": "read", "parameters_json_schema": {"type": "object"}}]},
              {"google_search": {}}],
    "tool_config": {"function_calling_config": {"mode": "any", "allowed_function_names": ["read"]}},
    "generation_config": {"max_output_tokens": 5, "thinking_config": {"thinking_level": "low"}},
}  # fmt: skip
MODES = ["AUTO", "any", "MODE_UNSPECIFIED", "validated"]


def test_keys_are_taken_in_the_spelling_of_the_schema_too() -> None:
    assert [str(fault) for fault in faults(SNAKE)] == []
    spoilt = json.loads(json.dumps(SNAKE).replace("thought_signature", "signature_of_thought"))
    assert {fault.rule for fault in faults(spoilt)} == {"GEM-10", "GEM-04"}


@pytest.mark.parametrize("mode", MODES)
def test_words_of_an_enumeration_are_taken_in_capitals_or_not(mode: str) -> None:
    assert faults(body(U, tools=tools(), toolConfig=calling(mode))) == []


@pytest.mark.parametrize("mode", ["never", 1, None])
def test_a_word_that_no_enumeration_has_is_refused(mode: Any) -> None:  # Any: what is no word, too
    assert [fault.rule for fault in faults(body(U, tools=tools(), toolConfig=calling(mode)))] == ["ALL-02"]


def test_a_key_in_both_spellings_is_refused() -> None:
    twice = {"functionCall": {"name": "read", "args": {}}, "function_call": {"name": "read", "args": {}}}
    signed = {**twice, "thoughtSignature": SIGNATURE}
    assert [fault.rule for fault in faults(body(U, model(signed), user(result())))] == ["GEM-10"]


def test_the_providers_own_tools_and_what_they_said_are_accepted() -> None:
    own = [{"executableCode": {"code": "1"}}, {"codeExecutionResult": {"output": "1"}}]
    assert faults(body(U, model(*own), GO, tools=[{"codeExecution": {}}, {"googleSearch": {}}])) == []
    assert [fault.rule for fault in faults(body(user(*own)))] == ["ALL-08", "ALL-08"]


PARTS = st.sampled_from(
    [
        text("t"),
        text(""),
        call(),
        plain(),
        plain("run"),
        text("", thoughtSignature=SIGNATURE),
        call(id="a"),
        result(),
        result("run"),
        result(id="a"),
        IMAGE,
    ]
)
CONTENTS = st.lists(
    st.builds(
        lambda role, parts: {"role": role, "parts": parts},
        st.sampled_from(["user", "model"]),
        st.lists(PARTS, max_size=4),
    ),
    max_size=6,
)


@examples(300)
@given(contents=CONTENTS, data=st.data(), dialect=st.sampled_from([GEMINI, VERTEX, GEMINI_2]))
def test_in_pieces_or_whole_the_judge_says_the_same(
    contents: list[Json], data: st.DataObject, dialect: Dialect
) -> None:
    state, found = start(dialect), []
    for fragment in _fragments(contents, data):
        state, new = extend(state, fragment.encode())
        found += new
    found += finish(state)
    assert [str(fault) for fault in found] == [str(fault) for fault in faults(body(*contents), dialect)]
    assert [str(fault) for fault in finish(state)] == [str(fault) for fault in finish(state)]


def _fragments(contents: list[Json], data: st.DataObject) -> list[str]:
    """The contents in fragments, each content left open at its parts."""
    pieces: list[str] = []
    for content in contents:
        opening = ("]}," if pieces else "") + json.dumps({**content, "parts": []})[:-2]
        first, *rest = [json.dumps(part) for part in content["parts"]] or [""]
        pieces += [opening + first, *("," + part for part in rest)]
    fragments: list[str] = []
    for piece in pieces:
        if not fragments or data.draw(st.booleans()):
            fragments.append(piece)
        else:
            fragments[-1] += piece
    return fragments


FULL = body(
    U,
    model(text("t", thoughtSignature=SIGNATURE), call(id="a")),
    user(result(id="a"), IMAGE),
    tools=tools({"name": "read", "parameters": {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}}),
    toolConfig=calling(),
    systemInstruction={"parts": [text("s")]},
    generationConfig={"maxOutputTokens": 5, "thinkingConfig": {"includeThoughts": True}},
)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "user", "model", "read", "\n"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["name", "text", "parts"]), inner)
    ),
    max_leaves=5,
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:  # Any: JSON and its keys
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] * bool(path) + [place for key, item in inner for place in _places(item, (*path, key))]


@examples(300)
@given(data=st.data(), new=ANY_JSON)
def test_any_json_anywhere_in_a_request_is_judged_without_an_exception(
    data: st.DataObject, new: Any
) -> None:  # Any: JSON
    *way, last = data.draw(st.sampled_from(_places(FULL)))
    spoilt = json.loads(json.dumps(FULL))
    at = spoilt
    for key in way:
        at = at[key]
    at[last] = new
    assert all(len(str(fault)) < 1000 for fault in faults(spoilt))
    assert faults(FULL) == []
