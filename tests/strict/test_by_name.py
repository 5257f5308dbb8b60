"""Check the creation of strict servers by dialect name, and their reports of exchanges."""

import json
from functools import partial

import anyio
import anyio.lowlevel
import httpx2
import pytest

import actors.testing
from actors.config.providers import PROVIDERS, kind_of
from actors.core.dialects.profiles import PROFILES
from actors.strict.faults import InjectedFault
from actors.strict.loopback import HttpRequest
from actors.strict.server import LoopbackServer
from actors.testing import (
    RATE_LIMITED,
    SERVERS,
    AnthropicServer,
    AzureServer,
    BedrockAnthropicServer,
    BedrockServer,
    Call,
    CompatibleServer,
    Disconnect,
    Exchange,
    GeminiServer,
    GroqServer,
    MistralServer,
    OpenAIServer,
    OpenRouterServer,
    ResponsesServer,
    Say,
    Stall,
    Think,
    Turn,
    VertexAnthropicServer,
    serve,
    strict_server,
)
from tests.runtime_support import backend_at, runtime_with

pytestmark = pytest.mark.anyio

OF_THEIR_OWN: dict[str, type[LoopbackServer]] = {
    "openai_chat": OpenAIServer,
    "anthropic": AnthropicServer,
    "vertex_anthropic": VertexAnthropicServer,
    "bedrock_anthropic": BedrockAnthropicServer,
    "azure": AzureServer,
    "openai_responses": ResponsesServer,
    "gemini": GeminiServer,
    "vertex": GeminiServer,
    "gemini_2": GeminiServer,
    "bedrock": BedrockServer,
    "openrouter": OpenRouterServer,
    "groq": GroqServer,
}
HI = {"model": "m", "messages": [{"role": "user", "content": "Hi."}]}


async def weather(city: str) -> str:
    """Weather of a city."""
    return f"{city}: 4 C"


def test_every_dialect_has_a_strict_server_and_a_kind_of_backend() -> None:
    assert sorted(SERVERS) == sorted(PROFILES)
    for name in SERVERS:
        assert strict_server(name).dialect == name
        assert type(strict_server(name)) is OF_THEIR_OWN.get(name, CompatibleServer)
        kind = kind_of(PROFILES[name])
        spoken = PROVIDERS[kind].dialect
        assert spoken == name or (name, spoken) == ("gemini_2", "gemini")


def test_a_dialect_without_a_strict_server_raises_a_value_error_that_lists_the_dialects() -> None:
    with pytest.raises(
        ValueError, match="There is no strict server for dialect 'nobody'; use one of openai_chat, "
    ):
        strict_server("nobody")


@pytest.mark.parametrize("name", SERVERS)
def test_every_strict_server_rejects_requests_without_its_key_and_keeps_its_options(
    name: str,
) -> None:
    server = strict_server(name, api_key="key", mode="hosted", faults={7: RATE_LIMITED}, host="h")
    body = json.dumps(HI).encode()
    for headers in ({}, {"authorization": "Bearer other"}):
        assert server.answer(HttpRequest("POST", "/any", headers, body, False)).status in (400, 401, 403)
    assert (server.mode, server.faults) == ("hosted", {7: RATE_LIMITED})
    assert strict_server(name).answer(HttpRequest("POST", "/any", {}, body, False)).status == 404


@pytest.mark.parametrize("name", ["anthropic", "vertex_anthropic", "bedrock_anthropic"])
def test_only_the_anthropic_server_lists_models_in_anthropics_format(name: str) -> None:
    listed = strict_server(name).answer(HttpRequest("GET", "/v1/models", {}, b"", False))
    assert listed.status == (200 if name == "anthropic" else 404)


@pytest.mark.alternating
@pytest.mark.long
@pytest.mark.parametrize("name", SERVERS)
async def test_a_foreign_conversation_continues_in_each_dialect_and_back(name: str) -> None:
    thinks = Turn(Think("Hm."), Call("weather", {"city": "Rome"}))
    home = MistralServer([Turn(Call("weather", {"city": "Oslo"})), Turn(Say("Cold.")), Turn(Say("Rome."))])
    away = strict_server(name, [thinks, Turn(Say("Warm.")), Turn(Say("Still."))], api_key="secret")
    variables = {"KEY": "secret"}
    async with runtime_with(home=home, away=away, environ=variables, auth={"away": "KEY"}) as runtime:
        session = await runtime.open("home", tools=[weather])
        assert (await session.ask("Oslo?")).text == "Cold."
        await session.switch("away")
        assert (await session.ask("Rome?")).text == "Warm."
        await session.switch("home")
        assert (await session.ask("Where?")).text == "Rome."
        await session.switch("away")
        assert (await session.ask("And now?")).text == "Still."
    assert (home.refusals, away.refusals) == ([], [])
    assert [exchange.status for exchange in away.requests] == [200] * 3
    assert all(b"Oslo: 4 C" in exchange.body for exchange in away.requests)
    assert b"Rome: 4 C" in home.requests[-1].body


async def test_every_server_rejects_a_wrong_key() -> None:
    for name in SERVERS:
        server = strict_server(name, api_key="secret")
        async with runtime_with(a=server, environ={"KEY": "wrong"}, auth={"a": "KEY"}) as runtime:
            session = await runtime.open("a")
            assert (await session.ask("Hi.", check=False)).status == "failed"
        assert {exchange.status for exchange in server.requests} <= {400, 401, 403}, name


def test_vertex_ai_has_the_project_in_the_endpoint_of_a_backend() -> None:
    server = strict_server("vertex")
    server.port = 1
    assert server.endpoint.startswith(server.base_url + "/v1/projects/")
    assert backend_at(server).base_url == server.endpoint
    plain = strict_server("kimi")
    plain.port = 1
    assert plain.endpoint == plain.base_url


@pytest.mark.parametrize("fault", [None, Disconnect(after_bytes=5)])
async def test_an_exchange_is_reported_when_its_answer_has_been_sent(fault: InjectedFault | None) -> None:
    told: list[Exchange] = []
    server = OpenAIServer(faults=None if fault is None else {0: fault})
    server.on_exchange = told.append
    with anyio.fail_after(60):
        async with serve(server), httpx2.AsyncClient() as client:
            for at in range(2):
                try:
                    await client.post(f"{server.base_url}/chat/completions", json=HI)
                except httpx2.HTTPError:
                    assert fault is not None
                while len(told) <= at:
                    await anyio.lowlevel.checkpoint()
    assert told == server.requests


async def test_an_exchange_that_stalled_is_reported_when_it_ends() -> None:
    told: list[Exchange] = []
    server = OpenAIServer(faults={0: Stall()})
    server.on_exchange = told.append
    with anyio.fail_after(60):
        async with serve(server), httpx2.AsyncClient() as client, anyio.create_task_group() as tasks:
            tasks.start_soon(partial(client.post, f"{server.base_url}/chat/completions", json=HI))
            while not server.received:
                await anyio.lowlevel.checkpoint()
            assert told == []
            tasks.cancel_scope.cancel()
    assert [exchange.fault for exchange in told] == [Stall()]


def test_every_public_name_of_testing_is_imported_from_its_module() -> None:
    assert set(actors.testing.__all__) == set(actors.testing._MODULE_OF)
    for name in actors.testing.__all__:
        assert getattr(actors.testing, name) is not None
