"""Each rule of the strict generateContent server refuses its fault in the provider's words, and nothing next to it."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from actors.strict.rules import GEMINI_RULES, GeminiProfile, GeminiSettings, validate
from actors.strict.rules.gemini_signatures import sign
from tests.strict.cases_answers import shown

Json = dict[str, Any]  # a body under test may be anything

HOST = GeminiSettings(model="gemini-test")
VERTEX = GeminiSettings(model="gemini-test", vertex=True)
OTHERS = (
    GeminiSettings(model="gemini-other"),
    GeminiSettings(model="gemini-test", account="account-2"),
    GeminiSettings(model="gemini-test", vertex=True),
    GeminiSettings(model="gemini-test", secret=b"another"),
)
SENTINEL = "skip_thought_signature_validator"
UNKNOWN = "Invalid JSON payload received. Unknown name {name}: Cannot find field."


def text(words: str, **more: Any) -> Json:  # any key at all may be under test
    return {"text": words, **more}


def user(*parts: Json | str) -> Json:
    return {"role": "user", "parts": [text(part) if isinstance(part, str) else part for part in parts]}


def model(*parts: Json | str) -> Json:
    return {**user(*parts), "role": "model"}


def call(name: str = "read", signature: str | None = SENTINEL, **more: Any) -> Json:  # likewise
    part: Json = {"functionCall": {"name": name, "args": {}, **more}}
    return part if signature is None else {**part, "thoughtSignature": signature}


def result(name: str = "read", **more: Any) -> Json:  # likewise
    return {"functionResponse": {"name": name, "response": {"output": "ok"}, **more}}


def body(*contents: Any, **top: Any) -> Json:  # likewise
    return {"contents": list(contents), **top}


def signed(settings: GeminiSettings = HOST, **more: Any) -> Json:  # likewise
    part = call(signature=None, **more)
    return {**part, "thoughtSignature": sign(part, settings)}


def choosing(mode: str, *names: str) -> Json:
    config = {"functionCallingConfig": {"mode": mode, "allowedFunctionNames": list(names)}}
    return body(user("u"), tools=DECLARED, toolConfig=config)


@dataclass(frozen=True)
class Case:
    """A body that breaks a rule, and what the provider says to it."""

    rule: str
    body: Json | bytes
    message: str
    settings: GeminiSettings = HOST
    hosted: bool = True
    """Whether the official host refuses it too."""


U, GO = user("u"), user("go")
DECLARED = [{"functionDeclarations": [{"name": "read"}]}]
NUMBER = (
    "Please ensure that the number of function response parts is equal to the number of function call parts"
)
CASES = (
    Case("GEM-01", body(U, model(call(), call(signature=None)), user(result())), NUMBER),
    Case("GEM-01", body(U, model(call()), GO), NUMBER),
    Case("GEM-01", body(U, model(call())), NUMBER),
    Case(
        "GEM-02",
        body(model(call()), user(result())),
        "Please ensure that function call turn comes immediately",
    ),
    Case("GEM-03", body(user(result())), "Please ensure that function response turn comes immediately after"),
    Case("GEM-03", body(U, model(call()), user("so", result())), "Please ensure that function response turn"),
    Case(
        "GEM-04",
        body(U, model(call("run", None)), user(result("run"))),
        "Additional data, function call `default_api:run` , position 2. Please refer to",
    ),
    Case(
        "GEM-04",
        body(U, model(call("run", None)), user(result("run")), model("done"), GO),
        "function call `default_api:run` , position 2.",
        hosted=False,
    ),
    *(Case("GEM-05", body(U, model(signed(other)), user(result())), "Corrupted thought") for other in OTHERS),
    Case(
        "GEM-05",
        body(U, model({**call(args={"a": 1}), "thoughtSignature": sign(call(), HOST)}), user(result())),
        "Corrupted thought signature.",
    ),
    Case(
        "GEM-05",
        body(U, model(call(), call()), user(result(), result())),
        "Corrupted thought signature.",
        hosted=False,
    ),
    Case(
        "GEM-05-vertex",
        body(U, model(signed(HOST)), user(result())),
        "Unable to submit request because Thought signature is not valid..",
        VERTEX,
    ),
    Case(
        "GEM-06",
        body(U, model(call(signature="no!")), user(result())),
        "Invalid value at 'contents[1].parts[0].thought_signature' (TYPE_BYTES), Base64 decoding failed",
    ),
    Case("GEM-07", body(), "* GenerateContentRequest.contents: contents is not specified\n"),
    Case(
        "GEM-08",
        body({**U, "role": "tool"}),
        "Role 'tool' is not supported. Please use a valid role: SYSTEM,",
    ),
    Case("GEM-08-vertex", body({**U, "role": "tool"}), "Please use a valid role: user, model.", VERTEX),
    Case(
        "GEM-09",
        body(U, model(call(id="a")), user(result(id="a"))),
        "Invalid JSON payload received. Unknown name \"id\" at 'contents[1].parts[0].function_call': Cannot find "
        "field.\nInvalid JSON payload received. Unknown name \"id\" at 'contents[2].parts[0].function_response'",
        GeminiSettings(GeminiProfile(call_ids=False), vertex=True),
    ),
    Case("GEM-10", body(U, messages=[]), UNKNOWN.format(name='"messages"')),
    Case("GEM-10", body(user(text("u", x=1))), UNKNOWN.format(name="\"x\" at 'contents[0].parts[0]'")),
    Case("GEM-10", body(U, model(call(args={}, type="x")), user(result())), 'Unknown name "type"'),
    Case("GEM-10", body(U, model(call()), user(result(parts=[{"text": "t"}]))), 'Unknown name "text"'),
    Case(
        "GEM-10",
        body(
            U,
            tools=[{"functionDeclarations": [{"name": "a", "parameters": {"type": "OBJECT", "oneOf": []}}]}],
        ),
        "Unknown name \"oneOf\" at 'tools[0].function_declarations[0].parameters'",
    ),
    Case("GEM-11", body({"role": "user", "parts": []}), "must include at least one parts field"),
    Case("GEM-11", body(user({"thought": True})), "must include at least one parts field"),
    Case(
        "GEM-12",
        body(user("x" * 100)),
        "exceeds the maximum number of tokens allowed (5).",
        GeminiSettings(GeminiProfile(context_tokens=5)),
    ),
    Case(
        "GEM-13",
        body(U),
        "models/gemini-test is not found for API version v1beta",
        GeminiSettings(model="gemini-test", models={"gemini-3": GeminiProfile()}),
    ),
    Case("GEM-S01", b"{", "Invalid JSON payload received."),
    Case("GEM-S01", b"[]", "Root element must be a message."),
    Case("GEM-S02", body(user({"text": 5})), "Invalid value at 'contents[0].parts[0].text' (TYPE_STRING), 5"),
    Case(
        "GEM-S02",
        body(U, model(call()), user({"functionResponse": {"name": "read", "response": "ok"}})),
        "Invalid value at 'contents[2].parts[0].function_response.response'",
    ),
    Case("GEM-S03", body(U, model(call("")), user(result(""))), "Name cannot be empty."),
    Case(
        "GEM-S04",
        body(U, model(call("1a")), user(result("1a"))),
        "Must start with a letter or an underscore.",
    ),
    Case("GEM-S05", body(U, tools=[*DECLARED, *DECLARED]), "Duplicate function declaration found: read"),
    Case("GEM-S06", body(U, GO), "multiturn requests alternate between user and model.", hosted=False),
    Case("GEM-S06", body(model("t"), GO), "multiturn requests alternate between", hosted=False),
    Case("GEM-S07", body(U, model("t")), "end with a user turn or a function response turn."),
    Case("GEM-S08", body(U, model(call()), user(result("run"))), "the name or id of the", hosted=False),
    Case(
        "GEM-S08", body(U, model(call(id="a")), user(result(id="b"))), "the name or id of the", hosted=False
    ),
    Case(
        "GEM-S09",
        body(U, toolConfig={"functionCallingConfig": {"mode": "ANY"}}),
        "set without function_declarations",
    ),
    Case(
        "GEM-S10",
        body(U, tools=[{"functionDeclarations": [{"name": "a", "parameters": {"title": "x"}}]}]),
        "schema didn't specify the schema type field.",
    ),
    Case(
        "GEM-S11",
        body(U, generationConfig={"thinkingConfig": {"thinkingBudget": 1, "thinkingLevel": "LOW"}}),
        "only one of thinking budget and thinking level",
    ),
    Case("GEM-S12", body(user({**text("u"), **result()})), "one of the fields of `data` must be"),
    Case("GEM-S21", choosing("ANY", "run"), "run is not among the function declarations."),
    Case("GEM-S21", choosing("AUTO", "read"), "only be set when the function calling mode is ANY."),
)


def encoded(value: Json | bytes) -> bytes:
    return value if isinstance(value, bytes) else json.dumps(value).encode()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_broken_rule_is_refused_in_the_providers_words(case: Case) -> None:
    refusal = validate(encoded(case.body), "gemini", settings=case.settings)
    assert refusal is not None
    rule = GEMINI_RULES[case.rule]
    assert (refusal.rule, refusal.status, refusal.type) == (case.rule, rule.status, rule.type)
    assert case.message in refusal.message
    hosted = validate(encoded(case.body), "gemini", mode="hosted", settings=case.settings)
    assert (hosted is not None) == case.hosted


def test_every_rule_has_a_case() -> None:
    assert {case.rule for case in CASES} | shown(GEMINI_RULES) == set(GEMINI_RULES)


@pytest.mark.parametrize(
    "contents",
    [
        (U,),
        (U, model("t"), GO),
        (U, model(call(), call("run", None)), user(result(), result("run"), "go")),
        (U, model(signed(args={"a": 1}), call("run", None)), user(result(), result("run"))),
        (U, model("t", signed()), user(result()), model(signed(args={"b": 2})), user(result())),
        (U, model(text("t"), text("", thoughtSignature=sign({"text": ""}, HOST))), GO),
        (U, model(call(id="a")), user(result(id="a"))),
        ({"parts": [text("no role")]},),
    ],
)
def test_what_keeps_the_rules_is_taken(contents: tuple[Json, ...]) -> None:
    assert validate(encoded(body(*contents)), "gemini", settings=HOST) is None


def test_each_dialect_has_its_own_host() -> None:
    bare = encoded(body(U, model(call(signature=None)), user(result())))
    with_id = encoded(body(U, model(call(id="a")), user(result(id="a"))))
    assert [validate(bare, name) is None for name in ("gemini", "vertex", "gemini_2")] == [False, False, True]
    assert [validate(with_id, name) is None for name in ("gemini", "vertex", "gemini_2")] == [
        True,
        True,
        True,
    ]
