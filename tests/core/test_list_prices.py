"""Check list prices and windows from `genai-prices`: they fill gaps and change no request."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from time import time
from typing import Any

import anyio
import pytest
from genai_prices import Usage as ListedUsage
from genai_prices import calc_price
from genai_prices.data_snapshot import get_snapshot

from actors import AskResult, Budget, Compaction, Price, Runtime, tool
from actors.config.providers import PROVIDERS
from actors.core.lanes.lane import Preview
from actors.errors import ConfigError
from actors.provider import pricing
from actors.provider.pricing import DAY, UNLISTED, find_listing
from actors.testing import AnthropicServer, Call, OpenAIServer, Say, Turn, serve

pytestmark = pytest.mark.anyio

CLAUDE, TODAY = "claude-sonnet-5", int(time() // DAY)


@tool
def weather(city: str) -> str:
    """Current weather of a city."""
    return f"{city}: 4 C"


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run a test as if the package were not installed."""
    monkeypatch.setattr(pricing, "is_installed", lambda: False)
    find_listing.cache_clear()
    yield
    find_listing.cache_clear()


def script() -> list[Turn]:
    return [
        Turn(Call("weather", {"city": "Oslo"})).with_usage((1000, 50), (0, 0)),
        Turn(Say("It is cold.")).with_usage((2000, 10), (400, 100)),
    ]


async def run_ask(
    folder: Path, lines: str = "", **options: Any
) -> tuple[AskResult, Preview, list[bytes]]:  # Any: arguments of `Runtime`
    """Return the result of an ask with a tool, a preview after it, and the request bodies."""
    server, file = AnthropicServer(script()), folder / "actors.toml"
    with anyio.fail_after(60):
        async with serve(server):
            file.write_text(
                f'[backends.a]\nkind = "anthropic"\nmodel = "{CLAUDE}"\nbase_url = "{server.base_url}"\n{lines}\n'
            )
            async with Runtime(file, environ={}, **options) as runtime:
                session = await runtime.open("a", tools=[weather], id="one")
                result = await session.ask("Weather in Oslo?")
                preview = await session.preview("a")
    return result, preview, [exchange.body for exchange in server.requests]


async def test_the_cost_of_an_ask_uses_the_listed_price_of_its_model(tmp_path: Path) -> None:
    result, _, _ = await run_ask(tmp_path)
    usage = result.usage
    listed = calc_price(
        ListedUsage(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            cache_write_tokens=usage.cache_write_tokens,
        ),
        CLAUDE,
        provider_id="anthropic",
    )
    assert listed.total_price > 0
    assert result.cost == pytest.approx(float(listed.total_price))


@pytest.mark.parametrize(
    ("lines", "options"),
    [
        ("price = { input = 7, output = 9, cache_read = 1, cache_write = 2 }", {}),
        (f'[prices."{CLAUDE}"]\ninput = 7\noutput = 9\ncache_read = 1\ncache_write = 2', {}),
        ("", {"prices": {"claude-*": Price(7, 9, 1, 2)}}),
    ],
    ids=["backend", "file", "runtime"],
)
async def test_a_configured_price_takes_precedence_over_the_listed_price(
    tmp_path: Path, lines: str, options: dict[str, Any]
) -> None:
    result, _, _ = await run_ask(tmp_path, lines, **options)
    assert result.cost == pytest.approx(Price(7, 9, 1, 2).of(result.usage))


async def test_a_configured_price_is_not_completed_from_the_list(tmp_path: Path) -> None:
    result, _, _ = await run_ask(tmp_path, "price = { input = 7, output = 9 }")
    assert result.cost == Price(7, 9).of(result.usage)


@pytest.mark.usefixtures("absent")
async def test_without_the_price_package_only_configured_prices_and_windows_are_known(tmp_path: Path) -> None:
    result, preview, _ = await run_ask(tmp_path)
    assert (result.status, result.cost, preview.window) == ("complete", None, None)
    with pytest.raises(ConfigError, match="A cost budget needs the price"):
        async with Runtime(environ={"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}) as runtime:
            await runtime.open(f"anthropic:{CLAUDE}", budget=Budget(money=1.0))


@pytest.mark.parametrize("lines", ["", '[compaction]\nwindows = "listed"'])
async def test_request_bytes_do_not_depend_on_the_price_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str
) -> None:
    _, shown, with_it = await run_ask(tmp_path, lines)
    monkeypatch.setattr(pricing, "is_installed", lambda: False)
    find_listing.cache_clear()
    _, hidden, without_it = await run_ask(tmp_path, lines)
    find_listing.cache_clear()
    assert with_it == without_it
    assert len(with_it) == 2
    assert shown.body == hidden.body


async def test_a_listed_context_window_is_displayed_but_triggers_no_compaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, preview, _ = await run_ask(tmp_path)
    assert preview.window == find_listing("anthropic", CLAUDE, TODAY).window == 1_000_000
    own = (await run_ask(tmp_path, "context = 5000"))[1]
    assert own.window == 5000
    small = pricing.Listing(window=100)
    monkeypatch.setattr("actors.provider.pricing.find_listing", lambda *_: small)
    assert not (await run_ask(tmp_path))[1].compacts
    listed = Compaction(windows="listed", keep_turns=0, large_result_bytes=256)
    assert (await run_ask(tmp_path, compaction=listed))[1].window == 100


@pytest.mark.parametrize("by", ["file", "runtime"])
async def test_a_setting_lets_listed_context_windows_trigger_compaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    small = pricing.Listing(window=100)
    monkeypatch.setattr("actors.provider.pricing.find_listing", lambda *_: small)
    server, file = OpenAIServer([Turn(Say("word " * 400))] * 3), tmp_path / "actors.toml"
    lines = '[compaction]\nwindows = "listed"\nkeep_turns = 0\n' if by == "file" else ""
    options: dict[str, Any] = (
        {} if by == "file" else {"compaction": Compaction(windows="listed", keep_turns=0)}
    )
    with anyio.fail_after(60):
        async with serve(server):
            file.write_text(
                f'[backends.a]\nkind = "openai"\nmodel = "gpt-5.2"\nbase_url = "{server.base_url}"\n{lines}'
            )
            async with Runtime(file, environ={}, **options) as runtime:
                session = await runtime.open("a")
                await session.ask("Say much.")
                assert (await session.preview("a")).compacts


def test_the_setting_windows_accepts_only_the_values_configured_and_listed() -> None:
    with pytest.raises(
        ConfigError, match="compaction= has windows='all', but windows must be one of configured, listed"
    ):
        Runtime(environ={}, compaction=Compaction(windows="all"))  # type: ignore[arg-type]  # a mistake


@pytest.mark.parametrize(
    ("provider", "model", "known"),
    [
        ("openai", "gpt-5.6-sol", True),  # its price has tiers
        ("openai", "gpt-5.2", True),  # its list price has no price for cache writes
        ("aws", "eu.anthropic.claude-sonnet-4-5-20250929-v1:0", True),
        ("openai", "no-such-model", False),
        ("nobody", "gpt-5.2", False),
        ("openai", "", False),
    ],
)
def test_the_listed_price_is_the_price_of_the_first_tier_and_unlisted_models_have_no_price(
    provider: str, model: str, known: bool
) -> None:
    found = find_listing(provider, model, TODAY)
    assert (found != UNLISTED) == known
    if known:
        assert found.price is not None
        _, info = get_snapshot().find_provider_model(model, None, provider, None)
        prices: Any = info.get_prices(datetime.now(UTC))  # Any: its fields are created at first use
        base = getattr(prices.input_mtok, "base", prices.input_mtok)
        assert isinstance(base, Decimal)
        assert found.price.input == float(base)
        assert found.price.cache_write is not None


def test_every_backend_kind_with_list_prices_is_in_the_price_package() -> None:
    listed = {provider.price_list for provider in PROVIDERS.values()} - {""}
    assert listed <= {provider.id for provider in get_snapshot().providers}


def test_a_runtime_imports_the_price_package_only_when_a_backend_is_used() -> None:
    program = (
        "import anyio, sys; from actors import Runtime\n"
        "async def main():\n"
        "    async with Runtime(environ={'OPENAI_BASE_URL': 'http://127.0.0.1:9'}) as runtime:\n"
        "        await runtime.open('openai:gpt-5.2')\n"
        "anyio.run(main); sys.exit('genai_prices' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
