"""Reset times of rate limits, in any form: the runtime waits for a short time, but not for a long one."""

import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest
from trio.testing import MockClock

from actors.config import BackendLimits, PoolSettings
from actors.core.data.persistent import Segments
from actors.provider.admission import Pace
from actors.provider.attempts import Answer, Retries
from actors.testing import Say, Turn
from actors.transport import HttpTransport, Response, Timeouts
from benchmarks.storms import COMPLETE_ANSWER, Backend, PlainResponse, ask, provider_for
from tests.runtime.hosting_cases import case
from tests.runtime_support import anthropic, openai, runtime_with

MOMENTS: list[dict[str, str]] = case("reset-that-is-a-moment")["headers_of_a_200"]
HOURS: list[dict[str, Any]] = case("reset-without-retry-after")["answers"]  # Any: each case has its own shape
LIMITED = {"error": {"message": "Too many requests", "type": "rate_limit_error"}}


def moment(told: str) -> str:
    """Return the header value for a placeholder in angle brackets."""
    now = time.time()
    hours = 15 if "15 hours" in told else 5
    if told.startswith("<milliseconds"):
        return str(round(1000 * (now + 3600 * hours * ("ahead" in told))))
    if told.startswith("<seconds"):
        return str(round(now + 1))
    if told.startswith("<RFC 3339"):
        return (datetime.now(UTC) + timedelta(hours=hours)).isoformat(timespec="seconds")
    return told


def fill_moments(value: Any) -> Any:  # Any: JSON
    """Return a case with its placeholders replaced."""
    if isinstance(value, dict):
        return {name: fill_moments(inner) for name, inner in value.items()}
    return moment(value) if isinstance(value, str) else value


@pytest.mark.trio
@pytest.mark.parametrize("headers", MOMENTS)
async def test_a_rate_limit_that_names_its_reset_as_a_time_delays_no_request_for_long(
    autojump_clock: MockClock, headers: Mapping[str, str]
) -> None:
    backend = Backend(latency=0, headers=fill_moments(headers))
    async with provider_for(backend, Pace()) as provider:
        await ask(provider, "s")
        assert isinstance(await ask(provider, "t"), Answer)
    assert backend.asked[1] - backend.asked[0] <= 2


@pytest.mark.trio
async def test_a_quota_that_is_used_up_for_hours_delays_no_request(autojump_clock: MockClock) -> None:
    headers = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "5h"}
    backend = Backend(latency=0, headers=headers)
    async with provider_for(backend, Pace()) as provider:
        await ask(provider, "s")
        assert isinstance(await ask(provider, "t"), Answer)
    assert backend.asked[1] - backend.asked[0] < 0.01


@dataclass
class RateLimitingTransport(HttpTransport):
    """The real transport to a host, one of whose backends rate-limits everything with these headers."""

    headers: Mapping[str, str]
    body: object
    port: int = 0
    asked: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    @asynccontextmanager
    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AsyncIterator[Response]:
        if f":{self.port}/" in url:
            self.asked.append(anyio.current_time())
            yield PlainResponse(429, self.headers, json.dumps(self.body).encode())
            return
        async with super().send(url, headers, segments, timeouts) as response:
            yield response


@pytest.mark.anyio
@pytest.mark.parametrize("told", HOURS, ids=lambda told: told["kind"])
async def test_the_runtime_does_not_wait_for_a_limit_that_resets_in_hours(told: dict[str, Any]) -> None:
    told = fill_moments(told)
    first = anthropic() if told["kind"] == "anthropic" else openai()
    transport = RateLimitingTransport(told.get("headers", {}), told.get("body", LIMITED))
    pools = {"pool": PoolSettings(members=("a", "b"), cooldown=0)}
    limits = BackendLimits(attempts=4)
    async with runtime_with(
        a=first, b=openai(Turn(Say("I can."))), pools=pools, backend=limits, transport=transport
    ) as runtime:
        assert first.port is not None
        transport.port = first.port
        alone = await (await runtime.open("a")).ask("Hello.", check=False)
        assert (alone.status, len(transport.asked)) == ("failed", 1)
        assert "it asks to wait " in alone.error
        assert " h" in alone.error
        pooled = await (await runtime.open("pool")).ask("Hello.", check=False)
        assert (pooled.text, pooled.binding.backend) == ("I can.", "b")
    assert len(transport.asked) <= 2


@dataclass
class LimitedOnceBackend(Backend):
    """A backend that rate-limits its first request, and names the reset in a header."""

    @asynccontextmanager
    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AsyncIterator[Response]:
        self.asked.append(anyio.current_time())
        if len(self.asked) == 1:
            yield PlainResponse(429, self.headers, json.dumps(LIMITED).encode())
        else:
            yield PlainResponse(200, {}, COMPLETE_ANSWER)


@pytest.mark.trio
async def test_the_runtime_waits_for_a_limit_that_resets_soon(autojump_clock: MockClock) -> None:
    told = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "2s"}
    backend = LimitedOnceBackend(headers=told)
    async with provider_for(backend, Pace(), Retries(attempts=4)) as provider:
        assert isinstance(await ask(provider, "s"), Answer)
    first, second = backend.asked
    assert 2 <= second - first <= 2.5
