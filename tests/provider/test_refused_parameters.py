"""If a provider refuses an optional parameter, later requests to that backend, and only to it, omit the parameter."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from actors.config import Config, FileSettings
from actors.core.log.events import EpochBegan, OmittedParameter, RequestSent
from actors.core.stream_events.round_events import RequestSentEvent
from actors.runtime.runtime import Runtime
from actors.strict.rules.base import Json
from actors.strict.server import LoopbackServer, serve
from actors.testing import Call, ErrorInStream, OpenAIServer, Say, Script, Status, Turn
from actors.tools import Tool, tool
from tests.provider.test_failover import pool
from tests.runtime_support import backend_at, log, runtime_with
from tests.scripted import scripted
from tests.strict_hosts import strict_host

pytestmark = pytest.mark.anyio

MODEL = "house-model"
"""A model of no known family: every setting is sent to it."""
MODELS = {"a": MODEL}
STREAMED = pytest.mark.parametrize("stream", [True, False])


def at(body: Json, path: str) -> Any:  # Any: a value of a body under test
    """Return the value at a path of keys, None if there is none."""
    for key in path.split("."):
        body = body.get(key) if isinstance(body, dict) else None
    return body


def refusing(path: str, refusal: Status, value: object = ...) -> Callable[[int, Json], Status | None]:
    """Return faults that refuse a body with any value, or one particular value, at a path."""

    def fault(_: int, request: Json) -> Status | None:
        found = at(request, path)
        return refusal if found is not None and value in (..., found) else None

    return fault


def host(name: str, *turns: Turn, faults: Any = None) -> LoopbackServer:  # Any: faults
    server = strict_host(name, Script(list(turns)))
    server.faults = faults or {}
    return server


def sent_bodies(server: LoopbackServer) -> list[Json]:
    """Return the bodies a server received."""
    return [json.loads(exchange.body) for exchange in server.requests]


@tool
def look() -> str:
    """Look."""
    return "Nothing."


UNSUPPORTED: Mapping[str, tuple[str, str, Status, dict[str, Any], str]] = {  # Any: settings of an ask
    "chat temperature": (
        "openai_chat",
        "temperature",
        Status(
            400,
            message="Unsupported parameter: 'temperature' is not supported with this model.",
            code="unsupported_parameter",
            param="temperature",
        ),
        {"temperature": 0.2},
        "temperature",
    ),
    "chat stop": (
        "openai_chat",
        "stop",
        Status(400, message="Unsupported parameter: 'stop' is not supported with this model.", param="stop"),
        {"stop": ("x",)},
        "stop",
    ),
    "chat effort": (
        "openai_chat",
        "reasoning_effort",
        Status(400, message="Unrecognized request argument supplied: reasoning_effort"),
        {"effort": "low"},
        "effort",
    ),
    "chat cache": (
        "openai_chat",
        "prompt_cache_key",
        Status(400, message="Unknown parameter: 'prompt_cache_key'.", code="unknown_parameter"),
        {},
        "cache",
    ),
    "chat stream options": (
        "openai_chat",
        "stream_options",
        Status(400, message="Extra inputs are not permitted, field: 'stream_options', value: {}"),
        {},
        "stream_options",
    ),
    "chat stream": (
        "openai_chat",
        "stream",
        Status(400, message="Unsupported parameter: 'stream'.", param="stream"),
        {},
        "stream",
    ),
    "responses include": (
        "openai_responses",
        "include",
        Status(400, message="Unsupported parameter: 'include'.", param="include"),
        {},
        "include",
    ),
    "responses cache": (
        "openai_responses",
        "prompt_cache_key",
        Status(400, message="Unsupported parameter: 'prompt_cache_key'.", param="prompt_cache_key"),
        {},
        "cache",
    ),
    "chat max tokens": (
        "openai_chat",
        "max_completion_tokens",
        Status(400, message="Unsupported parameter: 'max_completion_tokens'."),
        {"max_tokens": 100},
        "max_tokens",
    ),
    "responses effort": (
        "openai_responses",
        "reasoning.effort",
        Status(
            400,
            message="Unsupported parameter: 'reasoning.effort' is not supported with this model.",
            param="reasoning.effort",
        ),
        {"effort": "low"},
        "effort",
    ),
    "responses top_p": (
        "openai_responses",
        "top_p",
        Status(
            400, message="Unsupported parameter: 'top_p' is not supported with this model.", param="top_p"
        ),
        {"top_p": 0.5},
        "top_p",
    ),
    "anthropic temperature": (
        "anthropic",
        "temperature",
        Status(400, message="`temperature` is deprecated for this model."),
        {"temperature": 0.2},
        "temperature",
    ),
    "anthropic effort": (
        "anthropic",
        "output_config.effort",
        Status(400, message="This model does not support the effort parameter."),
        {"effort": "low"},
        "effort",
    ),
    "anthropic thinking": (
        "anthropic",
        "thinking",
        Status(400, message="thinking: Extra inputs are not permitted"),
        {"thinking": "adaptive"},
        "thinking",
    ),
    "anthropic stop": (
        "anthropic",
        "stop_sequences",
        Status(400, message="stop_sequences: Extra inputs are not permitted"),
        {"stop": ("x",)},
        "stop",
    ),
    "gemini temperature": (
        "gemini",
        "generationConfig.temperature",
        Status(
            400,
            message="Invalid JSON payload received. Unknown name \"temperature\" at 'generation_config': Cannot find "
            "field.",
        ),
        {"temperature": 0.2},
        "temperature",
    ),
    "gemini thinking": (
        "gemini",
        "generationConfig.thinkingConfig.thinkingLevel",
        Status(400, message="Thinking level is not supported for this model."),
        {"effort": "low"},
        "effort",
    ),
    "bedrock stop": (
        "bedrock",
        "inferenceConfig.stopSequences",
        Status(
            400,
            message="This model doesn't support the stopSequences field. Remove stopSequences and try again.",
        ),
        {"stop": ("x",)},
        "stop",
    ),
    "bedrock thinking": (
        "bedrock",
        "additionalModelRequestFields.thinking",
        Status(400, message="Malformed input request: #: extraneous key [thinking] is not permitted"),
        {"thinking": "adaptive"},
        "thinking",
    ),
    "mistral temperature": (
        "mistral",
        "temperature",
        Status(
            422,
            body=b'{"detail":[{"type":"extra_forbidden","loc":["body","temperature"],"msg":"Extra inputs are not '
            b'permitted","input":0.2}]}',
        ),
        {"temperature": 0.2},
        "temperature",
    ),
    "vllm temperature": (
        "vllm",
        "temperature",
        Status(
            400,
            message="[{'type': 'extra_forbidden', 'loc': ('body', 'temperature'), 'msg': 'Extra inputs'}]",
        ),
        {"temperature": 0.2},
        "temperature",
    ),
    "kimi thinking": (
        "kimi",
        "thinking",
        Status(400, message="Unsupported parameter: thinking"),
        {"thinking": "off"},
        "thinking",
    ),
}
"""How hosts refuse parameters: the dialect, where the body has it, the refusal, the settings of the ask, the loss."""


@pytest.mark.sampled(2)
@pytest.mark.alternating
@STREAMED
@pytest.mark.parametrize("case", UNSUPPORTED)
async def test_an_unsupported_parameter_is_omitted_from_the_retry_and_from_later_requests(
    case: str, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    name, path, refusal, settings, loss = UNSUPPORTED[case]
    if loss in ("stream", "stream_options") and not stream:
        pytest.skip("nothing of it is in a request that is not streamed")
    server = host(name, Turn(Say("One.")), Turn(Say("Two.")), faults=refusing(path, refusal))
    async with runtime_with(a=server, stream=stream, models=MODELS) as runtime:
        session = await runtime.open("a")
        first = await session.ask("Hello.", **settings)
        second = await session.ask("And?", **settings)
        other = await (await runtime.open("a")).preview("a", **settings)
        assert (first.status, first.text) == ("complete", "One.")
        assert (second.status, second.text) == ("complete", "Two.")
        assert first.losses[loss] == second.losses[loss] == 1
        assert first.report is not None
        assert (loss, 1) in first.report.losses
        (refused,) = first.refusals
        assert (refused.kind, refused.without, second.refusals) == ("parameter", (loss,), ())
        assert loss in other.losses
        events = log(runtime, session)
        requests = [event.omitted for event in events if isinstance(event, RequestSent)]
        assert requests == [(), (OmittedParameter(loss),), (OmittedParameter(loss),)]
        assert not [event for event in events if isinstance(event, EpochBegan)]
        stats = runtime.stats()
        assert stats.backends["a"].refused_parameters == 1
        assert [list(fact.parameters) for fact in stats.learned] == [[loss]]
        assert runtime._refused_requests.count == 0
    assert [at(body, path) is None for body in sent_bodies(server)] == [False, True, True]
    assert server.refusals == []
    logged = [record for record in caplog.records if "parameter_refused" in record.getMessage()]
    assert len(logged) == 1


@STREAMED
async def test_cache_marks_are_omitted_after_a_host_refuses_them(stream: bool) -> None:
    words = "messages.0.content.0.text.cache_control: Extra inputs are not permitted"
    server = host("anthropic", Turn(Say("One.")), Turn(Say("Two.")))
    server.faults = lambda number, request: (
        Status(400, message=words) if "cache_control" in str(request) else None
    )
    async with runtime_with(a=server, stream=stream, models=MODELS) as runtime:
        session = await runtime.open("a", system="Be short.", tools=[look])
        first = await session.ask("Hello.")
        assert (first.status, first.losses["cache"]) == ("complete", 1)
        assert (await session.ask("And?")).status == "complete"
    assert ["cache_control" in str(body) for body in sent_bodies(server)] == [True, False, False]


async def test_a_parameter_refused_by_an_error_inside_a_stream_is_omitted_too() -> None:
    words = "Unsupported parameter: 'temperature' is not supported with this model."
    for name in ("openai_chat", "anthropic", "openai_responses"):
        server = host(name, Turn(Say("One.")))
        server.faults = lambda number, request: (
            ErrorInStream(0, 400, message=words) if "temperature" in request else None
        )
        async with runtime_with(a=server, models=MODELS) as runtime:
            answer = await (await runtime.open("a")).ask("Hello.", temperature=0.2)
            assert (answer.status, answer.text, answer.losses["temperature"]) == ("complete", "One.", 1)


VALUE = Status(
    400,
    message="Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is "
    "supported.",
    code="unsupported_value",
    param="temperature",
)


@STREAMED
async def test_a_rejected_value_of_a_parameter_is_omitted_but_another_value_is_sent(stream: bool) -> None:
    server = host("openai_chat", *[Turn(Say("Yes."))] * 3, faults=refusing("temperature", VALUE, 0.2))
    async with runtime_with(a=server, stream=stream, models=MODELS) as runtime:
        session = await runtime.open("a")
        first = await session.ask("Hello.", temperature=0.2)
        second = await session.ask("Again.", temperature=0.2)
        third = await session.ask("Warmer.", temperature=0.7)
        assert [each.status for each in (first, second, third)] == ["complete"] * 3
        assert [each.losses.get("temperature") for each in (first, second, third)] == [1, 1, None]
        omitted = [event.omitted for event in log(runtime, session) if isinstance(event, RequestSent)]
        assert omitted == [
            (),
            (OmittedParameter("temperature", True),),
            (OmittedParameter("temperature", True),),
            (),
        ]
        assert runtime.stats().learned == ()
    assert [body.get("temperature") for body in sent_bodies(server)] == [0.2, None, None, 0.7]


async def test_a_parameter_that_one_account_refused_is_still_sent_to_another_account() -> None:
    _, path, refusal, settings, _ = UNSUPPORTED["chat temperature"]
    server = OpenAIServer(Script([Turn(Say("Yes."))] * 3))
    server.faults = lambda number, request: refusing(path, refusal)(number, request) if number == 0 else None
    async with serve(server):
        one = backend_at(server, model=MODEL).model_copy(update={"account": "one"})
        backends = {"one": one, "two": one.model_copy(update={"account": "two"})}
        async with Runtime(Config(FileSettings(backends=backends), {}), seed=1) as runtime:
            session = await runtime.open("one")
            assert (await session.ask("Hello.", **settings)).status == "complete"
            await session.switch("two")
            assert "temperature" not in (await session.ask("And?", **settings)).losses
            assert [fact.binding.account for fact in runtime.stats().learned] == ["one"]
    assert ["temperature" in body for body in sent_bodies(server)] == [True, False, True]


async def test_at_most_three_parameters_are_omitted_from_one_request() -> None:
    names = ("temperature", "top_p", "stop", "reasoning_effort")
    settings: dict[str, Any] = {"temperature": 0.2, "top_p": 0.5, "stop": ("x",), "effort": "low"}

    def fault(_: int, request: Json) -> Status | None:
        name = next((name for name in names if name in request), None)
        return None if name is None else Status(400, message=f"Unsupported parameter: '{name}'.", param=name)

    server, other = (
        host("openai_chat", Turn(Say("Yes.")), faults=fault),
        host("anthropic", Turn(Say("Here."))),
    )
    async with runtime_with(a=server, b=other, pools=pool("a", "b"), models=MODELS) as runtime:
        answer = await (await runtime.open("pool")).ask("Hello.", **settings)
        assert (answer.status, answer.text) == ("complete", "Here.")
        kinds = [each.kind for each in answer.refusals]
        assert kinds[:3] == ["parameter"] * 3
        assert "parameter" not in kinds[3:]
    assert [sum(name in body for name in names) for body in sent_bodies(server)[:4]] == [4, 3, 2, 1]


async def test_a_parameter_that_is_still_refused_after_its_omission_is_not_omitted_again() -> None:
    refusal = Status(400, message="Unsupported parameter: 'temperature'.", param="temperature")
    server = host("openai_chat", faults=lambda number, request: refusal)
    async with runtime_with(a=server, models=MODELS) as runtime:
        answer = await (await runtime.open("a")).ask("Hello.", temperature=0.2, check=False)
        assert answer.status == "failed"
        assert [each.kind for each in answer.refusals] == ["parameter", "transcript"]
    assert server.received <= 3


async def test_a_refused_parameter_that_was_not_sent_is_not_learned_as_unsupported() -> None:
    refusal = Status(400, message="Unsupported parameter: 'temperature'.", param="temperature")
    server = host("openai_responses", faults=lambda number, request: refusal)
    async with scripted(server, fields={"model": "gpt-5.6-sol"}) as (_, runtime, session):
        answer = await session.ask("Hello.", temperature=0.2, check=False)
        assert answer.status == "failed"
        assert "parameter" not in [each.kind for each in answer.refusals]
        assert runtime.stats().learned == ()
    assert not ["temperature" for body in sent_bodies(server) if "temperature" in body]


@STREAMED
async def test_a_refused_tool_choice_falls_back_to_auto_and_is_reported_as_lost_at_the_end(
    stream: bool,
) -> None:
    refusal = Status(400, message="tool_choice 'specified' is incompatible with thinking enabled")
    server = host(
        "openai_chat", Turn(Call("look", {})), Turn(Say("Done.")), faults=refusing("tool_choice", refusal)
    )
    async with runtime_with(a=server, stream=stream, models=MODELS) as runtime:
        answer = await (await runtime.open("a", tools=[look])).ask("Look.", tool_choice="required")
        assert (answer.status, answer.text) == ("complete", "Done.")
        assert answer.losses["tool_choice"] == 1
    assert ["tool_choice" in body for body in sent_bodies(server)] == [True, False, False]


async def test_if_tool_choice_is_refused_the_prompt_asks_for_a_call_and_corrects_the_model_once() -> None:
    refusal = Status(400, message="tool_choice is not supported with this model")
    turns = [Turn(Say("No.")), Turn(Call("look", {})), Turn(Say("Done."))]
    server = host("openai_chat", *turns, *turns[1:], faults=refusing("tool_choice", refusal))
    async with runtime_with(a=server, models=MODELS) as runtime:
        session = await runtime.open("a", tools=[look])
        first = await session.ask("Look.", tool_choice="required")
        second = await session.ask("Look again.", tool_choice="required")
        assert [(each.status, each.text) for each in (first, second)] == [("complete", "Done.")] * 2
        assert first.losses["tool_choice"] == second.losses["tool_choice"] == 1
    told = [
        sum("call" in str(m["content"]).lower() for m in body["messages"] if m["role"] == "user")
        for body in sent_bodies(server)
    ]
    assert told == [0, 1, 2, 2, 3, 3]


@STREAMED
@pytest.mark.parametrize(
    ("name", "path", "words"),
    [
        ("openai_chat", "response_format", "This response_format type is unavailable now"),
        ("openai_responses", "text.format", "Unsupported parameter: 'text.format' is not supported."),
        ("gemini", "generationConfig.responseMimeType", "The responseMimeType parameter is not supported."),
    ],
)
async def test_if_an_output_schema_is_refused_the_prompt_describes_the_form_of_the_answer(
    name: str, path: str, words: str, stream: bool
) -> None:
    server = host(
        name, *[Turn(Say('{"city": "Rome"}'))] * 2, faults=refusing(path, Status(400, message=words))
    )
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    async with runtime_with(a=server, stream=stream, models=MODELS) as runtime:
        session = await runtime.open("a")
        first = await session.ask("Where?", output=schema)
        second = await session.ask("Where else?", output=schema)
        assert [(each.status, each.output) for each in (first, second)] == [
            ("complete", {"city": "Rome"})
        ] * 2
        assert first.losses["output"] == 1
    bodies = [json.dumps(body) for body in sent_bodies(server)]
    assert [at(body, path) is None for body in sent_bodies(server)] == [False, True, True]
    assert "JSON" not in bodies[0]
    assert bodies[1].count("JSON Schema") == 1
    assert server.refusals == []


@STREAMED
async def test_a_summary_is_requested_again_without_a_refused_parameter(stream: bool) -> None:
    refusal = Status(400, message="Unsupported parameter: 'tool_choice'.", param="tool_choice")
    turns = [Turn(Say(f"Answer {number}. " * 60)) for number in range(4)]
    server = host("openai_chat", *turns, Turn(Say("Summary.")), faults=refusing("tool_choice", refusal))
    async with runtime_with(a=server, stream=stream, models=MODELS) as runtime:
        session = await runtime.open("a", tools=[look])
        for number in range(4):
            await session.ask(f"Question {number}.")
        made = await session.compact()
        assert made.messages > 0
        asides = [
            event.omitted
            for event in log(runtime, session)
            if isinstance(event, RequestSent) and event.is_for_summary
        ]
        assert asides == [(), (OmittedParameter("tool_choice"),)]


async def test_stream_events_show_the_parameters_that_a_request_omits() -> None:
    name, path, refusal, settings, _ = UNSUPPORTED["chat temperature"]
    server = host(name, Turn(Say("One.")), faults=refusing(path, refusal))
    async with runtime_with(a=server, models=MODELS) as runtime:
        session = await runtime.open("a")
        async with session.stream("Hello.", **settings) as stream:
            events = [event async for event in stream]
    requests = [event.omitted for event in events if isinstance(event, RequestSentEvent)]
    assert requests == [(), ("temperature",)]


async def test_a_learned_fact_shows_the_config_entry_that_makes_the_fact_permanent() -> None:
    server = host("openai_chat", Turn(Say("Yes.")))
    names = ("temperature", "stop")
    refusals = {name: Status(400, message=f"Unsupported parameter: '{name}'.", param=name) for name in names}
    server.faults = lambda number, request: next((refusals[name] for name in names if name in request), None)
    async with runtime_with(a=server, models=MODELS) as runtime:
        await (await runtime.open("a")).ask("Hello.", temperature=0.2, stop=("x",))
        (fact,) = runtime.stats().learned
        assert fact.entry == '[models."a:house-model"]\nsampling = "never"\nstops = false'
        assert fact.parameters["stop"] == "Unsupported parameter: 'stop'."


@pytest.mark.parametrize("tools", [(), (look,)])
async def test_a_learned_fact_changes_no_byte_of_the_lane(tools: tuple[Tool[..., Any], ...]) -> None:
    name, path, refusal, settings, _ = UNSUPPORTED["anthropic temperature"]
    server = host(name, Turn(Say("One.")), Turn(Say("Two.")), faults=refusing(path, refusal))
    async with runtime_with(a=server, models=MODELS) as runtime:
        session = await runtime.open("a", tools=tools)
        await session.ask("Hello.", **settings)
        await session.ask("And?", **settings)
    first, second, _ = [body["messages"] for body in sent_bodies(server)]
    assert first == second
