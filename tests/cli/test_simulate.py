"""`actors simulate` in a separate process, with the runtime, `actors run` and a vendor's SDK as clients."""

import json
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from actors.config import BackendSettings, Config, FileSettings
from actors.config.providers import kind_of
from actors.core.dialects.profiles import dialect
from actors.runtime.runtime import Runtime
from actors.strict.faults import parse_fault
from actors.strict.loopback import HttpRequest
from actors.strict.script import parse_turns
from actors.testing import (
    SERVERS,
    Call,
    Disconnect,
    ErrorInStream,
    Garbage,
    MalformedEvent,
    Say,
    Stall,
    Status,
    Think,
    strict_server,
)
from actors.testing.standin import answer, model
from tests.cli.command import Running, actors, actors_now, run_in_background
from tests.scripted import scripted

pytestmark = pytest.mark.anyio

TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}


class Simulated:
    """A running `actors simulate`."""

    def __init__(self, process: Running, told: dict[str, str]) -> None:
        self.process = process
        self.told = told

    async def wait_for_end(self, number: signal.Signals | None = None) -> tuple[int, list[str]]:
        """Send a signal if given, and return the exit code and the lines on standard error."""
        if number is not None:
            self.process.signal(number)
        _, said = await self.process.rest()
        return await self.process.wait_for_end(), said.splitlines()


@asynccontextmanager
async def run_simulate(*options: str) -> AsyncIterator[Simulated]:
    """Run `actors simulate` until it has printed its address; stop it at the end of the block."""
    async with run_in_background("simulate", *options) as process:
        line = b""
        while not line.endswith(b"\n"):
            piece = await process.next_output()
            assert piece, await process.rest()
            line += piece
        yield Simulated(process, json.loads(line))


async def weather(city: str, days: int) -> str:
    """Weather of a city."""
    return f"{city}, {days}: 21 C"


@pytest.mark.alternating
@pytest.mark.parametrize("name", SERVERS)
async def test_the_simulated_model_calls_tools_in_every_dialect(name: str) -> None:
    async with scripted(strict_server(name, answer), tools=[weather]) as (server, _, session):
        for words in ("Weather?", "And now?"):
            assert (await session.ask(words)).text == "I have the result."
        calls = (await session.ledger()).interactions()
        assert [item.status for item in calls] == ["complete", "complete"]
    assert server.dialect == name
    assert [exchange.status for exchange in server.requests] == [200] * 4


THINKING: dict[str, Any] = {  # Any: parts of request bodies
    "anthropic": {"thinking": {"type": "enabled", "budget_tokens": 2048}, "max_tokens": 4096},
    "kimi": {},
    "deepseek": {"thinking": {"type": "enabled"}},
}


@pytest.mark.parametrize("name", THINKING)
def test_thinking_of_the_simulated_model_is_accepted_when_sent_back(name: str) -> None:
    server = strict_server(name, model(name))
    path = "/v1/messages" if name == "anthropic" else "/v1/chat/completions"
    tool = TOOL if name != "anthropic" else {"name": "weather", "input_schema": {"type": "object"}}
    body: dict[str, Any] = {"model": "m", "tools": [tool], **THINKING[name]}  # Any: a body
    body["messages"] = [{"role": "user", "content": "Weather?"}]

    def respond() -> Any:  # Any: a response body
        answered = server.answer(HttpRequest("POST", path, {}, json.dumps(body).encode(), False))
        return json.loads(answered.parts[0])

    if name == "anthropic":
        content = respond()["content"]
        assert [block["type"] for block in content] == ["thinking", "tool_use"]
        result = {"type": "tool_result", "tool_use_id": content[1]["id"], "content": "4 C"}
        body["messages"] += [{"role": "assistant", "content": content}, {"role": "user", "content": [result]}]
    else:
        message = respond()["choices"][0]["message"]
        assert message["reasoning_content"]
        del message["refusal"]
        call = message["tool_calls"][0]
        body["messages"] += [message, {"role": "tool", "tool_call_id": call["id"], "content": "4 C"}]
    assert "I have the result." in json.dumps(respond())
    assert server.refusals == []


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("gemini", {"generationConfig": {"thinkingConfig": {"includeThoughts": True}}}),
        ("bedrock", {"additionalModelRequestFields": {"thinking": {"type": "adaptive"}}}),
        ("openai_responses", {"reasoning": {"effort": "low"}}),
        ("openrouter", {"reasoning": {"effort": "low"}}),
        ("mistral", {"prompt_mode": "reasoning"}),
        ("qwen", {"enable_thinking": True}),
        ("vllm", {"chat_template_kwargs": {"enable_thinking": True}}),
    ],
)
def test_the_simulated_model_thinks_only_on_request(name: str, more: dict[str, Any]) -> None:
    request = request_body({}) | more
    assert isinstance(model(name)(request).parts[0], Think)
    assert isinstance(model(name)(request_body({})).parts[0], Call)
    off: dict[str, Any] = {"thinking": {"type": "disabled"}, "reasoning": {"effort": "none"}}
    assert isinstance(model("kimi")(request_body({}) | off).parts[0], Call)


async def test_a_script_sets_the_answers_and_faults_break_answers(
    anyio_backend_name: str, tmp_path: Path
) -> None:
    script = tmp_path / "script.json"
    script.write_text(
        json.dumps(
            [
                ["Looking. ", {"call": "weather", "arguments": {"city": "Oslo"}, "id": "call_1"}],
                {"parts": [{"say": "4 C."}], "stop": "length", "usage": [3, 4]},
            ]
        )
    )
    options = ("--dialect", "openai", "--script", str(script), "--fault", "0:429=7", "--fault", "2:reset")
    async with (
        run_simulate(*options, "--requests", "5", "--backend", anyio_backend_name) as running,
        httpx2.AsyncClient(base_url=running.told["base_url"]) as client,
    ):
        body = {"model": "m", "messages": [{"role": "user", "content": "Hi."}]}

        async def respond() -> Any:  # Any: a response body
            return (await client.post("/chat/completions", json=body)).json()

        busy = await client.post("/chat/completions", json=body)
        assert (busy.status_code, busy.headers["retry-after"]) == (429, "7")
        first = (await respond())["choices"][0]
        assert first["message"]["content"] == "Looking. "
        assert first["message"]["tool_calls"][0]["id"] == "call_1"
        with pytest.raises(httpx2.TransportError):
            await respond()
        second = await respond()
        assert (second["choices"][0]["finish_reason"], second["usage"]["total_tokens"]) == ("length", 7)
        assert (await respond())["choices"][0]["message"]["content"] == "ok"
        code, lines = await running.wait_for_end()
    assert code == 0
    assert [line.partition("completions ")[2] for line in lines] == [
        "429 fault: status",
        "200 accepted",
        "0 fault: disconnect",
        "200 accepted",
        "200 accepted",
    ]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--fault", "429"], "--fault: '429' must begin with a request number and a colon, as in 0:429"),
        (["--fault", "0:200"], "--fault: '200' is not a fault; use a status from 400 to 599, or one of cut"),
        (["--fault", "0:cut=x"], "--fault: 'cut=x' is not a fault"),
        (
            ["--script", "FILE"],
            "is not a script: turn 1, part 0: a part must be a string, or an object with one of say",
        ),
    ],
)
def test_an_invalid_script_or_fault_gives_one_line_and_exit_code_2(
    arguments: list[str], why: str, tmp_path: Path
) -> None:
    script = tmp_path / "script.json"
    script.write_text('[["ok"], [{"shout": "no"}]]')
    given = [str(script) if argument == "FILE" else argument for argument in arguments]
    done = actors_now("simulate", "--dialect", "openai", *given)
    assert (done.code, why in done.complaint) == (2, True), done.complaint


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[1]",
        '[{"parts": 1}]',
        '[{"parts": [], "stops": 1}]',
        '[[{"call": 1}]]',
        '[[{"say": "a", "id": "b"}]]',
        '[[{"call": "a", "arguments": "{}"}]]',
        '[{"parts": [], "usage": [1]}]',
        "[",
        '[[{"think": "a", "signature": 1}]]',
    ],
)
def test_an_invalid_script_is_rejected_with_the_position_of_the_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"turn 0|list of turns|EOF"):
        parse_turns(text.encode())


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("0:529", (0, Status(529))),
        ("1:cut", (1, Disconnect())),
        ("12:reset=5", (12, Disconnect(after_bytes=5, reset=True))),
        ("2:stall=9", (2, Stall(after_bytes=9))),
        ("3:error=2", (3, ErrorInStream(after_events=2))),
        ("4:malformed", (4, MalformedEvent(after_events=0))),
        ("5:garbage", (5, Garbage())),
    ],
)
def test_a_fault_is_parsed_from_one_word(text: str, fault: object) -> None:
    assert parse_fault(text) == fault


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "localhost"])
async def test_the_server_listens_on_the_given_host_and_lists_its_models(host: str) -> None:
    async with (
        run_simulate("--dialect", "openai", "--host", host, "--requests", "1") as running,
        httpx2.AsyncClient(base_url=running.told["base_url"]) as client,
    ):
        listed = (await client.get("/models")).json()
        assert [model["object"] for model in listed["data"]] == ["model"]
        assert (await running.wait_for_end())[0] == 0


async def test_a_host_address_of_another_machine_gives_one_line_and_exit_code_3(
    anyio_backend_name: str,
) -> None:
    done = await actors(
        "simulate", "--dialect", "openai", "--host", "192.0.2.1", "--backend", anyio_backend_name
    )
    assert (done.code, done.out) == (3, "")
    assert done.complaint.startswith(
        "Cannot listen on 192.0.2.1, port 0: cannot assign requested address; --host"
    )


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("anthropic", "/v1/models"),
        ("openai_responses", "/v1/models"),
        ("gemini", "/v1beta/models"),
        ("mistral", "/v1/models"),
        ("openrouter", "/api/v1/models"),
    ],
)
def test_each_dialect_lists_its_models_in_its_own_format(name: str, path: str) -> None:
    server = strict_server(name)
    answered = server.answer(HttpRequest("GET", path, {}, b"", False))
    listed = json.loads(answered.parts[0])
    (entry,) = listed.get("models") or listed["data"]
    assert "model-1" in (entry.get("id") or entry["name"])


@pytest.mark.parametrize("name", ["openai_responses", "vertex", "bedrock"])
async def test_a_runtime_calls_tools_with_the_simulated_model(name: str, anyio_backend_name: str) -> None:
    async with run_simulate("--dialect", name, "--backend", anyio_backend_name, "--requests", "4") as running:
        assert running.told["dialect"] == name
        backend = BackendSettings(
            kind=kind_of(dialect(name)), dialect=name, model="m", base_url=running.told["endpoint"]
        )
        async with Runtime(Config(FileSettings(backends={"b": backend}), {})) as runtime:
            session = await runtime.open("b", tools=[weather])
            for words in ("Weather?", "And now?"):
                assert (await session.ask(words)).text == "I have the result."
        code, lines = await running.wait_for_end()
    assert code == 0
    assert len(lines) == 4
    assert all(line.startswith(f"actors: #{at} POST /") for at, line in enumerate(lines))
    assert all(line.endswith(" 200 accepted") for line in lines)


async def test_the_openai_sdk_calls_tools_with_the_simulated_model() -> None:
    async with run_simulate("--dialect", "openai", "--requests", "2") as running:
        assert running.told.keys() == {"dialect", "base_url", "endpoint", "mode"}
        async with AsyncOpenAI(base_url=running.told["base_url"], api_key="k") as client:
            messages: list[Any] = [{"role": "user", "content": "Weather?"}]  # Any: the SDK's types are unions
            tools: list[Any] = [TOOL]  # Any: as above
            first = await client.chat.completions.create(model="m", messages=messages, tools=tools)
            made = (first.choices[0].message.tool_calls or [])[0]
            messages += [
                first.choices[0].message,
                {"role": "tool", "tool_call_id": made.id, "content": "4 C"},
            ]
            second = await client.chat.completions.create(model="m", messages=messages, tools=tools)
            assert second.choices[0].message.content == "I have the result."
        assert (await running.wait_for_end())[0] == 0


async def test_the_sdk_of_a_second_vendor_streams_from_the_server() -> None:
    async with (
        run_simulate("--dialect", "anthropic", "--mode", "hosted", "--requests", "1") as running,
        AsyncAnthropic(base_url=running.told["base_url"], api_key="k") as client,
    ):
        assert running.told["mode"] == "hosted"
        async with client.messages.stream(
            model="m",
            max_tokens=100,
            messages=[{"role": "user", "content": "Weather?"}],
            tools=[{"name": "weather", "input_schema": {"type": "object"}}],
        ) as stream:
            assert (await stream.get_final_message()).stop_reason == "tool_use"
        assert (await running.wait_for_end())[0] == 0


async def test_a_refusal_is_reported_with_its_rule_and_gives_exit_code_1(anyio_backend_name: str) -> None:
    orphan = [{"role": "tool", "tool_call_id": "a", "content": "\x1b[2J"}]
    async with (
        run_simulate("--dialect", "openai", "--backend", anyio_backend_name) as running,
        httpx2.AsyncClient() as client,
    ):
        url = running.told["base_url"]
        body = {"model": "m", "messages": [{"role": "user", "content": "Hi."}]}
        assert (await client.post(f"{url}/chat/completions", json=body)).status_code == 200
        refused = await client.post(f"{url}/chat/completions", json={"model": "m", "messages": orphan})
        assert refused.status_code == 400
        assert (await client.post(f"{url}/nothing", json={})).status_code == 404
        code, lines = await running.wait_for_end(signal.SIGTERM)
    assert code == 1
    assert lines[0] == "actors: #0 POST /v1/chat/completions 200 accepted"
    assert lines[1].startswith("actors: #1 POST /v1/chat/completions 400 OAC-02: ")
    assert lines[2] == "actors: #2 POST /v1/nothing 404 refused: unknown path"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
async def test_a_signal_stops_simulate(number: signal.Signals, code: int, anyio_backend_name: str) -> None:
    async with run_simulate("--dialect", "kimi", "--backend", anyio_backend_name) as running:
        ended, lines = await running.wait_for_end(number)
    assert ended == code
    assert lines == (["actors: interrupted"] if code else [])


async def test_a_port_in_use_gives_one_line_and_exit_code_3(anyio_backend_name: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = await actors(
            "simulate", "--dialect", "openai", "--port", port, "--backend", anyio_backend_name
        )
    assert (done.code, done.out) == (3, "")
    assert done.complaint.startswith(
        f"Cannot listen on port {port}: address already in use; use another --port"
    )


def test_an_unknown_dialect_gives_one_line_and_exit_code_3() -> None:
    done = actors_now("simulate", "--dialect", "antropic")
    assert (done.code, done.complaint) == (3, "No dialect 'antropic'; did you mean 'anthropic'?")


@pytest.mark.parametrize("arguments", [["--port", "65536"], ["--port", "x"], ["--requests", "0"]])
def test_an_invalid_number_gives_exit_code_2(arguments: list[str]) -> None:
    assert actors_now("simulate", "--dialect", "openai", *arguments).code == 2


def request_body(schema: object, **more: object) -> dict[str, Any]:  # Any: a request body
    tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
    return {"messages": [{"role": "user", "content": "Hi."}], "tools": [tool], **more}


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ({}, {}),
        ({"type": "object", "properties": {"a": {"type": "string"}}}, {}),
        (
            {
                "type": "object",
                "required": ["s", "i", "n", "b", "z", "l", "o", "e", "c", "u", "r", "x", "m", "up"],
                "properties": {
                    "s": {"type": "string", "minLength": 6},
                    "i": {"type": "integer", "minimum": 7},
                    "n": {"type": "number", "maximum": -2.5},
                    "b": {"type": "boolean"},
                    "z": {"type": "null"},
                    "l": {"type": "array", "items": {"type": "integer"}, "minItems": 2},
                    "o": {"type": "object", "required": ["k"], "properties": {"k": {"const": 9}}},
                    "e": {"enum": ["red", "blue"]},
                    "c": {"type": "string", "default": "d"},
                    "u": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                    "r": {"$ref": "#/$defs/R"},
                    "m": {"type": ["integer", "null"]},
                    "up": {"type": "INTEGER"},
                },
                "$defs": {"R": {"type": "boolean"}},
            },
            {
                "s": "textxx", "i": 7, "n": -2.5, "b": True, "z": None, "l": [1, 1], "o": {"k": 9}, "e": "red",
                "c": "d", "u": 1, "r": True, "x": "text", "m": 1, "up": 1,
            },
        ),
    ],
)  # fmt: skip
def test_the_arguments_of_the_simulated_call_satisfy_the_schema(schema: object, arguments: object) -> None:
    assert answer(request_body(schema)).calls == (Call("f", arguments),)  # type: ignore[arg-type]  # an object


def test_a_recursive_schema_gives_finite_arguments() -> None:
    endless = {"type": "object", "required": ["me"], "properties": {"me": {"$ref": "#"}}}
    (made,) = answer(request_body(endless)).calls
    assert isinstance(made.arguments["me"], dict)


@pytest.mark.parametrize("choice", ["none", {"type": "none"}])
def test_the_model_calls_no_tool_when_the_request_disables_tools(choice: object) -> None:
    assert answer(request_body({}, tool_choice=choice)).parts == (Say("ok"),)
