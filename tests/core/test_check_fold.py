"""Check that the judge is a fold: the verdict does not depend on the pieces, and states can be extended twice.

The conversations consist of a few valid and invalid messages with few ids, so every kind of wrong pairing occurs, also
across the boundaries of pieces.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import actors.core.check
from actors.core.check import CheckState, check, check_fragment, finish_check, initial_state
from actors.core.dialects.dialect import Dialect
from actors.core.dialects.profiles import ANTHROPIC, OPENAI_CHAT, PROFILES
from actors.errors import Fault
from tests.core.session_log import examples
from tests.project.source import references

Json: TypeAlias = dict[str, Any]  # Any: wire messages are built by hand, broken ones on purpose

IDS = st.sampled_from(["a", "b", "c", "d", "", "x.y"])
WORDS = st.sampled_from(["hi", "", " ", "so "])


def _call(call_id: str, arguments: str) -> Json:
    return {"id": call_id, "type": "function", "function": {"name": "read", "arguments": arguments}}


def _use(call_id: str) -> Json:
    return {"type": "tool_use", "id": call_id, "name": "read", "input": {}}


def _answer(call_id: str) -> Json:
    return {"type": "tool_result", "tool_use_id": call_id, "content": "ok"}


THOUGHT = {"type": "thinking", "thinking": "", "signature": "s"}
CHAT_MESSAGES = st.one_of(
    st.builds(
        lambda role, text: {"role": role, "content": text}, st.sampled_from(["user", "assistant", "x"]), WORDS
    ),
    st.builds(
        lambda ids, arguments: {
            "role": "assistant",
            "tool_calls": [_call(call_id, arguments) for call_id in ids],
        },
        st.lists(IDS, min_size=1, max_size=3),
        st.sampled_from(["{}", "[]"]),
    ),
    st.builds(lambda call_id: {"role": "tool", "tool_call_id": call_id, "content": "ok"}, IDS),
)
BLOCKS = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, WORDS),
    st.builds(
        lambda text, ttl: {"type": "text", "text": text, "cache_control": {"type": "ephemeral", "ttl": ttl}},
        WORDS,
        st.sampled_from(["5m", "1h"]),
    ),
    st.builds(_use, IDS),
    st.builds(_answer, IDS),
    st.sampled_from(
        [
            THOUGHT,
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "search", "input": {}},
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
        ]
    ),
)
BLOCK_MESSAGES = st.builds(
    lambda role, blocks: {"role": role, "content": blocks},
    st.sampled_from(["user", "assistant"]),
    st.lists(BLOCKS, max_size=4),
)


SPLIT_RESULTS: list[Json] = [
    {"role": "assistant", "content": [_use("a"), _use("b"), _use("c")]},
    {"role": "user", "content": [_answer("a")]},
    {"role": "user", "content": [_answer("b"), _answer("c")]},
]
TOOL_LOOP: list[Json] = [
    {"role": "user", "content": [{"type": "text", "text": "go"}]},
    {"role": "assistant", "content": [_use("a")]},
    {"role": "user", "content": [_answer("a")]},
    {"role": "assistant", "content": [THOUGHT, _use("b")]},
    {"role": "user", "content": [_answer("b")]},
    {"role": "assistant", "content": [_use("c")]},
    {"role": "user", "content": [_answer("c")]},
]


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def chat_pieces(messages: Sequence[Json]) -> list[str]:
    """Return the smallest fragments of these messages: one each."""
    return [("," if index else "") + _text(message) for index, message in enumerate(messages)]


def block_pieces(messages: Sequence[Json]) -> list[str]:
    """Return the smallest fragments of these messages: one a block, the last message left open."""
    pieces: list[str] = []
    for message in messages:
        opening = ("]}," if pieces else "") + _text({**message, "content": []})[:-2]
        first, *rest = message["content"] or [None]
        pieces.append(opening + (_text(first) if first else ""))
        pieces += ["," + _text(block) for block in rest]
    return pieces


def join_pieces(pieces: Sequence[str], cuts: set[int]) -> list[bytes]:
    """Return the pieces joined, except at the cuts."""
    fragments: list[str] = []
    for index, piece in enumerate(pieces):
        if not fragments or index in cuts:
            fragments.append("")
        fragments[-1] += piece
    return [fragment.encode() for fragment in fragments]


def describe_faults(faults: Sequence[Fault]) -> list[tuple[type[Fault], str, tuple[str, ...], str | None]]:
    return [(type(fault), str(fault), fault.call_ids, fault.rule) for fault in faults]


def fold(
    state: CheckState, fragments: Sequence[bytes], *, manual: bool = False
) -> tuple[CheckState, list[Fault]]:
    faults: list[Fault] = []
    for fragment in fragments:
        state, found = check_fragment(state, fragment)
        faults += found
    return state, faults + finish_check(state, manual_thinking=manual)


def check_messages(messages: Sequence[Json], dialect: Dialect, **more: object) -> list[Fault]:
    return check(
        _text({"model": "m", "max_tokens": 2048, "messages": list(messages), **more}).encode(), dialect
    )


@examples(300)
@given(messages=st.lists(CHAT_MESSAGES, max_size=10), cuts=st.sets(st.integers(1, 10)))
def test_checking_openai_messages_in_pieces_or_at_once_gives_the_same_faults(
    messages: list[Json], cuts: set[int]
) -> None:
    _, faults = fold(initial_state(OPENAI_CHAT), join_pieces(chat_pieces(messages), cuts))
    assert describe_faults(faults) == describe_faults(check_messages(messages, OPENAI_CHAT))


@examples(500)
@given(
    messages=st.lists(BLOCK_MESSAGES, max_size=6), cuts=st.sets(st.integers(1, 24)) | st.just(set(range(99)))
)
@example(messages=SPLIT_RESULTS, cuts=set(range(99)))
@example(messages=TOOL_LOOP, cuts=set(range(99)))
@example(messages=TOOL_LOOP[1:], cuts=set(range(99)))
def test_checking_anthropic_blocks_in_pieces_or_at_once_gives_the_same_faults(
    messages: list[Json], cuts: set[int]
) -> None:
    fragments = join_pieces(block_pieces(messages), cuts)
    assert describe_faults(fold(initial_state(ANTHROPIC), fragments)[1]) == describe_faults(
        check_messages(messages, ANTHROPIC)
    )
    thinking = {"type": "enabled", "budget_tokens": 1024}
    asked = check_messages(messages, ANTHROPIC, thinking=thinking)
    assert describe_faults(fold(initial_state(ANTHROPIC), fragments, manual=True)[1]) == describe_faults(
        asked
    )


LONG_CHAT: list[Json] = [
    message
    for turn in range(40)
    for message in (
        {"role": "user", "content": "go"},
        {"role": "assistant", "tool_calls": [_call(f"a{turn}", "{}"), _call(f"b{turn}", "{}")]},
        {"role": "tool", "tool_call_id": f"b{turn}", "content": "ok"},
        {"role": "tool", "tool_call_id": f"a{turn}", "content": "ok"},
    )
]
LONG_BLOCKS: list[Json] = [
    message
    for turn in range(40)
    for message in (
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "", "signature": "s"},
                {"type": "tool_use", "id": f"a{turn}", "name": "read", "input": {}},
                {"type": "tool_use", "id": f"b{turn}", "name": "read", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": f"a{turn}", "content": "ok"},
                {"type": "tool_result", "tool_use_id": f"b{turn}", "content": "ok"},
                {"type": "text", "text": "go"},
            ],
        },
    )
]
LONG_BLOCKS.insert(0, {"role": "user", "content": [{"type": "text", "text": "go"}]})


@settings(max_examples=30, deadline=None)
@given(cuts=st.sets(st.integers(1, 240)))
def test_a_valid_conversation_is_accepted_in_any_split_into_pieces(cuts: set[int]) -> None:
    assert fold(initial_state(OPENAI_CHAT), join_pieces(chat_pieces(LONG_CHAT), cuts))[1] == []
    assert fold(initial_state(ANTHROPIC), join_pieces(block_pieces(LONG_BLOCKS), cuts))[1] == []


def test_two_extensions_of_one_check_state_are_independent() -> None:
    state, _ = check_fragment(initial_state(OPENAI_CHAT), b'{"role":"user","content":"go"}')
    call, again = (_text({"role": "assistant", "tool_calls": [_call(i, "{}")]}) for i in ("a", "b"))
    one, faults_of_one = check_fragment(state, f",{call}".encode())
    two, faults_of_two = check_fragment(state, f",{again}".encode())
    assert (faults_of_one, faults_of_two) == ([], [])
    assert [list(each.open_calls) for each in (one, two, state)] == [["a"], ["b"], []]
    assert describe_faults(check_fragment(state, f",{call}".encode())[1]) == []
    assert "a" in one.used_ids
    assert "a" not in two.used_ids
    assert "a" not in state.used_ids


@examples(100)
@given(
    shared=st.lists(BLOCK_MESSAGES, max_size=3),
    left=st.lists(BLOCK_MESSAGES, max_size=3),
    right=st.lists(BLOCK_MESSAGES, max_size=3),
)
def test_branches_of_one_check_state_give_the_same_faults_as_separate_states(
    shared: list[Json], left: list[Json], right: list[Json]
) -> None:
    cut = len(block_pieces(shared))
    trunk, *_ = [*join_pieces(block_pieces(shared), set()), b""]
    state, _ = check_fragment(initial_state(ANTHROPIC), trunk)
    for _ in range(2):
        for branch in (left, right):
            rest = "".join(block_pieces([*shared, *branch])[cut:]).encode()
            alone, _ = check_fragment(initial_state(ANTHROPIC), trunk)
            assert describe_faults(fold(state, [rest])[1]) == describe_faults(fold(alone, [rest])[1])


SAID = b'{"role":"user","content":"go"}'
OPENED = b'{"role":"user","content":[{"type":"text","text":"go"}'


@pytest.mark.parametrize(
    ("dialect", "first", "bad"),
    [
        (OPENAI_CHAT, SAID, b',{"role":'),
        (OPENAI_CHAT, SAID, SAID),
        (OPENAI_CHAT, SAID, b"]"),
        (ANTHROPIC, OPENED, b'{"type":"text","text":"go"}'),
        (ANTHROPIC, OPENED, b"]}"),
        (ANTHROPIC, OPENED, b']},{"role":"assistant","content":"x"}'),
        (ANTHROPIC, b'{"role":"user","content":[', b',{"type":"text","text":"go"}'),
    ],
)
def test_a_fragment_that_does_not_continue_the_request_is_reported_as_a_fault_and_changes_no_state(
    dialect: Dialect, first: bytes, bad: bytes
) -> None:
    state, faults = check_fragment(initial_state(dialect), first)
    assert faults == []
    after, (fault,) = check_fragment(state, bad)
    assert fault.rule == "ALL-01"
    assert after is state


def test_an_empty_fragment_does_not_change_the_check_state() -> None:
    state = initial_state(ANTHROPIC)
    assert check_fragment(state, b"") == (state, [])


def test_a_call_without_a_result_is_reported_as_a_fault_only_in_a_complete_request() -> None:
    state, faults = check_fragment(initial_state(ANTHROPIC), "".join(block_pieces(LONG_BLOCKS[:2])).encode())
    assert faults == []
    assert [fault.rule for fault in finish_check(state)] == ["ANT-01", "ANT-27"]
    state, faults = check_fragment(state, block_pieces(LONG_BLOCKS[:3])[4].encode())
    assert faults == []
    assert [fault.call_ids for fault in finish_check(state)] == [("b0",)]


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
KEYS = st.sampled_from(
    [
        "role",
        "content",
        "type",
        "text",
        "id",
        "name",
        "input",
        "function",
        "arguments",
        "source",
        "ttl",
        "tools",
    ]
)
ANY_JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=3), inner, max_size=4)
    ),
)


def _places(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:  # Any: keys and indices
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inner for place in _places(item, (*path, key)))]


def _replaced(
    value: Any, path: tuple[Any, ...], new: object
) -> object:  # Any: some JSON, walked by its own keys
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = _replaced(value[path[0]], path[1:], new)
    return copy


FULL_CHAT = {
    "model": "m",
    "messages": [*LONG_CHAT[:4]],
    "tools": [{"type": "function", "function": {"name": "read"}}],
    "tool_choice": {"type": "function", "function": {"name": "read"}},
}
FULL_BLOCKS = {
    "model": "m",
    "max_tokens": 9,
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "tool_choice": {"type": "tool", "name": "read"},
    "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
    "tools": [{"name": "read", "input_schema": {"type": "object"}}],
    "messages": [
        *LONG_BLOCKS[:3],
        {
            "role": "assistant",
            "content": [{"type": "server_tool_use", "id": "srvtoolu_1", "name": "s", "input": {}}],
        },
        {"role": "user", "content": [{"type": "image", "source": {"type": "base64", "data": "aGk="}}]},
    ],
}


@examples(500)
@given(data=st.data(), new=ANY_JSON)
def test_the_request_checker_reports_faults_of_any_json_without_an_exception(
    data: st.DataObject, new: object
) -> None:
    for body, dialect in ((FULL_CHAT, OPENAI_CHAT), (FULL_BLOCKS, ANTHROPIC)):
        place = data.draw(st.sampled_from(_places(body)))
        for fault in check(json.dumps(_replaced(body, place, new)).encode(), dialect):
            assert len(str(fault)) < 1000


@examples(200)
@given(body=ANY_JSON, raw=st.binary(max_size=60), dialect=st.sampled_from(list(PROFILES.values())))
def test_the_request_checker_reports_faults_of_any_bytes_without_an_exception(
    body: object, raw: bytes, dialect: Dialect
) -> None:
    for text in (raw, json.dumps(body).encode(), json.dumps({"messages": [body]}).encode()):
        assert check(text, dialect) != []
        state, _ = check_fragment(initial_state(dialect), text)
        finish_check(check_fragment(state, text)[0])
        if isinstance(body, list | dict) and dialect.family == "anthropic":
            check_fragment(
                check_fragment(initial_state(dialect), b'{"role":"user","content":[{}')[0], b"," + text
            )


def test_the_request_checker_imports_the_rulebook_but_no_renderer() -> None:
    modules = (
        *("check", "models", "rulebook"),
        *("data.jsonio", "data.persistent", "data.record", "dialects.dialect", "dialects.narrow"),
    )
    allowed = tuple(f"actors.core.{name}." for name in modules)
    for file in Path(actors.core.check.__file__).parent.glob("*.py"):
        for _, name in references(file):
            if name.startswith("actors."):
                assert f"{name}.".startswith(("actors.errors.", *allowed)), name
