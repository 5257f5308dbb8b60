"""Check how the judge describes a fault and which requests it accepts. `tests/rules` breaks each rule."""

import json
from typing import Any

import pytest

from actors.core.check import check
from actors.core.data.record import replace
from actors.core.dialects.dialect import Dialect
from actors.core.dialects.profiles import ANTHROPIC, OPENAI_CHAT, PROFILES
from tests.rules import anthropic as claude
from tests.rules import openai_chat as chat
from tests.rules.anthropic import (
    LONG_MARK,
    PICTURE,
    answer,
    assistant,
    server_answer,
    server_use,
    thinking,
    use,
    user,
)
from tests.rules.openai_chat import BATCH, FILE, LINKED, USER, call, calls, result
from tests.rules.row import Json, encode_request

PER_MESSAGE = replace(OPENAI_CHAT, ids=replace(OPENAI_CHAT.ids, unique_scope="message"))
A, B = "call_a", "call_b"
C = "toolu_a"
PLACES = [
    (chat.body(USER, BATCH, result()), OPENAI_CHAT, (B,), f"messages[2]: no result for tool call '{B}'"),
    (chat.body(USER, calls(call(name="a b")), result()), OPENAI_CHAT, (), "messages[1].tool_calls[0].function"),
    (chat.body(*chat.ROUND, result()), OPENAI_CHAT, (A,), "messages[3]: a second result"),
    (chat.body(*chat.ROUND, USER, result()), OPENAI_CHAT, (A,), f"messages[4]: a result for '{A}'"),
    (claude.body(*claude.PAIR, user(answer("toolu_b"))), ANTHROPIC, (C,),
     f"messages[2]: no result for tool call '{C}'"),
    (claude.body(*claude.ROUND[:2], user(answer(), answer())), ANTHROPIC, (C,), "messages[2].content[1]: a second"),
    (claude.body(user("u"), 1, assistant("t"), user("u")), ANTHROPIC, (), "messages[1]: a message must be"),
    (claude.body(user("u"), claude.say("x"), assistant("t"), user("u")), ANTHROPIC, (), "messages[1]: role 'x'"),
]  # fmt: skip


@pytest.mark.requirement("REQ-915-040")
@pytest.mark.parametrize(("body", "dialect", "ids", "words"), PLACES)
def test_a_reported_fault_contains_its_json_path_and_the_ids_of_its_calls(
    body: Json, dialect: Dialect, ids: tuple[str, ...], words: str
) -> None:
    (fault,) = check(encode_request(body), dialect)
    assert fault.call_ids == ids
    assert str(fault).startswith(words)


def test_a_complete_openai_request_is_accepted() -> None:
    custom = {"id": "c3", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
    body = chat.body(
        chat.say("system", "be brief"),
        chat.say("developer", [chat.text("more")]),
        chat.say("user", [chat.text(), LINKED, FILE], name="bob"),
        chat.say("assistant", "t", tool_calls=[call("c1", arguments=' {"p":1}'), call("c2"), custom]),
        {**result("c3"), "name": "sql"},
        result("c1", [chat.text()]),
        result("c2", ""),
        chat.say("assistant", [chat.text(), {"type": "refusal", "refusal": "no"}]),
        chat.say("assistant", None, refusal="no"),
        {"role": "assistant", "tool_calls": [call("c4")]},
        result("c4"),
        USER,
        chat.say("user", "\U0001f600"),
        tools=[chat.tool(strict=True), {"type": "custom", "custom": {"name": "sql"}}],
        tool_choice="none",
        stream=True,
        stream_options={"include_usage": True},
    )
    assert check(json.dumps(body).encode(), OPENAI_CHAT) == []  # ASCII: the pair of escapes is one character


@pytest.mark.parametrize(
    "dialect",
    [PER_MESSAGE, PROFILES["mistral"], PROFILES["deepseek"]],
    ids=["changed", "mistral", "deepseek"],
)
def test_a_repeated_call_id_is_accepted_if_ids_are_unique_per_message(dialect: Dialect) -> None:
    words: dict[str, Any] = {"reasoning_content": "hm"} if dialect.name == "deepseek" else {}
    turn = ({"role": "assistant", "tool_calls": [call("aaaaaaaa1")], **words}, result("aaaaaaaa1"))
    assert check(encode_request(chat.body(USER, *turn, *turn)), dialect) == []


def test_a_complete_anthropic_request_is_accepted() -> None:
    document = {"type": "document", "source": {"type": "url", "url": "https://a.example/d.pdf"}}
    body = claude.body(
        claude.say("user", "plain"),
        assistant(
            thinking(), claude.redacted_thinking(), claude.text("t", citations=None), use("t1"), use("t2")
        ),
        user(
            answer("t2", [claude.text(), PICTURE, document]),
            {"type": "tool_result", "tool_use_id": "t1"},
            "go",
            PICTURE,
        ),
        assistant(server_use(), server_answer(), "found"),
        user(claude.text("thanks", cache_control=LONG_MARK), document),
        system=[claude.text("be brief", cache_control=LONG_MARK)],
        tools=[
            claude.tool(type="custom"),
            {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
        ],
        tool_choice={"type": "none"},
        thinking={"type": "adaptive"},
        temperature=None,
        stream=True,
    )
    assert [str(fault) for fault in check(encode_request(body), ANTHROPIC)] == []
