"""Check that foreign calls get ids in the form of each dialect."""

import json
import re
from collections import defaultdict

import pytest

from actors.core.check import check
from actors.core.data.jsonio import quote
from actors.core.dialects.profiles import PROFILES
from actors.core.history.history import History
from actors.core.ledger import Ledger
from actors.core.values.content import Message, ProviderState, Text, ToolCall, ToolResult
from actors.core.values.identity import CallId, mint
from actors.transcripts import encode, render
from tests.core.wire_calls import read_body
from tests.generated.histories import READERS

FORMS = {
    "openai": ("REQ-915-018", r"call_[A-Za-z0-9]{24}"),
    "anthropic": ("REQ-915-019", r"toolu_[A-Za-z0-9]{24}"),
    "kimi": ("REQ-915-020", r"functions\.read:\d+"),
    "mistral": ("REQ-915-021", r"[A-Za-z0-9]{9}"),
    "bedrock": (None, r"tooluse_[A-Za-z0-9]{22}"),
}
"""The requirement for each style of ids, and its form."""
MINTING = [
    pytest.param(
        name,
        FORMS[dialect.ids.style][1],
        marks=pytest.mark.requirement(*filter(None, [FORMS[dialect.ids.style][0]])),
    )
    for name, dialect in sorted(PROFILES.items())
    if dialect.ids.style != "none"
]
FOREIGN = ["c1", "toolu_01Ab12Cd34Ef56Gh78Ij90", "functions.read:7", "x" * 300, "é b", "", mint(1)]
"""Canonical ids as imports have them: of other providers, too long, with odd characters, empty, and ours."""
STRANGER = READERS["vertex"]


def conversation(ids: list[str]) -> list[Message]:
    messages = [Message("user", [Text("Read them.")])]
    for call_id in ids:
        native = ProviderState("call_id", quote(call_id), STRANGER)
        messages.append(
            Message("assistant", [ToolCall(CallId(call_id), "read", {}, native=native)], 0, STRANGER)
        )
        messages.append(Message("tool", [ToolResult(CallId(call_id), f"R<{call_id}>")]))
    return [*messages, Message("user", [Text("Go on.")])]


@pytest.mark.parametrize(("name", "form"), MINTING)
def test_the_ids_of_foreign_calls_have_the_form_of_the_dialect(name: str, form: str) -> None:
    dialect = PROFILES[name]
    rendered = render(History(conversation(FOREIGN)), Ledger(), dialect, binding=READERS[name])
    body = encode(rendered, model="m")
    assert check(body, dialect) == []
    said = read_body(body)
    calls = [each.id for each in said if each.kind == "call"]
    assert len(calls) == len(set(calls)) == len(FOREIGN)
    assert [call_id for call_id in calls if not re.fullmatch(form, call_id)] == []
    answers = defaultdict(list)
    for each in said:
        if each.kind == "result":
            answers[each.id].append(each.content)
    assert [answers[call_id] for call_id in calls] == [[f"R<{call_id}>"] for call_id in FOREIGN]


@pytest.mark.requirement("REQ-915-019", "REQ-915-017")
@pytest.mark.parametrize(
    "name", [name for name, dialect in PROFILES.items() if dialect.family == "anthropic"]
)
def test_a_foreign_call_and_its_result_share_a_toolu_id_on_the_wire(name: str) -> None:
    history = History(conversation(FOREIGN))
    body = encode(render(history, Ledger(), PROFILES[name], binding=READERS[name]), model="m")
    blocks = [
        block
        for message in json.loads(body)["messages"]
        for block in message["content"]
        if isinstance(block, dict)
    ]
    calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
    results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    assert calls == results
    assert len(set(calls)) == len(FOREIGN)
    assert [call_id for call_id in calls if not re.fullmatch(r"toolu_[A-Za-z0-9]{24}", call_id)] == []


@pytest.mark.parametrize(("name", "form"), MINTING)
def test_a_foreign_call_has_the_same_id_in_every_later_request(name: str, form: str) -> None:
    dialect, ids = PROFILES[name], ["c1", "c2", "c3"]
    seen = []
    for count in range(1, 4):
        rendered = render(History(conversation(ids[:count])), Ledger(), dialect, binding=READERS[name])
        seen.append([each.id for each in read_body(encode(rendered, model="m")) if each.kind == "call"])
    assert seen == [seen[2][:1], seen[2][:2], seen[2]]
    assert all(re.fullmatch(form, call_id) for call_id in seen[2])
