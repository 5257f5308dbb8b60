"""The judge of OpenAI Responses finds each broken rule, and says nothing about a request that keeps them all.

One row a rule: the smallest request that breaks it, beside the same request mended.
"""

import json
from dataclasses import dataclass
from random import Random
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.core.check import check, extend, finish, start
from actors.core.data.record import replace
from actors.core.dialects.dialect import Dialect, PartMedia
from actors.core.dialects.profiles import OPENAI_RESPONSES
from actors.core.rulebook import FAULTS, PREFIXES, RULES
from tests.core.session_log import examples
from tests.core.test_check_fold import ANY_JSON, _places, _replaced

Json: TypeAlias = dict[str, Any]  # Any: wire bodies are built by hand, broken ones on purpose

SURROGATE = "\ud800"
LONG = "x" * (OPENAI_RESPONSES.turns.max_string or 0)
CAUTIOUS = replace(OPENAI_RESPONSES, turns=replace(OPENAI_RESPONSES.turns, first_roles=frozenset({"user"})))
TEXT_ONLY = replace(OPENAI_RESPONSES, media=PartMedia(user_kinds=frozenset(), result_kinds=frozenset()))
NO_REASONING = replace(OPENAI_RESPONSES, reasoning=replace(OPENAI_RESPONSES.reasoning, carrier="none"))
ONE_DOCUMENT = replace(OPENAI_RESPONSES, media=PartMedia(max_documents=1))


def say(content: Any = "hi", role: str = "user", **more: Any) -> Json:  # Any: whatever the row wants to try
    return {"type": "message", "role": role, "content": content, **more}


def call(
    call_id: Any = "c1", name: Any = "read", arguments: Any = "{}", **more: Any
) -> Json:  # Any: likewise
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments, **more}


def gave(call_id: Any = "c1", output: Any = "ok", **more: Any) -> Json:  # Any: likewise
    return {"type": "function_call_output", "call_id": call_id, "output": output, **more}


def custom(call_id: str = "c1", **more: Any) -> Json:  # Any: likewise
    return {"type": "custom_tool_call", "call_id": call_id, "name": "sql", "input": "select 1", **more}


def custom_gave(call_id: str = "c1") -> Json:
    return {"type": "custom_tool_call_output", "call_id": call_id, "output": "ok"}


def thought(item_id: Any = None, state: Any = "gAAA", **more: Any) -> Json:  # Any: likewise
    named = {} if item_id is None else {"id": item_id}
    return {"type": "reasoning", **named, "summary": [], "encrypted_content": state, **more}


def local(call_id: Any = "c1") -> Json:  # Any: likewise
    return {"type": "local_shell_call", "call_id": call_id, "action": {"type": "exec", "command": ["ls"]}}


def local_gave(call_id: str = "c1") -> Json:
    return {"type": "local_shell_call_output", "call_id": call_id, "output": "{}"}


def part(words: Any = "hi", kind: str = "input_text", **more: Any) -> Json:  # Any: likewise
    return {"type": kind, "text": words, **more}


IMAGE = {"type": "input_image", "image_url": "https://a.example/i.png", "detail": "auto"}
FILE = {"type": "input_file", "filename": "d.pdf", "file_data": "data:application/pdf;base64,aGk="}


def body(*items: Any, **top: Any) -> Json:  # Any: likewise
    return {"model": "m", "store": False, "input": list(items), **top}


def tool(name: str = "read", **more: Any) -> Json:  # Any: likewise
    return {"type": "function", "name": name, "parameters": {"type": "object"}, "strict": False, **more}


@dataclass(frozen=True)
class Row:
    """A rule, a request that breaks it, and the same request mended."""

    rule: str
    broken: Json | bytes
    sanitised: Json
    dialect: Dialect = OPENAI_RESPONSES
    also: tuple[str, ...] = ()  # rules that cannot but be broken with it


HI = body(say())
ONE = body(say(), call(), gave())
TWO = body(say(), call(), call("c2"), gave(), gave("c2"), say())
THINKS = body(say(), thought(), call(), gave())
NAMED = body(say(), thought("rs_1"), call(id="fc_1"), gave())
FURTHER = {"model": "m", "input": [gave(), say()]}
REFERENCE = {"type": "item_reference", "id": "msg_1"}
CHOSEN = {"type": "function", "name": "read"}

ROWS = [
    Row("OAR-01", body(say(), call()), ONE, also=("ALL-05",)),
    Row("OAR-01", body(say(), call(), say()), ONE),
    Row("OAR-02", body(say(), gave()), ONE),
    Row("OAR-02", body(say(), call(), gave(), gave()), ONE),
    Row("OAR-02", body(gave(), call(), gave()), ONE),
    Row("OAR-02", body(say(), custom(), gave(), custom_gave()), body(say(), custom(), custom_gave())),
    Row("OAR-03", body(say(), thought(), say()), body(say(), thought(), say("t", "assistant"), say())),
    Row("OAR-03", body(say(), call(), thought(), gave()), THINKS),
    Row("OAR-03", body(say(), thought()), THINKS, also=("ALL-05",)),
    Row("OAR-05", body(say(), REFERENCE, say()), {"model": "m", "input": [say(), REFERENCE, say()]}),
    Row("OAR-03", body(say(), thought("rs_1"), call(), gave()), THINKS),
    Row("OAR-03", body(say(), thought("rs_1"), say("t", "assistant"), say()), NAMED),
    Row("OAR-04", body(say(), thought(), call(id="fc_1"), gave()), NAMED),
    Row("OAR-04", body(say(), thought(), say("t", "assistant", id="msg_1"), say()), THINKS),
    Row("OAR-05", body(say(), thought(state=None), call(), gave()), {**THINKS, "store": True}),
    Row("OAR-05", body(say(), thought(state=""), call(), gave()), THINKS),
    Row("OAR-05", {**HI, "previous_response_id": "resp_1"}, {**FURTHER, "previous_response_id": "resp_1"}),
    Row("OAR-05", {**HI, "conversation": "conv_1"}, {**FURTHER, "conversation": "conv_1"}),
    Row("OAR-02", {**FURTHER, "store": True}, {**FURTHER, "previous_response_id": "resp_1"}),
    Row("OAR-11", body(say(), local(), say()), body(say(), local(), local_gave(), say())),
    Row("ALL-02", body(say(), local(None), say()), HI),
    Row("OAR-06", body(say(), call(id="call_1"), gave()), ONE),
    Row("OAR-06", body(say(), thought("reasoning_1"), call(id="fc_1"), gave()), THINKS),
    Row(
        "OAR-07",
        body(
            say(),
            thought("rs_1"),
            call(id="fc_1"),
            gave(),
            thought("rs_1"),
            call("c2", id="fc_2"),
            gave("c2"),
        ),
        body(
            say(),
            thought("rs_1"),
            call(id="fc_1"),
            gave(),
            thought("rs_2"),
            call("c2", id="fc_2"),
            gave("c2"),
        ),
    ),
    Row("OAR-08", body(say(), call("c" * 65), gave("c" * 65)), body(say(), call("c" * 64), gave("c" * 64))),
    Row("OAR-10", body(say(), call(), gave(output={"a": 1})), ONE),
    Row("OAR-10", body(say(), call(), gave(output=None)), ONE),
    Row("OAR-11", body(say(), custom(), say()), body(say(), custom(), custom_gave(), say())),
    Row("OAR-14", body(say(), call(), say(), gave()), ONE),
    Row("OAR-14", body(say(), call(), call("c2"), gave(), say(), gave("c2")), TWO),
    Row("OAR-14", body(say(), call(), call("c2"), gave(), call("c3"), gave("c2"), gave("c3")), TWO),
    Row("ALL-01", b"{", HI),
    Row("ALL-02", body(say(), {"type": "zzz"}), HI),
    Row("ALL-02", body(say(), "hi"), HI),
    Row("ALL-02", body(), HI),
    Row("ALL-02", body(say(role="tool")), HI, also=("ALL-05",)),
    Row("ALL-02", {"input": [say()]}, HI),
    Row("ALL-02", body(say(), call(name="read file"), gave()), ONE),
    Row("ALL-02", body(say(), call(name="x" * 129), gave()), ONE),
    Row("ALL-02", body(say(), say("t", "assistant", phase="zzz"), say()), HI),
    Row("ALL-02", body(say(LONG + "x")), body(say(LONG))),
    Row("ALL-02", body(say(), call(), gave(output=LONG + "x")), ONE),
    Row("ALL-02", body(say([{"type": "input_image"}])), body(say([IMAGE]))),
    Row("ALL-02", body(say([part(kind="output_text")])), body(say([part()]))),
    Row("ALL-03", body(say(), call("é"), gave("é")), ONE),
    Row(
        "ALL-04",
        body(say(), call(), gave(), call(), gave()),
        body(say(), call(), gave(), call("c2"), gave("c2")),
    ),
    Row("ALL-05", body(say(), say("t", "assistant")), HI),
    Row("ALL-06", body(say(), call(arguments=""), gave()), ONE),
    Row("ALL-06", body(say(), call(arguments={}), gave()), ONE),
    Row("ALL-07", {**HI, "messages": []}, HI),
    Row("ALL-07", body(say(zzz=1)), HI),
    Row("ALL-07", body(say([part(cache_control={})])), body(say([part()]))),
    Row("ALL-07", {**HI, "tools": [tool(zzz=1)]}, {**HI, "tools": [tool()]}),
    Row("ALL-08", THINKS, ONE, NO_REASONING),
    Row("ALL-09", body(say("t", "assistant"), say()), HI, CAUTIOUS),
    Row("ALL-10", body(say([part(), IMAGE])), body(say([part()])), TEXT_ONLY),
    Row("ALL-15", body(say([IMAGE] * 500), call(), gave(output=[IMAGE])), body(say([IMAGE] * 500))),
    Row("ALL-15", body(say([FILE, FILE])), body(say([FILE, IMAGE])), ONE_DOCUMENT),
    Row(
        "ALL-10",
        body(say(), call(), gave(output=[FILE])),
        body(say(), call(), gave(output=[part()])),
        TEXT_ONLY,
    ),
    Row("ALL-11", body(say([part("")])), body(say([part()]))),
    Row("ALL-11", body(say([])), body(say([part()]))),
    Row("ALL-11", body(say(), say("", "assistant"), say()), HI),
    Row("ALL-12", body(say(SURROGATE)), HI),
    Row("ALL-13", {**HI, "tools": [tool(), tool()]}, {**HI, "tools": [tool(), tool("run")]}),
    Row(
        "ALL-16",
        {**HI, "model": "gpt-6-astra", "reasoning": {"effort": "none"}},
        {**HI, "model": "gpt-6-astra", "reasoning": {"effort": "max"}},
    ),
    Row("ALL-16", {**HI, "model": "o3", "temperature": 0.2}, {**HI, "model": "o3", "temperature": 1}),
    Row("ALL-14", {**HI, "tool_choice": "required"}, {**HI, "tools": [tool()], "tool_choice": "required"}),
    Row(
        "ALL-14",
        {**HI, "tools": [tool("run")], "tool_choice": CHOSEN},
        {**HI, "tools": [tool()], "tool_choice": CHOSEN},
    ),
]


def encoded(request: Json | bytes) -> bytes:
    return request if isinstance(request, bytes) else json.dumps(request).encode()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.rule)
def test_a_broken_rule_is_found_and_its_mended_twin_is_accepted(row: Row) -> None:
    faults = check(encoded(row.broken), row.dialect)
    assert {fault.rule for fault in faults} == {row.rule, *row.also}
    assert all(isinstance(fault, FAULTS[RULES[fault.rule or ""].fault_class]) for fault in faults)
    assert check(encoded(row.sanitised), row.dialect) == []


def test_every_judged_rule_of_the_family_has_a_row() -> None:
    assert {row.rule for row in ROWS} == {
        rule.id for rule in RULES.values() if rule.is_judged and rule.id.startswith(PREFIXES["responses"])
    }


FULL = body(
    {"role": "developer", "content": "be brief"},
    {"role": "user", "content": [part(), IMAGE, FILE]},
    {"type": "compaction", "encrypted_content": "gAAA"},
    thought(content=[], status=None),
    say([part("t", "output_text", annotations=[])], "assistant", phase="commentary"),
    thought("rs_2"),
    call(id="fc_1", arguments=' {"p":1}'),
    custom("c2"),
    custom_gave("c2"),
    gave(output=[part(), IMAGE, FILE]),
    say([{"type": "refusal", "refusal": "no"}], "assistant"),
    say(),
    instructions="s",
    include=["reasoning.encrypted_content"],
    tools=[tool(), {"type": "custom", "name": "sql"}, {"type": "web_search"}],
    tool_choice="none",
    stream=True,
)


OBSERVED = [
    {"model": "m", "input": "Weather in Oslo?", "store": False},
    {"model": "m", "input": [say(), gave("c0")], "previous_response_id": "resp_1"},
    {
        "model": "m",
        "input": [say(), {"type": "reasoning", "id": "rs_1", "summary": []}, call(id="fc_1"), gave()],
    },
    NAMED,
    THINKS,
    {**HI, "client_metadata": {"session": "s"}},
    body(say(internal_chat_message_metadata_passthrough={"a": 1}), {"type": "additional_tools", "tools": []}),
    body(say(), {"type": "compaction_trigger"}),
    body(say(), thought(), {"type": "web_search_call", "id": "ws_1", "status": "completed"}, say()),
    {
        **HI,
        "tools": [{"type": "namespace", "name": "n", "tools": [tool()]}, tool("n"), {"type": "tool_search"}],
    },
    {**HI, "tools": [{"type": "namespace", "name": "n", "tools": [tool()]}], "tool_choice": CHOSEN},
    body(say(), custom(), custom_gave(), say("t", "assistant"), say()),
]
"""What clients were seen to send, and the host to take."""


@pytest.mark.parametrize("request_", OBSERVED)
def test_what_clients_send_and_the_host_takes_is_accepted(request_: Json) -> None:
    assert [str(fault) for fault in check(encoded(request_), OPENAI_RESPONSES)] == []


def test_everything_a_request_may_hold_is_accepted() -> None:
    assert [str(fault) for fault in check(encoded(FULL), OPENAI_RESPONSES)] == []


@examples(500)
@given(data=st.data(), new=ANY_JSON)
def test_any_json_anywhere_in_a_request_is_judged_without_an_exception(
    data: st.DataObject, new: object
) -> None:
    place = data.draw(st.sampled_from(_places(FULL)))
    for fault in check(json.dumps(_replaced(FULL, place, new)).encode(), OPENAI_RESPONSES):
        assert len(str(fault)) < 1000


def test_items_are_judged_alike_in_pieces_and_as_a_whole() -> None:
    rows = [row for row in ROWS if isinstance(row.broken, dict) and row.dialect is OPENAI_RESPONSES]
    for row in rows:
        assert isinstance(row.broken, dict)
        if set(row.broken) != {"model", "store", "input"} or row.rule == "ALL-12":  # unreadable is unread
            continue
        for seed in range(5):
            state, faults = start(OPENAI_RESPONSES), []
            waiting = [json.dumps(item) for item in row.broken["input"]]
            while waiting:
                size = Random(seed).randint(1, 3)
                text = ",".join(waiting[:size])
                waiting = waiting[size:]
                state, found = extend(state, (f",{text}" if state.count else text).encode())
                faults += found
            faults += finish(state)
            whole = check(encoded(row.broken), OPENAI_RESPONSES)
            assert {fault.rule for fault in faults} == {fault.rule for fault in whole}


def test_one_late_output_is_one_fault_and_the_groups_after_it_are_sound() -> None:
    request = body(
        say(), call(), say(), gave(), call("c2"), gave("c2"), call("c3"), call("c4"), gave("c4"), gave("c3")
    )
    assert [(fault.rule, fault.call_ids) for fault in check(encoded(request), OPENAI_RESPONSES)] == [
        ("OAR-14", ("c1",))
    ]
