"""Caches are read as far as they can be: over random walks, and by sessions, whose results say what was read."""

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
"""Numbers of short walks that come to every host."""
TIRELESS = extent((12, 14, 16), (*range(12, 16),))
"""Walks whose turns all come to their limit, at Anthropic, OpenRouter and others."""
WORDS = "word " * 1000
MODELS = {"bedrock": "eu.anthropic.claude-sonnet-5-v1:0", "openrouter": "anthropic/claude-sonnet-5"}
WRITES = {*MARKED}
"""Dialects whose hosts report what was written."""


@pytest.mark.long
@pytest.mark.requirement("PROMISE-14")
def test_random_walks_read_what_an_ideal_cache_could_have_read() -> None:
    counts = count_tokens(WALKS)
    assert set(counts.ideal) == set(CACHED)
    for name in CACHED:
        assert counts.ideal[name] > 5_000, name
        assert counts.share(name) >= 0.99, (name, counts.share(name))


def test_whole_sessions_read_what_an_ideal_cache_could_have_read_whatever_befalls_them() -> None:
    """In the simulation: with faults, cancels, switches, compaction and other tools, through the whole runtime."""
    (measure,) = caches.MEASURES
    rows = {row.case: row for row in measure.run(Extent(quick=True))}
    assert set(rows) == set(DIALECTS)
    for name, row in rows.items():
        assert row.value is not None, name
        assert row.is_met, (name, row.value, row.note)


def test_a_turn_at_its_limit_of_rounds_loses_messages_only_where_the_tool_choice_stands_before_them() -> None:
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
    """What is known of a city."""
    return f"{city}: {WORDS}"


def two_rounds() -> Callable[[Any], Turn]:
    """A model that looks something up, then answers, in turn."""
    asked = iter(range(1000))
    return lambda _: Turn(Say("Known.")) if next(asked) % 2 else Turn(Call("look", {"city": "Oslo"}))


@asynccontextmanager
async def talking(
    name: str, cache: Cache = "default", limits: RuntimeLimits | None = None
) -> AsyncIterator[tuple[Session, LoopbackServer]]:
    """A session with one backend of a dialect, whose host's cache has a clock that stands still."""
    server = strict_host(name, Script(two_rounds()))
    server.cache = PromptCache(clock=lambda: 0.0)
    fields = {"cache": cache, "model": MODELS.get(name, "model-1")}
    async with scripted(server, tools=[look], system=WORDS, limits=limits, fields=fields) as (_, _, session):
        yield session, server


@pytest.mark.alternating
@pytest.mark.requirement("PROMISE-14", "PROMISE-11")
@pytest.mark.parametrize("name", CACHED)
async def test_a_session_reads_all_that_it_sent_before_and_its_results_say_so(
    name: str, anyio_backend: str
) -> None:
    async with talking(name) as (session, server):
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
async def test_a_backend_that_asks_for_no_cache_says_nothing_of_one(name: str, anyio_backend: str) -> None:
    async with talking(name, "off") as (session, server):
        first, second = await session.ask("Ask."), await session.ask("Ask again.")
    assert all(b"cache" not in exchange.body for exchange in server.requests)
    if name in MARKED:
        assert (first.usage.cache_write_tokens, second.usage.cache_read_tokens) == (0, 0)


async def test_a_preview_shows_the_marks_of_the_next_request(anyio_backend: str) -> None:
    async with talking("anthropic", "long") as (session, server):
        await session.ask("Ask.")
        body = (await session.preview("anthropic")).body
        assert len(marks(body)) == 4
        assert body.count(b'"ttl":"1h"') == 4
        await session.ask("Ask again.")
        assert marks(server.requests[-2].body) == marks(body)


async def test_each_lane_has_a_key_of_its_own_that_stays(anyio_backend: str) -> None:
    async with talking("openai_chat") as (session, server):
        await session.ask("Ask.")
        await session.ask("Ask again.")
        keys = {_key(exchange.body) for exchange in server.requests}
        assert len(server.requests) == 4
        assert len(keys) == 1
        assert keys.pop()


def _key(body: bytes) -> bytes:
    return body.partition(b'"prompt_cache_key":"')[2].partition(b'"')[0]


async def test_the_rounds_of_a_turn_have_one_tool_choice_until_their_limit(anyio_backend: str) -> None:
    async with talking("anthropic", limits=RuntimeLimits(max_rounds=2)) as (session, server):
        await session.ask("Ask.")
        assert [b'"tool_choice"' in exchange.body for exchange in server.requests] == [False, True]
    async with talking("anthropic") as (session, server):
        await session.ask("Ask.")
        assert [b'"tool_choice"' in exchange.body for exchange in server.requests] == [False, False]


TOOLS_OFF_KEEPS = [name for name in CACHED if name not in ("anthropic", "openrouter")]
"""Hosts where the tool choice does not stand in front of the messages."""


@pytest.mark.alternating
@pytest.mark.parametrize("name", TOOLS_OFF_KEEPS)
async def test_the_request_with_tools_off_reads_all_that_was_sent_before(
    name: str, anyio_backend: str
) -> None:
    async with talking(name, limits=RuntimeLimits(max_rounds=2)) as (session, server):
        await session.ask(f"Ask. {WORDS}")
        before = server.cache.read_tokens
        ideal = server.cache.ideal_tokens
        await session.ask(f"Ask again. {WORDS}")
    assert server.refusals == []
    assert len(server.requests) == 4
    assert server.cache.ideal_tokens > ideal > 0
    assert server.cache.read_tokens - before >= 0.99 * (server.cache.ideal_tokens - ideal)


def test_the_setting_is_one_of_three_words() -> None:
    with pytest.raises(ValueError, match="cache"):
        BackendSettings.model_validate({"kind": "anthropic", "model": "m", "cache": "forever"})
