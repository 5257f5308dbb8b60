"""`output=`: the answer is a value of the given type, with the means that each provider supports."""

import json
from dataclasses import dataclass
from typing import Any, Literal

import pydantic
import pytest
from typing_extensions import TypedDict  # the only one that pydantic supports before Python 3.12

from actors.adapters.outputs import output_means
from actors.adapters.request import Settings, ToolSpec
from actors.adapters.schemas.closed import close_schema
from actors.config import PoolSettings
from actors.core.data.jsonio import Json, dump
from actors.core.dialects.profiles import PROFILES, dialect
from actors.core.log.events import AskStarted, FormatRequested
from actors.core.schemas.arguments import ArgumentError
from actors.core.turn.output import OUTPUT_TOOL, as_text, candidates, correction
from actors.core.values.content import Message, Text, ToolCall
from actors.errors import ConfigError
from actors.session.output import output_of
from actors.strict.dialects import SERVERS, strict_server
from actors.testing import SERVER_ERROR, Call, Say, Status, Turn, validate
from tests.runtime_support import Gate, anthropic, assert_paired, bodies, log, openai, runtime_with
from tests.scripted import scripted
from tests.session.test_settings import request_with


class City(pydantic.BaseModel):
    name: str
    people: int = pydantic.Field(ge=1)


@dataclass
class Point:
    x: float
    y: float = 0.0


class Named(TypedDict):
    name: str


OSLO = '{"name":"Oslo","people":700000}'
SCHEMA = dump({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]})

BEST = {
    "openai_chat": "schema",
    "azure": "schema",
    "openai_responses": "schema",
    "anthropic": "schema",
    "gemini": "schema",
    "vertex": "schema",
    "gemini_2": "schema",
    "bedrock": "schema",
    "mistral": "schema",
    "xai": "schema",
    "vllm": "schema",
    "llama_cpp": "schema",
    "ollama": "schema",
    "groq": "tool",
}
"""How each dialect requests the output type; without an entry, by a prompt. DeepSeek uses a tool unless it thinks."""

BESIDE_TOOLS = {
    **dict.fromkeys(("openai_chat", "azure", "openai_responses", "anthropic", "bedrock"), "schema"),
    "groq": "tool",
}
MODELS = {"anthropic": "claude-sonnet-5", "bedrock": "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"}


def settings(name: str, **more: Any) -> Settings:  # Any: as `Settings` takes them
    return Settings(model=MODELS.get(name, "m"), output=SCHEMA, **more)


@pytest.mark.parametrize("name", PROFILES)
def test_each_dialect_requests_an_output_type_in_its_strictest_way(name: str) -> None:
    read = ToolSpec("read", "", Json(b'{"type":"object"}'))
    assert output_means(settings(name), dialect(name)) == BEST.get(name, "prompt")
    assert output_means(settings(name, tools=(read,)), dialect(name)) == BESIDE_TOOLS.get(name, "prompt")
    for wanted in (settings(name), settings(name, tools=(read,))):
        made = request_with(name, wanted)
        body = json.loads(made.body)
        assert validate(made.body, name) is None
        says_schema = any(key in str(body) for key in ("json_schema", "responseSchema"))
        assert says_schema is (output_means(wanted, dialect(name)) == "schema")
        assert (OUTPUT_TOOL in str(body)) is (output_means(wanted, dialect(name)) == "tool")


def test_an_output_tool_is_used_only_if_it_can_be_forced() -> None:
    deepseek = dialect("deepseek")
    assert output_means(settings("deepseek", thinking="off"), deepseek) == "tool"
    assert output_means(settings("deepseek", thinking="adaptive"), deepseek) == "prompt"
    assert output_means(settings("deepseek"), deepseek) == "prompt"
    assert output_means(Settings(model="claude-3-opus", output=SCHEMA), dialect("anthropic")) == "prompt"
    assert output_means(Settings(model="gpt-4-turbo", output=SCHEMA), dialect("openai_chat")) == "prompt"
    assert output_means(Settings(model="amazon.nova-pro-v1:0", output=SCHEMA), dialect("bedrock")) == "prompt"
    body = json.loads(request_with("groq", settings("groq")).body)
    assert body["tool_choice"] == {"type": "function", "function": {"name": OUTPUT_TOOL}}


def test_a_strict_schema_closes_every_object_or_falls_back_to_a_prompt() -> None:
    made = close_schema(output_of(City).schema)
    assert made is not None
    assert json.loads(made) == {
        "type": "object",
        "properties": {"name": {"type": "string"}, "people": {"type": "integer"}},
        "required": ["name", "people"],
        "additionalProperties": False,
    }
    assert close_schema(output_of(dict[str, int]).schema) is None
    assert output_means(
        Settings(model="claude-sonnet-5", output=output_of(dict[str, int]).schema), dialect("anthropic")
    ) == ("prompt")


@pytest.mark.parametrize(
    ("asked", "said", "value"),
    [
        (City, OSLO, City(name="Oslo", people=700000)),
        (Point, '{"x":1.5}', Point(1.5)),
        (Named, '{"name":"Oslo"}', {"name": "Oslo"}),
        (list[int], '{"value":[1,2]}', [1, 2]),
        (list[int], "[1,2]", [1, 2]),
        (int | None, '{"value":null}', None),
        (Literal["a", "b"], '{"value":"b"}', "b"),
        ({"type": "object", "properties": {"n": {"type": "integer"}}}, '{"n":3}', {"n": 3}),
        ({"type": "array", "items": {"type": "string"}}, '{"value":["a"]}', ["a"]),
        (City, f"```json\n{OSLO}\n```", City(name="Oslo", people=700000)),
        (City, f"Here it is: {OSLO} as asked.", City(name="Oslo", people=700000)),
    ],
    ids=str,
)
def test_an_answer_is_parsed_as_the_output_type(
    asked: Any, said: str, value: Any
) -> None:  # Any: a type and its value
    read = output_of(asked).parse(said, "unambiguous")
    assert isinstance(read, tuple)
    assert read[0] == value


def test_a_correction_names_the_errors_of_the_answer() -> None:
    form = output_of(City)
    assert form.parse("Oslo is nice.", "unambiguous") == []
    assert "not one JSON value" in correction([])
    wrong = form.parse('{"name":"Oslo","people":0}', "unambiguous")
    assert isinstance(wrong, list)
    assert [error.path for error in wrong] == ["people"]
    missing = form.parse('{"people":2}', "unambiguous")
    assert isinstance(missing, list)
    assert "name" in correction(missing)
    assert "missing" in correction(missing)
    assert correction([ArgumentError("a", "text", "3")]).splitlines()[1] == "- a: expected text, got 3"


@pytest.mark.parametrize(
    "asked",
    [object(), {"type": 3}, {"$ref": "https://example.com/x"}, "a text"],
    ids=["object", "type", "remote", "text"],
)
# Any: any value that a caller may pass
def test_an_output_type_without_a_schema_raises_a_config_error(asked: Any) -> None:
    with pytest.raises(ConfigError, match=r"^output="):
        output_of(asked)


def test_a_call_of_the_output_tool_becomes_the_text_of_the_answer() -> None:
    said = Message("assistant", [ToolCall("c1", OUTPUT_TOOL, {"a": 1}), ToolCall("c2", "read")])
    made = as_text(said)
    assert made.blocks == (Text('{"a":1}'), said.blocks[1])
    assert [each.value for each in candidates(made.text, "strict")] == [{"a": 1}]


def test_removing_reasoning_in_many_tags_from_an_answer_takes_linear_time() -> None:
    assert candidates("<thought></thought>" * 200_000 + "{}", "unambiguous")[0].value == {}


@pytest.mark.alternating
@pytest.mark.anyio
@pytest.mark.parametrize("name", SERVERS)
async def test_every_provider_returns_the_same_output(name: str) -> None:
    """A first answer of the wrong form is corrected within the turn, and the session continues afterwards."""
    last = Call(OUTPUT_TOOL, json.loads(OSLO)) if name == "groq" else Say(OSLO)
    server = strict_server(name, [Turn(Say("It is Oslo.")), Turn(last), Turn(Say("Yes."))])
    async with scripted(server) as (_, runtime, session):
        answer = await session.ask("Which city?", output=City)
        assert (answer.status, answer.output, answer.rounds) == (
            "complete",
            City(name="Oslo", people=700000),
            2,
        )
        assert (await session.ask("Sure?")).text == "Yes."
        told = [event for event in log(runtime, session) if isinstance(event, FormatRequested)]
        assert len(told) == 1
        ledger = await session.ledger()
        assert [*ledger.interactions()] == []


@pytest.mark.anyio
@pytest.mark.parametrize("made", [openai, anthropic])
async def test_tools_run_before_the_answer_of_the_output_type(made: Any) -> None:  # Any: a server
    server, gate = made(Turn(Call("work", {"name": "a"})), Turn(Say(OSLO))), Gate()
    gate.open("a")
    async with scripted(server, tools=[gate.tool]) as (_, _, session):
        answer = await session.ask("Which city?", output=City)
        assert answer.output == City(name="Oslo", people=700000)
        for body in bodies(server):
            assert_paired(body)


@pytest.mark.anyio
async def test_an_ask_fails_after_max_corrections_of_its_output() -> None:
    async with scripted("openai_chat", *[Turn(Say("no"))] * 3, Turn(Say("free again"))) as (_, _, session):
        answer = await session.ask("Which city?", output=City, max_corrections=2, check=False)
        assert (answer.status, answer.output, answer.rounds) == ("failed", None, 3)
        assert answer.error == "the answer does not have the required format: it is not one JSON value"
        assert (await session.ask("And now?")).text == "free again"


@pytest.mark.anyio
async def test_the_error_of_an_invalid_output_names_missing_fields_but_no_values() -> None:
    said = '{"name": ["canary"], "height": "canary"}'
    async with scripted("openai_chat", Turn(Say(said))) as (_, _, session):
        answer = await session.ask("Which city?", output=City, max_corrections=0, check=False)
    assert answer.error == (
        "the answer does not have the required format: name: expected string; people: missing"
    )


@pytest.mark.anyio
async def test_corrections_are_counted_across_a_failover() -> None:
    no = Turn(Say("no"))
    first, second = openai(no, faults={1: Status(401)}), openai(no, no, Turn(Say("never")))
    pools = {"both": PoolSettings(members=("a", "b"))}
    async with runtime_with(pools=pools, a=first, b=second) as runtime:
        session = await runtime.open("both")
        answer = await session.ask("Which city?", output=City, max_corrections=2, check=False)
        assert answer.status == "failed"
        assert answer.error.startswith("the answer does not have the required format: ")
        assert (len(bodies(first)), len(bodies(second))) == (2, 2)


@pytest.mark.anyio
async def test_a_failover_backend_receives_the_output_type_too() -> None:
    """The first backend receives a schema in its request, the second an instruction, which the log contains."""
    first, second = openai(Turn(Say("never")), faults={0: SERVER_ERROR}), anthropic(Turn(Say(OSLO)))
    pools = {"both": PoolSettings(members=("a", "b"))}
    async with runtime_with(pools=pools, a=first, b=second) as runtime:
        session = await runtime.open("both")
        answer = await session.ask("Which city?", output=City)
        assert (answer.output, len(answer.attempts)) == (City(name="Oslo", people=700000), 2)
        (body,) = bodies(second)
        assert "JSON Schema" in str(body["messages"])
        assert second.refusals == []
        kept = [event.asked for event in log(runtime, session) if isinstance(event, AskStarted)]
        assert [item.output for item in kept if item is not None] == [output_of(City).schema]
