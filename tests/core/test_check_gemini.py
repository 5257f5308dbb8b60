"""Check the requests that the checker of generateContent accepts, and that it treats fragments and requests alike."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.core.check import check, check_fragment, finish_check, initial_state
from actors.core.dialects.dialect import Dialect
from actors.core.dialects.profiles import GEMINI, GEMINI_2, VERTEX
from tests.core.session_log import examples
from tests.rules.gemini import (
    GO,
    IMAGE,
    SENTINEL,
    U,
    body,
    call,
    calling,
    model,
    plain,
    result,
    text,
    tools,
    user,
)
from tests.rules.row import Json


def faults(value: Json, dialect: Dialect = GEMINI) -> list[Any]:  # Any: faults of several classes
    return list(check(json.dumps(value).encode(), dialect))


def test_the_first_call_of_a_message_needs_no_signature_before_gemini_3() -> None:
    assert faults(body(U, model(plain()), user(result())), GEMINI_2) == []


SNAKE = {
    "contents": [
        U,
        {"role": "model", "parts": [{"function_call": {"name": "read", "args": {"a_b": 1}},
                                     "thought_signature": SENTINEL}]},
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


def test_gemini_keys_are_accepted_in_snake_case_too() -> None:
    assert [str(fault) for fault in faults(SNAKE)] == []
    spoilt = json.loads(json.dumps(SNAKE).replace("thought_signature", "signature_of_thought"))
    assert {fault.rule for fault in faults(spoilt)} == {"GEM-10", "GEM-04"}


@pytest.mark.parametrize("mode", MODES)
def test_enum_values_are_accepted_in_upper_and_lower_case(mode: str) -> None:
    assert faults(body(U, tools=tools(), toolConfig=calling(mode))) == []


@pytest.mark.parametrize("mode", ["never", 1, None])
def test_an_unknown_enum_value_is_rejected(mode: Any) -> None:  # Any: also values that are not strings
    assert [fault.rule for fault in faults(body(U, tools=tools(), toolConfig=calling(mode)))] == ["ALL-02"]


def test_a_request_with_one_key_in_both_spellings_is_rejected() -> None:
    twice = {"functionCall": {"name": "read", "args": {}}, "function_call": {"name": "read", "args": {}}}
    signed = {**twice, "thoughtSignature": SENTINEL}
    assert [fault.rule for fault in faults(body(U, model(signed), user(result())))] == ["GEM-10"]


def test_server_tools_and_their_results_are_accepted() -> None:
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
        text("", thoughtSignature=SENTINEL),
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
def test_checking_gemini_contents_in_pieces_or_at_once_gives_the_same_faults(
    contents: list[Json], data: st.DataObject, dialect: Dialect
) -> None:
    state, found = initial_state(dialect), []
    for fragment in _fragments(contents, data):
        state, new = check_fragment(state, fragment.encode())
        found += new
    found += finish_check(state)
    assert [str(fault) for fault in found] == [str(fault) for fault in faults(body(*contents), dialect)]
    assert [str(fault) for fault in finish_check(state)] == [str(fault) for fault in finish_check(state)]


def _fragments(contents: list[Json], data: st.DataObject) -> list[str]:
    """Return the contents as fragments, each left open after a part."""
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
    model(text("t", thoughtSignature=SENTINEL), call(id="a")),
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
def test_the_request_checker_reports_faults_of_any_json_without_an_exception(
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
