"""One tool forced by its name: in each dialect's form, named as lost where it has none, in the first request alone."""

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
from actors.core.settings.asking import Asked
from actors.core.settings.asking import parse_settings as asked_for
from actors.core.values.content import Message, Text
from actors.errors import ConfigError
from actors.testing import SERVERS, Call, Say, Think, Turn, strict_server, validate
from actors.transcripts import History, Ledger, dialect, encode, render
from tests.runtime.test_configure import find, look
from tests.runtime_support import Gate, anthropic, bodies, hosting, log, openai
from tests.session.asking.test_settings import sent
from tests.tools.test_toolsets import Bench

SCHEMA = Json(b'{"type":"object","properties":{}}')
TOOLS = (ToolSpec("read", "Read.", SCHEMA), ToolSpec("find", "Find.", SCHEMA))
MODELS = {"bedrock": "us.anthropic.claude-sonnet-4-5", "anthropic": "claude-sonnet-5"}
FUNCTION = {"type": "function", "function": {"name": "find"}}
GOOGLES = {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["find"]}}
CLAUDES = ("anthropic", "vertex_anthropic", "bedrock_anthropic")
FORMS: dict[str, object] = {
    **{name: {"type": "tool", "name": "find"} for name in CLAUDES},
    "openai_responses": {"type": "function", "name": "find"},
    **dict.fromkeys(("gemini", "vertex", "gemini_2"), GOOGLES),
    "bedrock": {"tool": {"name": "find"}},
    "kimi": None,  # it thinks, and forces nothing then
    **dict.fromkeys(("llama_cpp", "ollama"), "required"),
}
"""How a tool is forced by its name; in the other dialects as OpenAI has it."""
LOST = {"kimi", "llama_cpp", "ollama"}


def choice(body: Any) -> Any:  # Any: JSON
    """Return what a body says of the tool choice."""
    if "toolConfig" in body:
        config = body["toolConfig"]
        return config if "functionCallingConfig" in config else config.get("toolChoice")
    return body.get("tool_choice")


def asked(name: str, *tools: ToolSpec, **more: Any) -> Request:  # Any: settings
    """Return a request that forces `find`, or has other settings, and that the strict server and the judge take."""
    usual: dict[str, Any] = {
        "model": MODELS.get(name, "m"),
        "tools": tools or TOOLS,
        "tool_choice": ToolChoice("find"),
    }
    made = sent(name, Settings(**usual | more))
    assert validate(made.body, name) is None
    assert check(made.body, dialect(name)) == []
    return made


@pytest.mark.parametrize("name", PROFILES)
def test_each_dialect_forces_one_tool_in_its_own_form_or_names_the_loss(name: str) -> None:
    made = asked(name)
    assert choice(json.loads(made.body)) == FORMS.get(name, FUNCTION)
    assert made.losses == (("tool_choice",) if name in LOST else ())


@pytest.mark.parametrize("name", PROFILES)
def test_a_tool_that_goes_by_another_name_is_forced_by_that(name: str) -> None:
    odd = ToolSpec("2 find!", "Find.", SCHEMA)
    made = asked(name, TOOLS[0], odd, tool_choice=ToolChoice("2 find!"))
    if name in LOST:
        return
    (declared,) = made.names
    assert made.names == {declared: "2 find!"}
    assert declared in json.dumps(choice(json.loads(made.body)))


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
def test_where_a_tool_cannot_be_forced_or_named_the_nearest_is_sent_and_named(
    name: str,
    more: dict[str, Any],
    said: object,
    lost: bool,  # Any: settings
) -> None:
    made = asked(name, **more)
    assert choice(json.loads(made.body)) == said
    assert ("tool_choice" in made.losses) is lost


def test_a_tool_of_free_text_or_of_a_group_is_forced_as_far_as_it_can_be_said() -> None:
    free = ToolSpec.free_form("find", "Find.")
    custom = {"type": "custom", "custom": {"name": "find"}}
    assert choice(json.loads(asked("openai_chat", free).body)) == custom
    assert choice(json.loads(asked("mistral", free).body)) == FUNCTION
    assert choice(json.loads(asked("openai_responses", free).body)) == {"type": "custom", "name": "find"}
    grouped = ToolSpec("crm__find", "Find.", SCHEMA, namespace="crm")
    made = asked("openai_responses", grouped, tool_choice=ToolChoice("crm__find"))
    assert (choice(json.loads(made.body)), made.losses) == ("required", ("tool_choice",))


def test_an_answer_that_is_a_tool_stands_beside_the_one_that_is_forced() -> None:
    made = asked("groq", output=SCHEMA)
    body = json.loads(made.body)
    assert [each["function"]["name"] for each in body["tools"]] == ["read", "find", "give_final_answer"]
    assert choice(body) == FUNCTION
    after = json.loads(asked("groq", tool_choice="auto", output=SCHEMA).body)
    assert choice(after) == "required"


@pytest.mark.parametrize(
    ("tools", "says"),
    [
        (TOOLS, "tool_choice forces 'fund', which is no tool here; did you mean 'find'?"),
        (TOOLS[:1], "tool_choice forces 'fund', which is no tool here; there are read"),
        ((), "tool_choice forces 'fund', which is no tool here; there are no tools"),
    ],
)
def test_the_pure_face_refuses_a_tool_that_is_not_declared(tools: tuple[ToolSpec, ...], says: str) -> None:
    rendered = render(History([Message("user", [Text("u")])]), Ledger(), dialect("openai"))
    with pytest.raises(ConfigError) as refused:
        encode(rendered, model="m", tools=tools, tool_choice=ToolChoice("fund"))
    assert str(refused.value) == says
    made = encode(rendered, model="m", tools=TOOLS, tool_choice=ToolChoice("find"))
    assert choice(json.loads(made)) == FUNCTION


@pytest.mark.alternating
@pytest.mark.anyio
@pytest.mark.parametrize("name", SERVERS)
async def test_the_strict_server_of_each_dialect_is_sent_it_once_and_then_the_model_is_free(
    name: str,
) -> None:
    turns = [Turn(Think("Hm."), Call("find", {})), Turn(Think("So."), Say("Done."))]
    server = strict_server(name, turns, api_key="secret")
    async with hosting(a=server, environ={"KEY": "secret"}, auth={"a": "KEY"}) as runtime:
        session = await runtime.open("a", tools=[look, find])
        answer = await session.ask("Find it.", tool_choice=ToolChoice("find"))
        assert (answer.status, answer.text) == ("complete", "Done.")
        (submitted,) = [event for event in log(runtime, session) if isinstance(event, AskStarted)]
        assert submitted.asked == Asked(tool_choice=ToolChoice("find"))
    assert server.refusals == []
    forced, free = bodies(server)
    other = (
        {"any": {}} if name == "bedrock" else FORMS.get(name, FUNCTION)
    )  # its model has no name that is known
    assert (choice(forced), choice(free)) == (other, None)


@pytest.mark.anyio
async def test_what_is_lost_of_a_choice_is_told_with_the_answer_and_by_a_preview() -> None:
    server = anthropic(Turn(Say("Done.")))
    async with hosting(a=server) as runtime:
        session = await runtime.open("a", tools=[find])
        preview = await session.preview("a", tool_choice=ToolChoice("find"), thinking="adaptive")
        assert preview.losses == {"thinking": 1}
        assert (await session.preview("a", tool_choice=ToolChoice("find"))).losses == {}
        answer = await session.ask("Find it.", tool_choice=ToolChoice("find"), thinking="adaptive")
        assert answer.losses["thinking"] == 1


@pytest.mark.anyio
async def test_a_tool_that_the_session_does_not_have_is_refused_at_the_door() -> None:
    server = openai(Turn(Say("Hi.")))
    says = "tool_choice forces 'fund', which is no tool here; did you mean 'find'?"
    async with hosting(a=server) as runtime:
        session = await runtime.open("a", tools=[look, find])
        before = log(runtime, session)
        with pytest.raises(ConfigError) as refused:
            await session.ask("Find it.", tool_choice=ToolChoice("fund"))
        assert str(refused.value) == says
        with pytest.raises(ConfigError, match="is no tool here"):
            async with session.stream("Find it.", tool_choice=ToolChoice("fund")):
                pass
        with pytest.raises(ConfigError, match="is no tool here"):
            await session.preview("a", tool_choice=ToolChoice("fund"))
        assert log(runtime, session) == before
        assert (await session.ask("Hello.")).text == "Hi."


@pytest.mark.anyio
async def test_the_tools_that_count_are_those_that_the_ask_will_have() -> None:
    gate, work = Gate(), Turn(Call("work", {"name": "a"}))
    server = openai(work, Turn(Say("Done.")), Turn(Call("find", {})), Turn(Say("Found.")))
    async with hosting(a=server, seconds=60) as runtime, anyio.create_task_group() as tasks:
        session = await runtime.open("a", tools=[gate.tool])
        tasks.start_soon(session.ask, "Work!")
        await gate.started("a")
        assert await session.configure(tools=[find]) == SwitchOutcome("a", "queued", 1)
        with pytest.raises(ConfigError, match="there are find"), anyio.fail_after(10):
            await session.ask("Again.", tool_choice=ToolChoice("work"))
        gate.open("a")
        answer = await session.ask("Find it.", tool_choice=ToolChoice("find"))
        assert (answer.text, answer.losses) == ("Found.", {})
    assert [choice(body) for body in bodies(server)] == [None, None, FUNCTION, None]


@pytest.mark.anyio
async def test_a_tool_that_goes_while_the_ask_waits_is_a_loss() -> None:
    gate, answers = Gate(), []
    server = openai(Turn(Call("work", {"name": "a"})), Turn(Say("Done.")), Turn(Say("Cannot.")))

    async def wait() -> None:
        answers.append(await session.ask("Find it.", tool_choice=ToolChoice("find")))

    async with hosting(a=server, seconds=60) as runtime, anyio.create_task_group() as tasks:
        session = await runtime.open("a", tools=[gate.tool, find])
        tasks.start_soon(session.ask, "Work!")
        await gate.started("a")
        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        assert await session.configure(tools=[look]) == SwitchOutcome("a", "queued", 1)
        gate.open("a")
    (answer,) = answers
    assert (answer.text, answer.losses) == ("Cannot.", {"tool_choice": 1})
    assert [choice(body) for body in bodies(server)] == [None] * 3


@pytest.mark.anyio
async def test_a_tool_that_a_toolset_offers_since_the_last_ask_is_known() -> None:
    bench = Bench()
    server = openai(Turn(Call("more", {})), Turn(Say("Done.")))
    async with hosting(a=server) as runtime:
        session = await runtime.open("a", tools=[bench.source()])
        bench.change("work", "more")
        await anyio.wait_all_tasks_blocked()
        answer = await session.ask("More.", tool_choice=ToolChoice("more"))
        assert (answer.text, answer.losses) == ("Done.", {})
    assert [choice(body) for body in bodies(server)] == [
        {"type": "function", "function": {"name": "more"}},
        None,
    ]


@pytest.mark.parametrize(
    ("wanted", "takes"), [(ToolChoice(""), False), (ToolChoice("auto"), True), ("find", False)]
)
def test_a_name_is_no_word_and_a_word_may_be_a_name(
    wanted: Any, takes: bool
) -> None:  # Any: what is wrong is the point
    if takes:
        assert asked_for({"tool_choice": wanted}) == Asked(tool_choice=wanted)
        return
    with pytest.raises(ConfigError, match="it takes one of auto, none, required, ToolChoice"):
        asked_for({"tool_choice": wanted})
