"""Sessions that continue an imported transcript keep its report and its free-form calls."""

from typing import Any

import pytest

from actors.core.dialects.profiles import PROFILES
from actors.core.values.content import Message, Text, ToolResult
from actors.strict.dialects import SERVERS, strict_server
from actors.testing import Say, Turn
from actors.transcripts import encode, from_wire, render
from tests.adapters.test_custom_tools import ITEMS, PATCH
from tests.runtime_support import bodies, fold_log, openai, runtime_with

pytestmark = pytest.mark.anyio

BROKEN = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Weather?", "name": "x"},
    {"role": "assistant", "tool_calls": [{"id": "", "function": {"name": "f", "arguments": '{"ci'}}]},
    {"role": "tool", "tool_call_id": "zz", "content": "lost"},
]


@pytest.mark.requirement("PROMISE-13")
async def test_a_session_and_its_log_keep_the_report_of_the_import() -> None:
    history, _ = from_wire(BROKEN, "openai")
    assert history.report.left_out == (("messages[].name", 1),)
    server = openai(Turn(Say("Yes.")), Turn(Say("No.")))
    async with runtime_with(a=server) as runtime:
        session = await runtime.open("a", messages=history)
        assert (await session.history()).report == history.report
        assert (await session.ask("And?")).text == "Yes."
        assert session._lifecycle.passivate()  # passivated, as an idle session is
        assert (await session.history()).report == history.report
        assert (await session.ask("And?")).text == "No."
        assert (await session.history()).system == "Be brief."
        state, _ = fold_log(runtime, session)
        assert (state.history.report, state.history.system) == (history.report, "Be brief.")
    assert server.refusals == []
    assert [body["messages"][0] for body in bodies(server)] == [
        {"role": "system", "content": "Be brief."}
    ] * 2


@pytest.mark.requirement("PROMISE-13")
async def test_messages_passed_to_open_are_normalized_and_its_system_prompt_is_kept() -> None:
    odd = Message("tool", (ToolResult("nobody", "lost"),))
    async with runtime_with(a=openai(Turn(Say("Yes.")))) as runtime:
        session = await runtime.open("a", messages=[Message("user", (Text("Hi."),)), odd])
        (note,) = (await session.history()).report.notes
        assert note == "messages[1]: result for unknown call 'nobody' kept as text"
        other = await runtime.open("a", messages=from_wire(BROKEN, "openai")[0], system="Be long.")
        assert (await other.history()).system == "Be long."
        preview = await other.preview("a")
        assert b"Be long." in preview.body


async def test_a_preview_reports_settings_and_tools_that_the_encoder_assumed() -> None:
    async with runtime_with(a=strict_server("anthropic"), b=strict_server("bedrock"), c=openai()) as runtime:
        session = await runtime.open("c", messages=from_wire(ITEMS, "responses")[0])
        assert (await session.preview("a")).assumed == ("max_tokens 8192",)
        tools = ("a tool 'apply_patch'", "a tool 'crm__lookup'", "a tool 'db__sql'")
        assert (await session.preview("b")).assumed == tools
        assert (await session.preview("c")).assumed == ()


@pytest.mark.alternating
@pytest.mark.requirement("PROMISE-1", "PROMISE-4")
@pytest.mark.parametrize("name", SERVERS)
async def test_free_form_calls_and_namespaces_survive_every_strict_server(name: str) -> None:
    here = strict_server("openai_responses", [Turn(Say("One.")), Turn(Say("Three."))])
    there = strict_server(name, [Turn(Say("Two."))])
    async with runtime_with(here=here, there=there) as runtime:
        session = await runtime.open("here", messages=from_wire(ITEMS, "responses")[0])
        assert (await session.ask("And?")).text == "One."
        await session.switch("there")
        assert (await session.ask("And?")).text == "Two."
        await session.switch("here")
        assert (await session.ask("And?")).text == "Three."
    assert here.refusals == there.refusals == []
    first, last = bodies(here)
    assert last["input"][: len(first["input"])] == first["input"]
    assert [without_call_id(item) for item in first["input"][: len(ITEMS)]] == [
        without_call_id(item) for item in ITEMS
    ]
    (sent,) = bodies(there)
    made = [call for message in from_wire(sent, name)[0] for call in message.calls]
    assert [call.arguments for call in made] == [{"input": PATCH}, {"a": 1}, {"input": ""}]
    assert any(call.text == PATCH for call in made) == PROFILES[name].request.custom_tools


def without_call_id(item: dict[str, Any]) -> dict[str, Any]:  # Any: JSON
    """Return an item without the id of its call."""
    return {key: value for key, value in item.items() if key != "call_id"}


def test_encode_uses_the_imported_system_prompt_by_default() -> None:
    history, ledger = from_wire(BROKEN, "openai")
    rendered = render(history, ledger, PROFILES["gemini"])
    assert b'"Be brief."' in encode(rendered, model="m")
    assert b'"Be long."' in (other := encode(rendered, model="m", system="Be long."))
    assert b"Be brief." not in other
    assert b"systemInstruction" not in encode(rendered, model="m", system="")
