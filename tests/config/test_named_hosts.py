"""Hosts that need no configuration file: their address, the variable of their key, and their answers."""

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from actors import Runtime, tool
from actors.config import Key, load
from actors.config.providers import PROVIDERS
from actors.core.values.content import Thinking
from actors.strict.server import LoopbackServer
from actors.strict.wires.compatible import VendorFormat
from actors.testing import (
    AzureServer,
    Call,
    CompatibleServer,
    DeepSeekServer,
    ResponsesServer,
    Say,
    Think,
    Turn,
    serve,
    validate,
)

pytestmark = pytest.mark.anyio

HOSTS = {
    "together": ("TOGETHER_API_KEY", "https://api.together.ai/v1", "open_models"),
    "fireworks": ("FIREWORKS_API_KEY", "https://api.fireworks.ai/inference/v1", "open_models"),
    "cerebras": ("CEREBRAS_API_KEY", "https://api.cerebras.ai/v1", "open_models"),
    "nvidia": ("NVIDIA_API_KEY", "https://integrate.api.nvidia.com/v1", "open_models"),
    "huggingface": ("HF_TOKEN", "https://router.huggingface.co/v1", "open_models"),
    "sambanova": ("SAMBANOVA_API_KEY", "https://api.sambanova.ai/v1", "open_models"),
    "perplexity": ("PERPLEXITY_API_KEY", "https://api.perplexity.ai/v1", "openai_responses"),
    "mimo": ("MIMO_API_KEY", "https://api.xiaomimimo.com/v1", "deepseek"),
    "lm_studio": ("", "http://127.0.0.1:1234/v1", "ollama"),
    "sglang": ("", "http://127.0.0.1:30000/v1", "vllm"),
}


@tool
def weather(city: str) -> str:
    """Current weather of a city."""
    return f"{city}: 4 C"


SCRIPT = (Turn(Think("I look."), Call("weather", {"city": "Oslo"})), Turn(Say("It is cold.")))


@pytest.mark.parametrize("kind", HOSTS)
def test_a_named_host_needs_only_its_key(kind: str) -> None:
    variable, endpoint, dialect = HOSTS[kind]
    backend = load(None, {variable: "sk-named"} if variable else {}).backend(f"{kind}:maker/model-1")
    assert (backend.endpoint, backend.dialect, backend.model) == (endpoint, dialect, "maker/model-1")
    if variable:
        assert isinstance(backend.credential, Key)
        assert backend.credential.header == "authorization"
    else:
        assert backend.credential is None
    known = PROVIDERS[backend.kind]
    moved = load(None, {known.url_variable: "http://127.0.0.1:9/v1"}).backend(f"{kind}:m")
    assert (moved.endpoint, moved.credential) == ("http://127.0.0.1:9/v1", None)


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("written", ["reasoning", "reasoning_content"])
async def test_reasoning_is_decoded_from_either_field_and_the_effort_setting_is_sent(
    tmp_path: Path, written: str, stream: bool
) -> None:
    manner = VendorFormat("reasoning") if written == "reasoning" else VendorFormat("reasoning_content")
    host = CompatibleServer(list(SCRIPT), vendor="open_models", _vendor_format=manner, api_key="sk-named")
    file = tmp_path / "actors.toml"
    with anyio.fail_after(60):
        async with serve(host):
            file.write_text(
                f'[backends.a]\nkind = "together"\nmodel = "openai/gpt-oss-120b"\nbase_url = "{host.endpoint}"\n'
                f'auth = "K"\nreasoning = {{ effort = "low" }}\nstream = {str(stream).lower()}\n'
            )
            async with Runtime(file, environ={"K": "sk-named"}) as runtime:
                session = await runtime.open("a", tools=[weather])
                result = await session.ask("Weather in Oslo?")
                history = await session.history()
    assert (result.text, host.refusals) == ("It is cold.", [])
    thoughts = [block.text for message in history for block in message.blocks if isinstance(block, Thinking)]
    assert thoughts == ["I look."]
    assert all(b'"reasoning_effort":"low"' in exchange.body for exchange in host.requests)


AZURE: dict[str, tuple[str, Callable[[], AzureServer]]] = {
    "v1": ("azure", lambda: AzureServer(list(SCRIPT), api_key="sk-azure")),
    "classic": ("azure", lambda: AzureServer(list(SCRIPT), deployment="gpt-prod", api_key="sk-azure")),
}


@pytest.mark.parametrize("form", AZURE)
async def test_azure_openai_is_reached_with_both_url_forms_and_its_own_key_header(
    tmp_path: Path, form: str
) -> None:
    kind, make = AZURE[form]
    host, file = make(), tmp_path / "actors.toml"
    with anyio.fail_after(60):
        async with serve(host):
            file.write_text(
                f'[backends.a]\nkind = "{kind}"\nmodel = "gpt-5.2"\nbase_url = "{host.endpoint}"\nauth = "K"\n'
            )
            async with Runtime(file, environ={"K": "sk-azure"}) as runtime:
                session = await runtime.open("a", tools=[weather])
                result = await session.ask("Weather in Oslo?")
                environ = {"AZURE_OPENAI_API_KEY": "sk-azure", "AZURE_OPENAI_BASE_URL": host.endpoint}
                assert result.status == "complete"
            async with Runtime(environ=environ) as runtime:
                await (await runtime.open("azure:gpt-5.2")).ask("Hello.")
    paths = {(exchange.path, exchange.query) for exchange in host.requests}
    if form == "v1":
        assert paths == {("/openai/v1/chat/completions", "")}
    else:
        assert paths == {("/openai/deployments/gpt-prod/chat/completions", "api-version=2024-10-21")}
    assert [exchange.status for exchange in host.requests] == [200, 200, 200]
    assert host.refusals == []


@pytest.mark.parametrize("query", ["", "?api-version=", "?version=2024-10-21"])
async def test_an_azure_deployment_needs_an_api_version(tmp_path: Path, query: str) -> None:
    host, file = AzureServer(deployment="gpt-prod"), tmp_path / "actors.toml"
    with anyio.fail_after(60):
        async with serve(host):
            file.write_text(
                f'[backends.a]\nkind = "azure"\nmodel = "gpt-5.2"\nbase_url = "{host.base_url}{query}"\n'
            )
            async with Runtime(file, environ={}) as runtime:
                result = await (await runtime.open("a")).ask("Hello.", check=False)
    assert (result.status, [exchange.status for exchange in host.requests]) == ("failed", [404])


def test_no_cache_key_is_sent_to_azure_because_azure_refuses_it() -> None:
    body = b'{"model":"m","messages":[{"role":"user","content":"Hi."}]%b}'
    assert validate(body % b"", "azure") is None
    refusal = validate(body % b',"prompt_cache_key":"k"', "azure")
    assert refusal is not None
    assert "prompt_cache_key" in refusal.message


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("azure_responses", lambda: ResponsesServer(list(SCRIPT))),
        ("perplexity", lambda: CompatibleServer(list(SCRIPT), vendor="openai_compatible")),
        ("mimo", lambda: DeepSeekServer(list(SCRIPT))),
    ],
)
async def test_a_named_host_completes_a_tool_call_in_its_own_dialect(
    tmp_path: Path, kind: str, make: Callable[[], LoopbackServer]
) -> None:
    host = make()
    file = tmp_path / "actors.toml"
    with anyio.fail_after(60):
        async with serve(host):
            file.write_text(f'[backends.a]\nkind = "{kind}"\nmodel = "m"\nbase_url = "{host.endpoint}"\n')
            async with Runtime(file, environ={}) as runtime:
                session = await runtime.open("a", tools=[weather])
                result = await session.ask("Weather in Oslo?")
    assert (result.text, host.refusals) == ("It is cold.", [])
