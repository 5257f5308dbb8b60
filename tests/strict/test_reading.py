"""Check that remembering accepted fragments changes no verdict."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jiter
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from actors.strict.rules import ServerSettings, reading, validate
from actors.strict.rules.anthropic_messages import check_name
from actors.strict.rules.base import (
    AnthropicProfile,
    AnthropicSettings,
    OpenAIProfile,
    OpenAISettings,
    RuleBroken,
    dump,
)
from actors.strict.rules.bedrock_rules import BedrockProfile, BedrockSettings
from actors.strict.rules.gemini_rules import GeminiProfile, GeminiSettings
from actors.strict.rules.reading import cached_result, clear_cache, key_of_check, parse, unchecked_items
from actors.strict.rules.responses_shapes import ResponsesProfile, ResponsesSettings
from tests.commands.at_scale import share
from tests.strict.test_rules_hold import SOUND, damaged_bodies

Json = Any  # a body under test may be anything

GEMINI: Json = {
    "contents": [
        {"role": "user", "parts": [{"text": "u"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {"p": 1}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"output": "r"}}}]},
    ],
    "tools": [{"functionDeclarations": [{"name": "read", "parameters": {"type": "OBJECT"}}]}],
}
BODIES = {**SOUND, "gemini_2": GEMINI}


@contextmanager
def taken_apart() -> Iterator[None]:
    """Split bodies of any size into fragments, and start with no known fragments."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_MAX_UNSPLIT_BYTES", 0)
        clear_cache()
        yield
    clear_cache()


@pytest.mark.parametrize("dialect", BODIES)
@settings(max_examples=share(100), database=None)
@given(data=st.data())
def test_earlier_requests_do_not_change_the_verdict_on_a_request(data: st.DataObject, dialect: str) -> None:
    sound, body = dump(BODIES[dialect]), dump(data.draw(damaged_bodies(BODIES[dialect])))
    with taken_apart():
        for mode in ("hosted", "strict"):
            first = validate(body, dialect, mode=mode)
            clear_cache()
            assert validate(sound, dialect, mode=mode) is None
            assert validate(body, dialect, mode=mode) == first
            assert validate(body, dialect, mode=mode) == first


def _openai(message: Json) -> Json:
    return {"model": "m", "messages": [message, {"role": "user", "content": "u"}]}


def _request_with_call(call_id: str) -> Json:
    call = {"id": call_id, "type": "function", "function": {"name": "read", "arguments": "{}"}}
    asked = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {"model": "m", "messages": [asked, {"role": "tool", "tool_call_id": call_id, "content": "r"}]}


SYSTEM: Json = {"role": "system", "content": "s"}
SPOKEN: Json = {"role": "user", "content": "u"}
PICTURE: Json = {"image": {"format": "png", "source": {"bytes": "AA"}}}
ITEMS: Json = [
    {"type": "function_call", "call_id": "c" * 50, "name": "read", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c" * 50, "output": "r"},
]
WITH_IDS: Json = {
    "contents": [
        {"role": "user", "parts": [{"text": "u"}]},
        {"role": "model", "parts": [{"functionCall": {"id": "a", "name": "read", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"id": "a", "name": "read", "response": {}}}]},
    ],
    "tools": GEMINI["tools"],
}
STANDARDS: list[tuple[str, Json, ServerSettings, ServerSettings]] = [
    (
        "openai_chat",
        _request_with_call("c" * 50),
        OpenAISettings(OpenAIProfile(id_length=None)),
        OpenAISettings(OpenAIProfile(id_length=40)),
    ),
    (
        "openai_chat",
        _openai(SYSTEM),
        OpenAISettings(),
        OpenAISettings(OpenAIProfile(system_role=False)),
    ),
    (
        "anthropic",
        {
            "model": "m",
            "max_tokens": 1,
            "messages": [SPOKEN, SYSTEM, {**SPOKEN, "role": "assistant"}, SPOKEN],
        },
        AnthropicSettings(),
        AnthropicSettings(AnthropicProfile(mid_system=False)),
    ),
    (
        "openai_responses",
        {"model": "m", "input": ITEMS},
        ResponsesSettings(ResponsesProfile(call_id_length=64)),
        ResponsesSettings(ResponsesProfile(call_id_length=40)),
    ),
    (
        "bedrock",
        {"messages": [{"role": "user", "content": [PICTURE]}]},
        BedrockSettings(BedrockProfile(upstream=None)),
        BedrockSettings(BedrockProfile(upstream=None, media=frozenset())),
    ),
]


@pytest.mark.parametrize(("dialect", "body", "taking", "refusing"), STANDARDS)
def test_a_fragment_of_a_request_that_one_host_accepted_is_checked_again_by_another(
    dialect: str, body: Json, taking: ServerSettings, refusing: ServerSettings
) -> None:
    with taken_apart():
        assert validate(dump(body), dialect, settings=taking) is None
        refused = validate(dump(body), dialect, settings=refusing)
        assert refused is not None
        assert validate(dump(body), dialect, settings=refusing) == refused
        assert validate(dump(body), dialect, settings=taking) is None


def test_a_fragment_of_a_request_that_one_api_accepted_is_checked_again_by_another() -> None:
    with taken_apart():
        assert validate(dump(WITH_IDS), "gemini_2") is None
        older = GeminiSettings(GeminiProfile(signatures=False, call_ids=False), vertex=True)
        refused = validate(dump(WITH_IDS), "vertex", settings=older)
        assert refused is not None
        assert refused.rule == "GEM-09"
        thought = _openai({"role": "assistant", "content": "a", "reasoning_content": "t"})
        assert validate(dump(thought), "deepseek") is None
        refused = validate(dump(thought), "openai_chat")
        assert refused is not None
        assert refused.rule == "OAC-12"


def test_only_accepted_fragments_of_a_request_are_not_checked_again_in_later_requests() -> None:
    with taken_apart():
        (message,) = parse(b'{"messages":[{"role":"user"}]}')["messages"]
        (again,) = parse(b'{"n":1,"messages":[{"role":"user"}]}')["messages"]
        assert again is message
        one, other = key_of_check("a walk", 1), key_of_check("a walk", 2)
        with pytest.raises(RuleBroken):
            _refuse([message], one)
        assert [at for at, _ in unchecked_items([message, message], one)] == [0, 1]
        assert [at for at, _ in unchecked_items([message], one)] == []
        assert [at for at, _ in unchecked_items([message], other)] == [0]
        assert [at for at, _ in unchecked_items([dict(message)] * 2, one)] == [0, 1]
        assert cached_result(_keyed, message, "a") is cached_result(_keyed, again, "a")
        assert cached_result(_keyed, message, "b") == {"b": ["role"]}
        clear_cache()
        assert [at for at, _ in unchecked_items([message], one)] == [0]


def _refuse(values: list[Json], standard: object) -> None:
    for _ in unchecked_items(values, standard):
        check_name("no name", "here")


def _keyed(value: Json, name: str) -> Json:
    return {name: list(value)}


DEEP = b'{"a":' * 60 + b"[" * 60 + b"]" * 60 + b"}" * 60
FRAGMENTS = st.sampled_from(
    [b"1", b'"a"', b"[]", b"[1,2]", b"[1, 2]", b'[{"a":1},{"a":1}]', b'{"a":1,"a":2}', b"NaN", b'"\\ud800"']
    + [
        b"1e999",
        b"[{},]",
        b'{"b":[{"c":null}]}',
        b'"\xff"',
        b"tru",
        b"",
        DEEP,
        b"[%b]" % DEEP,
        b"[[%b]]" % DEEP,
    ]
    + [b"[" * many + b"]" * many for many in (99, *range(196, 206))]
)
KEYS = st.sampled_from([b'"a"', b'"b"', b'"messages"', b'"\\u0061"', b'"a b"', b"a", b' "a"', b'"\n"'])


@settings(max_examples=share(500), database=None)
@example([(b'"a"', b"[" * 200 + b"]" * 200)], b"%b")
@example([(b'"a"', b"[" * 201 + b"]" * 201)], b"%b")
@example([(b'"a"', b'{"a":' * 201 + b"1" + b"}" * 201)], b"%b")
@given(
    st.lists(st.tuples(KEYS, FRAGMENTS), max_size=3),
    st.sampled_from([b"%b", b" %b", b"%b\n", b"%b,", b"[%b]"]),
)
def test_a_body_is_read_as_strictly_in_fragments_as_at_once(
    members: list[tuple[bytes, bytes]], around: bytes
) -> None:
    body = around % (b"{%b}" % b",".join(b"%b:%b" % member for member in members))
    with taken_apart():
        for _ in range(2):
            assert _outcome(parse, body) == _outcome(_parse_body, body)


def _parse_body(body: bytes) -> Json:
    return jiter.from_json(body, allow_inf_nan=False, catch_duplicate_keys=True)


def _outcome(read: Any, body: bytes) -> object:
    try:
        return read(body)
    except ValueError as error:
        return str(error)


def test_the_cache_of_accepted_fragments_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    with taken_apart():
        monkeypatch.setattr(reading, "_MAX_PARTS", 10)
        for number in range(100):
            parse(b'{"messages":[{"n":%d},{"text":"%b"}]}' % (number, b"x" * 5000))
            assert len(reading._parts) <= 10
            assert len(reading._part_results) <= 10
