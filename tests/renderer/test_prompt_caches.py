"""Prompt caches: random walks and sessions read nearly everything that an ideal cache would, and report it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from actors import Session, tool
from actors.config import BackendSettings, RuntimeLimits
from actors.core.dialects.dialect import Cache
from actors.strict.server import LoopbackServer
from actors.testing import Call, PromptCache, Say, Script, Turn
from actors.testing.simulation.world import DIALECTS
from benchmarks import caches
from benchmarks.figures import Extent
from tests.commands.at_scale import extent
from tests.commands.cache_walks import CACHED, MARKED, TirelessWalk, count_tokens
from tests.renderer.marks import marks
from tests.scripted import scripted
from tests.strict_hosts import strict_host

WALKS = extent((20, 24, 29, 30, 31, 33, 38, 42, 43), (*range(28, 44),))
"""Seeds of short walks that cover every host."""
TIRELESS = extent((12, 14, 16), (*range(12, 16),))
"""Seeds of walks whose turns all reach their round limit."""
WORDS = "word " * 1000
MODELS = {"bedrock": "eu.anthropic.claude-sonnet-5-v1:0", "openrouter": "anthropic/claude-sonnet-5"}
WRITES = {*MARKED}
"""Dialects whose hosts report cache writes."""


@pytest.mark.long
@pytest.mark.requirement("PROMISE-14")
def test_random_conversations_read_nearly_the_ideal_number_of_cached_tokens() -> None:
    counts = count_tokens(WALKS)
    assert set(counts.ideal) == set(CACHED)
    for name in CACHED:
        assert counts.ideal[name] > 5_000, name
        assert counts.share(name) >= 0.99, (name, counts.share(name))


def test_simulated_sessions_read_nearly_the_ideal_number_of_cached_tokens() -> None:
    """The simulation includes faults, cancels, switches, compaction and changed tools."""
    (measure,) = caches.MEASURES
    rows = {row.case: row for row in measure.run(Extent(quick=True))}
    assert set(rows) == set(DIALECTS)
    for name, row in rows.items():
        assert row.value is not None, name
        assert row.is_met, (name, row.value, row.note)


def test_only_some_dialects_miss_the_cache_at_the_round_limit() -> None:
    counts = count_tokens(TIRELESS, TirelessWalk)
    chosen = ("anthropic", "openrouter")
    for name in chosen:
        assert counts.ideal[name] > 5_000, name
        assert 0.9 <= counts.share(name) < 1, (name, counts.share(name))
    others = [name for name in CACHED if name not in chosen]
    read, ideal = (sum(each[name] for name in others) for each in (counts.read, counts.ideal))
    assert ideal > 5_000
    assert read >= 0.99 * ideal


@tool
async def look(city: str) -> str:
    """Return a long text about a city."""
    return f"{city}: {WORDS}"


def alternate_call_and_answer() -> Callable[[Any], Turn]:
    """Return a model that alternates between a call and an answer."""
    asked = iter(range(1000))
    return lambda _: Turn(Say("Known.")) if next(asked) % 2 else Turn(Call("look", {"city": "Oslo"}))


@asynccontextmanager
async def cached_session(
    name: str, cache: Cache = "default", limits: RuntimeLimits | None = None
) -> AsyncIterator[tuple[Session, LoopbackServer]]:
    """Yield a session on one backend, whose host has a prompt cache that never expires."""
    server = strict_host(name, Script(alternate_call_and_answer()))
    server.cache = PromptCache(clock=lambda: 0.0)
    fields = {"cache": cache, "model": MODELS.get(name, "model-1")}
    async with scripted(server, tools=[look], system=WORDS, limits=limits, fields=fields) as (_, _, session):
        yield session, server


@pytest.mark.alternating
@pytest.mark.requirement("PROMISE-14", "PROMISE-11")
@pytest.mark.parametrize("name", CACHED)
async def test_a_session_reads_its_earlier_requests_from_the_cache(name: str, anyio_backend: str) -> None:
    async with cached_session(name) as (session, server):
        results = [await session.ask(f"Ask {number}: {WORDS}") for number in range(3)]
    cache, usage = server.cache, [result.usage for result in results]
    assert server.refusals == []
    assert cache.ideal_tokens > 10_000
    assert cache.read_tokens >= 0.99 * cache.ideal_tokens
    assert sum(told.cache_read_tokens for told in usage) == cache.read_tokens
    assert sum(told.cache_write_tokens for told in usage) == cache.written_tokens
    assert (cache.written_tokens > 0) == (name in WRITES)
    assert all(told.input_tokens >= told.cache_read_tokens + told.cache_write_tokens for told in usage[1:])


@pytest.mark.parametrize("name", ["anthropic", "bedrock", "openrouter", "openai_chat"])
async def test_a_backend_with_caching_off_sends_no_cache_marks(name: str, anyio_backend: str) -> None:
    async with cached_session(name, "off") as (session, server):
        first, second = await session.ask("Ask."), await session.ask("Ask again.")
    assert all(b"cache" not in exchange.body for exchange in server.requests)
    if name in MARKED:
        assert (first.usage.cache_write_tokens, second.usage.cache_read_tokens) == (0, 0)


async def test_a_preview_shows_the_cache_marks_of_the_next_request(anyio_backend: str) -> None:
    async with cached_session("anthropic", "long") as (session, server):
        await session.ask("Ask.")
        body = (await session.preview("anthropic")).body
        assert len(marks(body)) == 4
        assert body.count(b'"ttl":"1h"') == 4
        await session.ask("Ask again.")
        assert marks(server.requests[-2].body) == marks(body)


async def test_each_lane_keeps_its_own_cache_key(anyio_backend: str) -> None:
    async with cached_session("openai_chat") as (session, server):
        await session.ask("Ask.")
        await session.ask("Ask again.")
        keys = {_key(exchange.body) for exchange in server.requests}
        assert len(server.requests) == 4
        assert len(keys) == 1
        assert keys.pop()


def _key(body: bytes) -> bytes:
    return body.partition(b'"prompt_cache_key":"')[2].partition(b'"')[0]


async def test_the_tool_choice_changes_only_at_the_round_limit(anyio_backend: str) -> None:
    async with cached_session("anthropic", limits=RuntimeLimits(max_rounds=2)) as (session, server):
        await session.ask("Ask.")
        assert [b'"tool_choice"' in exchange.body for exchange in server.requests] == [False, True]
    async with cached_session("anthropic") as (session, server):
        await session.ask("Ask.")
        assert [b'"tool_choice"' in exchange.body for exchange in server.requests] == [False, False]


TOOLS_OFF_KEEPS = [name for name in CACHED if name not in ("anthropic", "openrouter")]
"""Hosts whose cached prefix does not include the tool choice."""


@pytest.mark.alternating
@pytest.mark.parametrize("name", TOOLS_OFF_KEEPS)
async def test_the_request_with_tools_off_still_reads_the_cache(name: str, anyio_backend: str) -> None:
    async with cached_session(name, limits=RuntimeLimits(max_rounds=2)) as (session, server):
        await session.ask(f"Ask. {WORDS}")
        before = server.cache.read_tokens
        ideal = server.cache.ideal_tokens
        await session.ask(f"Ask again. {WORDS}")
    assert server.refusals == []
    assert len(server.requests) == 4
    assert server.cache.ideal_tokens > ideal > 0
    assert server.cache.read_tokens - before >= 0.99 * (server.cache.ideal_tokens - ideal)


def test_an_unknown_cache_setting_is_rejected() -> None:
    with pytest.raises(ValueError, match="cache"):
        BackendSettings.model_validate({"kind": "anthropic", "model": "m", "cache": "forever"})
