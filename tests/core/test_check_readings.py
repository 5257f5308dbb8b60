"""Check that the fast and the strict parser of fragments reach the same verdict.

The strict parser must reach the state of the fast one; `tests.conftest` compares them for every fragment of every test.
This module gives each planted fault to both parsers, and the fragments of our encoders to the fast one alone: if it
rejected them, verdicts would be correct but every request slow.
"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.core.check import (
    CheckState,
    _as_message_array,
    _check_usual_messages,
    check,
    check_fragment,
    container,
    finish_check,
    initial_state,
)
from actors.core.data.jsonio import JsonRefused, parse
from actors.core.data.record import replace
from actors.core.dialects.dialect import Dialect
from actors.core.dialects.profiles import ANTHROPIC, OPENAI_CHAT, PROFILES
from actors.core.history.history import History
from actors.core.lanes.lane import begin_epoch
from actors.core.ledger import Ledger
from actors.core.log.events import EpochBegan
from actors.core.rulebook import PREFIXES, RULES
from actors.core.values.content import Message, Text
from actors.errors import Fault
from actors.transcripts import render
from tests import naming
from tests.commands.at_scale import spread
from tests.core.session_log import examples
from tests.core.test_check_fold import ANY_JSON, _places, _replaced
from tests.generated.histories import READERS, history
from tests.readings import accepted
from tests.rules.row import without
from tests.rules.test_rules import ROWS as CORPUS

Json = dict[str, Any]  # Any: wire messages are built by hand, broken ones on purpose

OPEN = {"anthropic": "content", "converse": "content", "gemini": "parts"}
"""The list in which a fragment leaves its last message open, by family."""
ROWS = [
    (f"{row.dialect}-{row.rule}", rule, row.broken, row.sound, row.judged_by)
    for row in CORPUS
    if isinstance(row.broken, dict) and isinstance(row.sound, dict) and not row.stricter
    if row.rule != "ANT-55"  # its request has a hundred thousand messages
    for rule in sorted(row.found)
]
BESIDE = {
    *(
        "ALL-01",
        "ALL-13",
        "ALL-14",
        "ALL-16",
        *("ANT-45", "ANT-46", "ANT-47", "ANT-49", "ANT-56"),
        "ANT-09",
        "ANT-25",
        "ANT-31",
        "ANT-48",
        "ANT-57",
        "ANT-60",
        "BED-03",
        "GEM-07",
        "OAC-04",
        "OAC-09",
    ),
    *(
        "CMP-03",
        "OAC-11",
        "OAC-12",
        "OAC-17",
        "OAC-18",
        "OAC-19",
        "OAC-20",
        "KIM-07",
        "KIM-09",
        "KIM-08",
        "KIM-10",
        "KIM-11",
        "DSK-08",
    ),
}
"""Rules that are broken beside the messages, by their absence or by bytes that are not JSON; others in a fragment."""


def pieces(body: Json, dialect: Dialect) -> list[bytes]:
    """Return the messages of a request as lane fragments, or none if a lane cannot contain them."""
    messages, key = body.get(container(dialect)), OPEN.get(dialect.family)
    if not isinstance(messages, list):
        return []
    if key is None:
        return [(b"," if index else b"") + json.dumps(item).encode() for index, item in enumerate(messages)]
    if not all(isinstance(message, dict) and isinstance(message.get(key), list) for message in messages):
        return []
    texts = [json.dumps(without(message, key) | {key: message[key]})[:-2] for message in messages]
    return [("]}," * bool(index) + text).encode() for index, text in enumerate(texts)]


def check_fragments(fragments: list[bytes], dialect: Dialect, *, manual: bool = False) -> list[Fault]:
    """Return the faults. In tests the judge always runs both parsers and compares them."""
    state, faults = initial_state(dialect), list[Fault]()
    for fragment in fragments:
        state, found = check_fragment(state, fragment)
        faults += found
    return faults + finish_check(state, manual_thinking=manual)


def is_accepted_by_first(fragments: list[bytes], dialect: Dialect, *, manual: bool = False) -> bool:
    """Return True if the fast parser alone accepts all fragments."""
    state: CheckState | None = initial_state(dialect)
    for fragment in fragments:
        assert state is not None
        after = accepted(state, fragment)
        if after is None:
            return False
        state, _ = after.split_faults()
    return state is not None and finish_check(state, manual_thinking=manual) == []


def asks_for_thinking(body: Json) -> bool:
    return isinstance(thinking := body.get("thinking"), dict) and thinking.get("type") == "enabled"


PLANTED = [
    row
    for row in ROWS
    if row[2].get(container(row[4])) != row[3].get(container(row[4])) and pieces(row[2], row[4])
]


@pytest.mark.parametrize(
    "dialect", {row[4].name: row[4] for row in PLANTED}.values(), ids=lambda each: each.name
)
def test_both_request_parsers_reject_each_fault_and_accept_the_corrected_request(dialect: Dialect) -> None:
    for name, rule, broken, twin, judged_by in PLANTED:
        if judged_by is dialect:
            with naming.case(name):
                assert_both_parsers_reject(rule, broken, twin, dialect)


def assert_both_parsers_reject(rule: str, broken: Json, twin: Json, dialect: Dialect) -> None:
    fragments, manual = pieces(broken, dialect), asks_for_thinking(broken)
    found = {fault.rule for fault in check_fragments(fragments, dialect, manual=manual)}
    if rule not in found:  # it is outside the messages, which neither parser reads
        assert rule in {fault.rule for fault in check(json.dumps(broken).encode(), dialect)} - found
        return
    assert not is_accepted_by_first(fragments, dialect, manual=manual)
    sound = pieces({**twin, "store": False}, dialect)
    assert [str(fault) for fault in check_fragments(sound, dialect, manual=asks_for_thinking(twin))] == []


def test_every_rule_that_a_fragment_can_break_has_a_case() -> None:
    judged = {rule.id for rule in RULES.values() if rule.is_checked}
    assert judged - BESIDE == {row[1] for row in PLANTED if row[1] not in BESIDE}


def test_the_test_judge_reports_a_disagreement_of_the_two_request_parsers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fragment = b'{"role":"user","content":" "}'
    taken = accepted(initial_state(OPENAI_CHAT), fragment)
    monkeypatch.setattr("tests.readings.accepted", lambda state, *pieces: taken)
    with pytest.raises(AssertionError, match="Two readings"):
        check_fragment(initial_state(OPENAI_CHAT), b'{"role":"nobody","content":" "}')
    with pytest.raises(AssertionError, match="Two readings"):
        check_fragment(initial_state(OPENAI_CHAT), b'{"role":')


def test_the_first_request_of_a_new_epoch_is_not_checked_by_the_fast_parser(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[bytes] = []
    monkeypatch.setattr(
        "actors.core.check.check_quickly", lambda state, *pieces: asked.append(b"".join(pieces))
    )
    said = [Message("user", [Text("one")])]
    lane = render(History(said), Ledger(), OPENAI_CHAT).lane
    assert len(asked) == 1
    again = begin_epoch(lane, EpochBegan(READERS["openai_chat"], 1, "refusal"), OPENAI_CHAT, 1)
    lane = render(History(said), Ledger(), OPENAI_CHAT, again).lane
    assert len(asked) == 1
    assert (
        render(History([*said, Message("user", [Text("two")])]), Ledger(), OPENAI_CHAT, lane).report.faults
        == ()
    )
    assert len(asked) == 2


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_the_fast_parser_accepts_all_fragments_that_the_encoders_produce(name: str) -> None:
    dialect = PROFILES[name]
    for seed in spread(range(80), [*PROFILES].index(name)):
        messages, ledger = history(seed)
        rendered = render(History(messages, ledger), ledger, dialect, binding=READERS[name])
        text = b"".join(rendered.lane._segments)
        assert check_fragment(initial_state(dialect), text)[1] == []
        assert accepted(initial_state(dialect), text) is not None, (seed, text)
        assert accepted(initial_state(dialect), *rendered.lane._segments) is not None, (seed, text)


@pytest.mark.parametrize(
    "end", ["end", "\n\t\tlast", "\\ end\\", "a b c", ' "d"', "é ô", "\n\tab" * 5 + "cd", "x" * 80]
)
def test_the_fast_parser_accepts_a_long_string_regardless_of_its_last_characters(end: str) -> None:
    literal = json.dumps("word " * 150 + end, ensure_ascii=False).encode()
    for dialect, head in ((OPENAI_CHAT, b""), (ANTHROPIC, b'[{"type":"text","text":')):
        fragment = b'{"role":"user","content":' + head, literal, b"}"
        assert accepted(initial_state(dialect), *fragment) is not None


SOUND: dict[str, list[Json]] = {}
for *_, sanitised, dialect in PLANTED:
    if len(str(sanitised)) < 2000 and is_accepted_by_first(pieces(sanitised, dialect), dialect):
        SOUND.setdefault(dialect.name, []).append(sanitised)


def _ingest_json(text: str) -> object:
    """Return JSON as ingestion would accept it, since fragments contain nothing else."""
    try:
        return parse(text.encode())
    except JsonRefused:
        return None


@examples(600)
@given(data=st.data(), new=ANY_JSON.map(json.dumps).map(_ingest_json))
def test_both_request_parsers_agree_on_any_json_in_a_fragment(data: st.DataObject, new: object) -> None:
    assert {PROFILES[name].family for name in SOUND} == set(PREFIXES)
    dialect = PROFILES[data.draw(st.sampled_from(sorted(SOUND)))]
    body = data.draw(st.sampled_from(SOUND[dialect.name]))
    key = container(dialect)
    place = data.draw(st.sampled_from(_places(body[key])[1:]))
    spoilt = {**body, key: _replaced(body[key], place, new)}
    fragments = pieces(spoilt, dialect)
    if fragments and is_accepted_by_first(fragments, dialect):
        assert check_fragments(fragments, dialect) == []
        assert {fault.rule for fault in check(json.dumps(spoilt).encode(), dialect)} <= BESIDE


LONG = (
    *(
        " " * 600,
        "\n" * 600,
        "word " * 150,
        "word " * 150 + "end",
        "a" * 600,
        "tab\t" * 150,
        '"' * 600,
        "\\" * 600,
    ),
    *("é" * 600, "call_" + "0" * 600, "QUJD" * 200, '{"a":"' + "b" * 600 + '"}', "x" * 600 + "\x1f"),
)


@examples(100)
@given(data=st.data(), text=st.sampled_from(LONG))
def test_the_faults_do_not_depend_on_whether_a_long_string_is_passed_as_a_separate_piece(
    data: st.DataObject, text: str
) -> None:
    dialect = PROFILES[data.draw(st.sampled_from(sorted(SOUND)))]
    body = data.draw(st.sampled_from(SOUND[dialect.name]))
    key = container(dialect)
    place = data.draw(st.sampled_from(_places(body[key])[1:]))
    fragments = pieces({**body, key: _replaced(body[key], place, text)}, dialect)
    literal, state = json.dumps(text).encode(), initial_state(dialect)
    for fragment in fragments:
        before, found, behind = fragment.partition(literal)
        at_once = check_fragment(state, fragment)
        assert [str(fault) for fault in check_fragment(state, before, found, behind)[1]] == list(
            map(str, at_once[1])
        )
        state = at_once[0]


@pytest.mark.parametrize(
    ("dialect", "role", "text", "rule"),
    [
        (OPENAI_CHAT, "user", "a word " * (OPENAI_CHAT.turns.max_string or 0), "OAC-14"),
        (ANTHROPIC, "user", " " * 600, "ANT-21"),
        (ANTHROPIC, "user", "\n" * 600, "ANT-21"),
        (ANTHROPIC, "assistant", "word " * 150, "ANT-23"),
        (ANTHROPIC, "assistant", "word\n" * 150, "ANT-23"),
    ],
)
def test_an_invalid_long_string_in_a_separate_piece_is_rejected(
    dialect: Dialect, role: str, text: str, rule: str
) -> None:
    head, ends = ('[{"type":"text","text":', "}") if dialect is ANTHROPIC else ("", "}")
    asked = '{"role":"user","content":[{"type":"text","text":"Go."}]},' if role == "assistant" else ""
    fragment = [
        f'{asked}{{"role":"{role}","content":{head}'.encode(),
        json.dumps(text).encode(),
        ends.encode(),
    ]
    after = accepted(initial_state(dialect), *fragment)
    assert after is None or rule in [fault.rule for fault in finish_check(after.split_faults()[0])]
    state, found = check_fragment(initial_state(dialect), *fragment)
    assert rule in [fault.rule for fault in found + finish_check(state)]


CHAT_ASK = {"role": "user", "content": "Go."}
CHAT_CALL = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
CHAT_CALLS = {"role": "assistant", "tool_calls": [CHAT_CALL, {**CHAT_CALL, "id": "call_2"}]}
WORDS = {"type": "text", "text": "Hi."}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}
USE = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}
ASK = {"role": "user", "content": [WORDS]}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "search", "input": {}}


def said(*blocks: Json) -> Json:
    return {"role": "assistant", "content": [*blocks]}


def answered(*blocks: Json) -> Json:
    return {"role": "user", "content": [*blocks]}


LONE_CALLS = replace(OPENAI_CHAT, turns=replace(OPENAI_CHAT.turns, calls_together=False))
DEMANDING = replace(ANTHROPIC, reasoning=replace(ANTHROPIC.reasoning, required="with_calls"))
UNTHINKING = replace(ANTHROPIC, reasoning=replace(ANTHROPIC.reasoning, carrier="none"))
USUAL: dict[str, tuple[Dialect, list[Json]]] = {
    "openai_chat": (OPENAI_CHAT, [CHAT_ASK, CHAT_CALLS]),
    "anthropic": (ANTHROPIC, [ASK, said(THOUGHT, WORDS, USE), answered(RESULT, WORDS), said(WORDS)]),
}
UNUSUAL: dict[str, tuple[Dialect, list[Json]]] = {
    "several calls": (LONE_CALLS, [CHAT_ASK, CHAT_CALLS]),
    "a blank error": (ANTHROPIC, [ASK, said(USE), answered({**RESULT, "content": " ", "is_error": True})]),
    "a result after text": (ANTHROPIC, [ASK, said(USE), answered(WORDS, RESULT)]),
    "a result of another call": (ANTHROPIC, [ASK, said(USE), answered({**RESULT, "tool_use_id": "toolu_2"})]),
    "a name with a space": (ANTHROPIC, [ASK, said({**USE, "name": "read all"})]),
    "a call without thinking": (DEMANDING, [ASK, said(USE)]),
    "thinking after text": (ANTHROPIC, [ASK, said(WORDS, THOUGHT, USE)]),
    "thinking without a signature": (ANTHROPIC, [ASK, said({**THOUGHT, "signature": ""}, USE)]),
    "thinking that the host rejects": (UNTHINKING, [ASK, said(THOUGHT, WORDS)]),
    "a blank text": (ANTHROPIC, [ASK, said({**WORDS, "text": " "})]),
    "a text while a server's tool runs": (ANTHROPIC, [ASK, said(SEARCH), ASK]),
}


@pytest.mark.parametrize("name", USUAL)
def test_the_fast_parser_decodes_usual_messages_as_their_types(name: str) -> None:
    dialect, messages = USUAL[name]
    state = initial_state(dialect)
    for fragment in pieces({container(dialect): messages}, dialect):
        assert _check_usual_messages(state, _as_message_array(state, fragment)) is not None
        state, _ = check_fragment(state, fragment)


@pytest.mark.parametrize("name", UNUSUAL)
def test_the_fast_parser_rejects_messages_of_usual_types_that_break_a_rule(name: str) -> None:
    dialect, messages = UNUSUAL[name]
    *before, last = pieces({container(dialect): messages}, dialect)
    state = initial_state(dialect)
    for fragment in before:
        state, _ = check_fragment(state, fragment)
    assert accepted(state, last) is None
    assert check_fragment(state, last)[1] != []


@pytest.mark.parametrize(
    ("value", "rule"),
    [(b'"\xff"', "ALL-01"), (b'"\xed\xa0\x80"', "ANT-31"), (b"1e999", "ALL-01")],
    ids=["invalid UTF-8", "a surrogate", "a huge number"],
)
def test_the_fast_parser_rejects_a_usual_call_with_arguments_that_are_not_json(
    value: bytes, rule: str
) -> None:
    (first,) = pieces({"messages": [ASK]}, ANTHROPIC)
    state, _ = check_fragment(initial_state(ANTHROPIC), first)
    (_, last) = pieces({"messages": [ASK, said({**USE, "input": {"of": "it"}})]}, ANTHROPIC)
    broken = last.replace(b'"it"', value)
    assert accepted(state, last) is not None
    assert accepted(state, broken) is None
    assert [fault.rule for fault in check_fragment(state, broken)[1]] == [rule]


def test_the_fast_parser_rejects_usual_results_in_a_second_message_in_each_fragment() -> None:
    uses = [{**USE, "id": f"toolu_{number}"} for number in range(3)]
    first, second, third = [{**RESULT, "tool_use_id": use["id"]} for use in uses]
    state = initial_state(ANTHROPIC)
    for fragment in pieces({"messages": [ASK, said(*uses), answered(first), answered(second)]}, ANTHROPIC):
        state, _ = check_fragment(state, fragment)
    last = b"," + json.dumps(third).encode()
    assert accepted(state, last) is None
    assert [fault.rule for fault in check_fragment(state, last)[1]] == ["ANT-12"]
