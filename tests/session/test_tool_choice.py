"""A tool choice by name: each dialect's form, or a reported loss, and only in the first request."""

import json
from typing import Any

import anyio
import pytest

from actors import SwitchOutcome, ToolChoice
from actors.adapters.request import Request, Settings, ToolSpec
from actors.core.check import check
from actors.core.data.jsonio import Json
from actors.core.dialects.profiles import PROFILES
from actors.core.log.events import AskStarted
from actors.core.settings.asking import StoredAskSettings
from actors.core.settings.asking import parse_settings as asked_for
from actors.core.values.content import Message, Text
from actors.errors import ConfigError
from actors.testing import SERVERS, Call, Say, Think, Turn, strict_server, validate
from actors.transcripts import History, Ledger, dialect, encode, render
from tests.runtime.test_configure import find, look
from tests.runtime_support import Gate, anthropic, bodies, log, openai, runtime_with
from tests.scripted import scripted
from tests.session.test_settings import request_with
from tests.tools.test_toolsets import Bench

SCHEMA = Json(b'{"type":"object","properties":{}}')
TOOLS = (ToolSpec("read", "Read.", SCHEMA), ToolSpec("find", "Find.", SCHEMA))
MODELS = {"bedrock": "us.anthropic.claude-sonnet-4-5", "anthropic": "claude-sonnet-5"}
FUNCTION = {"type": "function", "function": {"name": "find"}}
GOOGLES = {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["find"]}}
CLAUDES = ("anthropic", "vertex_anthropic", "bedrock_anthropic")
CHOICES: dict[str, object] = {
    **{name: {"type": "tool", "name": "find"} for name in CLAUDES},
    "openai_responses": {"type": "function", "name": "find"},
    **dict.fromkeys(("gemini", "vertex", "gemini_2"), GOOGLES),
    "bedrock": {"tool": {"name": "find"}},
    "kimi": None,  # it always thinks, and then cannot be forced
    **dict.fromkeys(("llama_cpp", "ollama"), "required"),
}
"""The form of a tool choice by name. Dialects without an entry use OpenAI's."""
LOST = {"kimi", "llama_cpp", "ollama"}


def tool_choice(body: Any) -> Any:  # Any: JSON
    """Return the tool choice of a body."""
    if "toolConfig" in body:
        config = body["toolConfig"]
        return config if "functionCallingConfig" in config else config.get("toolChoice")
    return body.get("tool_choice")


def request_for(name: str, *tools: ToolSpec, **more: Any) -> Request:  # Any: settings
    """Return a request that forces `find`, or has other settings, after server and judge have accepted it."""
    usual: dict[str, Any] = {
        "model": MODELS.get(name, "m"),
        "tools": tools or TOOLS,
        "tool_choice": ToolChoice("find"),
    }
    made = request_with(name, Settings(**usual | more))
    assert validate(made.body, name) is None
    assert check(made.body, dialect(name)) == []
    return made


@pytest.mark.parametrize("name", PROFILES)
def test_each_dialect_forces_a_tool_in_its_own_form_or_reports_a_loss(name: str) -> None:
    made = request_for(name)
    assert tool_choice(json.loads(made.body)) == CHOICES.get(name, FUNCTION)
    assert made.losses == (("tool_choice",) if name in LOST else ())


@pytest.mark.parametrize("name", PROFILES)
def test_a_tool_is_forced_by_the_name_that_the_provider_accepts(name: str) -> None:
    odd = ToolSpec("2 find!", "Find.", SCHEMA)
    made = request_for(name, TOOLS[0], odd, tool_choice=ToolChoice("2 find!"))
    if name in LOST:
        return
    (declared,) = made.names
    assert made.names == {declared: "2 find!"}
    assert declared in json.dumps(tool_choice(json.loads(made.body)))


@pytest.mark.parametrize(
    ("name", "more", "said", "lost"),
    [
        ("anthropic", {"thinking": "adaptive"}, {"type": "tool", "name": "find"}, False),
        ("bedrock", {"thinking": "adaptive"}, {"tool": {"name": "find"}}, False),
        ("anthropic", {"model": "claude-opus-5-5"}, None, True),
        ("kimi", {"thinking": "off"}, None, True),
        ("deepseek", {"thinking": "off"}, FUNCTION, False),
        ("mistral", {"thinking": "adaptive"}, FUNCTION, False),
        ("bedrock", {"model": "mistral.mistral-large-2407-v1:0"}, {"any": {}}, True),
        ("bedrock", {"model": "amazon.nova-pro-v1:0"}, {"tool": {"name": "find"}}, False),
        ("bedrock", {"model": "arn:aws:bedrock:us-east-1::x/y"}, {"any": {}}, True),
    ],
)
def test_an_unsupported_tool_choice_is_replaced_by_the_nearest_choice_and_reported_as_a_loss(
    name: str,
    more: dict[str, Any],
    said: object,
    lost: bool,  # Any: settings
) -> None:
    made = request_for(name, **more)
    assert tool_choice(json.loads(made.body)) == said
    assert ("tool_choice" in made.losses) is lost


def test_free_form_and_grouped_tools_are_forced_in_their_own_way() -> None:
    free = ToolSpec.free_form("find", "Find.")
    custom = {"type": "custom", "custom": {"name": "find"}}
    assert tool_choice(json.loads(request_for("openai_chat", free).body)) == custom
    assert tool_choice(json.loads(request_for("mistral", free).body)) == FUNCTION
    assert tool_choice(json.loads(request_for("openai_responses", free).body)) == {
        "type": "custom",
        "name": "find",
    }
    grouped = ToolSpec("crm__find", "Find.", SCHEMA, namespace="crm")
    made = request_for("openai_responses", grouped, tool_choice=ToolChoice("crm__find"))
    assert (tool_choice(json.loads(made.body)), made.losses) == ("required", ("tool_choice",))


def test_an_output_tool_is_declared_in_addition_to_a_forced_tool() -> None:
    made = request_for("groq", output=SCHEMA)
    body = json.loads(made.body)
    assert [each["function"]["name"] for each in body["tools"]] == ["read", "find", "give_final_answer"]
    assert tool_choice(body) == FUNCTION
    after = json.loads(request_for("groq", tool_choice="auto", output=SCHEMA).body)
    assert tool_choice(after) == "required"


@pytest.mark.parametrize(
    ("tools", "says"),
    [
        (TOOLS, "tool_choice forces the tool 'fund', which this session does not have; did you mean 'find'?"),
        (
            TOOLS[:1],
            "tool_choice forces the tool 'fund', which this session does not have; its tools are read",
        ),
        ((), "tool_choice forces the tool 'fund', which this session does not have; it has no tools"),
    ],
)
def test_encode_rejects_a_choice_of_an_undeclared_tool(tools: tuple[ToolSpec, ...], says: str) -> None:
    rendered = render(History([Message("user", [Text("u")])]), Ledger(), dialect("openai"))
    with pytest.raises(ConfigError) as refused:
        encode(rendered, model="m", tools=tools, tool_choice=ToolChoice("fund"))
    assert str(refused.value) == says
    made = encode(rendered, model="m", tools=TOOLS, tool_choice=ToolChoice("find"))
    assert tool_choice(json.loads(made)) == FUNCTION


@pytest.mark.alternating
@pytest.mark.anyio
@pytest.mark.parametrize("name", SERVERS)
async def test_a_tool_is_forced_only_in_the_first_request_of_an_ask(
    name: str,
) -> None:
    turns = [Turn(Think("Hm."), Call("find", {})), Turn(Think("So."), Say("Done."))]
    server = strict_server(name, turns, api_key="secret")
    async with runtime_with(a=server, environ={"KEY": "secret"}, auth={"a": "KEY"}) as runtime:
        session = await runtime.open("a", tools=[look, find])
        answer = await session.ask("Find it.", tool_choice=ToolChoice("find"))
        assert (answer.status, answer.text) == ("complete", "Done.")
        (submitted,) = [event for event in log(runtime, session) if isinstance(event, AskStarted)]
        assert submitted.asked == StoredAskSettings(tool_choice=ToolChoice("find"))
    assert server.refusals == []
    forced, free = bodies(server)
    other = {"any": {}} if name == "bedrock" else CHOICES.get(name, FUNCTION)  # its model name is unknown
    assert (tool_choice(forced), tool_choice(free)) == (other, None)


@pytest.mark.anyio
async def test_a_tool_choice_that_cannot_be_sent_is_reported_by_answer_and_preview() -> None:
    server = anthropic(Turn(Say("Done.")))
    async with runtime_with(a=server) as runtime:
        session = await runtime.open("a", tools=[find])
        preview = await session.preview("a", tool_choice=ToolChoice("find"), thinking="adaptive")
        assert preview.losses == {"thinking": 1}
        assert (await session.preview("a", tool_choice=ToolChoice("find"))).losses == {}
        answer = await session.ask("Find it.", tool_choice=ToolChoice("find"), thinking="adaptive")
        assert answer.losses["thinking"] == 1


@pytest.mark.anyio
async def test_an_ask_that_forces_an_unknown_tool_is_rejected() -> None:
    server = openai(Turn(Say("Hi.")))
    says = "tool_choice forces the tool 'fund', which this session does not have; did you mean 'find'?"
    async with runtime_with(a=server) as runtime:
        session = await runtime.open("a", tools=[look, find])
        before = log(runtime, session)
        with pytest.raises(ConfigError) as refused:
            await session.ask("Find it.", tool_choice=ToolChoice("fund"))
        assert str(refused.value) == says
        with pytest.raises(ConfigError, match="which this session does not have"):
            async with session.stream("Find it.", tool_choice=ToolChoice("fund")):
                pass
        with pytest.raises(ConfigError, match="which this session does not have"):
            await session.preview("a", tool_choice=ToolChoice("fund"))
        assert log(runtime, session) == before
        assert (await session.ask("Hello.")).text == "Hi."


@pytest.mark.anyio
async def test_a_forced_tool_is_looked_up_in_the_tools_of_its_own_ask() -> None:
    gate, work = Gate(), Turn(Call("work", {"name": "a"}))
    server = openai(work, Turn(Say("Done.")), Turn(Call("find", {})), Turn(Say("Found.")))
    async with runtime_with(a=server, seconds=60) as runtime, anyio.create_task_group() as tasks:
        session = await runtime.open("a", tools=[gate.tool])
        tasks.start_soon(session.ask, "Work!")
        await gate.started("a")
        assert await session.configure(tools=[find]) == SwitchOutcome("a", "queued", 1)
        with pytest.raises(ConfigError, match="its tools are find"), anyio.fail_after(10):
            await session.ask("Again.", tool_choice=ToolChoice("work"))
        gate.open("a")
        answer = await session.ask("Find it.", tool_choice=ToolChoice("find"))
        assert (answer.text, answer.losses) == ("Found.", {})
    assert [tool_choice(body) for body in bodies(server)] == [None, None, FUNCTION, None]


@pytest.mark.anyio
async def test_a_forced_tool_that_is_removed_while_its_ask_is_queued_is_reported_as_a_loss() -> None:
    gate, answers = Gate(), []
    server = openai(Turn(Call("work", {"name": "a"})), Turn(Say("Done.")), Turn(Say("Cannot.")))

    async def wait() -> None:
        answers.append(await session.ask("Find it.", tool_choice=ToolChoice("find")))

    async with runtime_with(a=server, seconds=60) as runtime, anyio.create_task_group() as tasks:
        session = await runtime.open("a", tools=[gate.tool, find])
        tasks.start_soon(session.ask, "Work!")
        await gate.started("a")
        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        assert await session.configure(tools=[look]) == SwitchOutcome("a", "queued", 1)
        gate.open("a")
    (answer,) = answers
    assert (answer.text, answer.losses) == ("Cannot.", {"tool_choice": 1})
    assert [tool_choice(body) for body in bodies(server)] == [None] * 3


@pytest.mark.anyio
async def test_a_tool_added_by_a_toolset_can_be_forced_by_the_next_ask() -> None:
    bench = Bench()
    server = openai(Turn(Call("more", {})), Turn(Say("Done.")))
    async with scripted(server, tools=[bench.source()]) as (_, _, session):
        bench.change("work", "more")
        await anyio.wait_all_tasks_blocked()
        answer = await session.ask("More.", tool_choice=ToolChoice("more"))
        assert (answer.text, answer.losses) == ("Done.", {})
    assert [tool_choice(body) for body in bodies(server)] == [
        {"type": "function", "function": {"name": "more"}},
        None,
    ]


@pytest.mark.parametrize(
    ("wanted", "takes"), [(ToolChoice(""), False), (ToolChoice("auto"), True), ("find", False)]
)
def test_the_tool_choice_argument_accepts_a_mode_or_a_tool_choice_object(
    wanted: Any, takes: bool
) -> None:  # Any: any value that a caller may pass
    if takes:
        assert asked_for({"tool_choice": wanted}) == StoredAskSettings(tool_choice=wanted)
        return
    with pytest.raises(ConfigError, match="but must be one of auto, none, required, ToolChoice"):
        asked_for({"tool_choice": wanted})
