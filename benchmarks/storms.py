"""Simulate outages, overload and competing tenants against a backend.

    python -m benchmarks.storms            runs in real time for a few minutes and prints one table
    python -m benchmarks.storms --quick    uses shorter outages

`tests/provider/test_storms.py` runs the same scenarios on a virtual clock. Requests go through a provider actor to a
backend in this process. The backend has a latency, refuses requests while it is down, and limits concurrent requests.
"""

import argparse
import sys
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from math import inf
from random import Random
from typing import Literal

import anyio

from actors.adapters.adapter import adapter
from actors.adapters.request import Request
from actors.core.data.persistent import Segments
from actors.core.dialects.profiles import dialect
from actors.core.values.identity import Binding
from actors.kernel import Ref, System
from actors.provider.admission import Pace
from actors.provider.attempts import Answer, BrokenAnswer, Generated, Retries
from actors.provider.provider_actor import ProviderActor, ProviderCommand
from actors.provider.rounds import Endpoint, Generate
from actors.transport import Response, Timeouts

BINDING = Binding("a", "openai_chat", "http://127.0.0.1:9/v1", "", "gpt")
COMPLETE_ANSWER = (
    b'data: {"choices":[{"index":0,"delta":{"content":"ok"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)
DOWN = b'{"error":{"message":"no","type":"overloaded_error"}}'
LIMITED = b'{"error":{"message":"Rate limit reached.","type":"rate_limit_error"}}'


@dataclass
class PlainResponse:
    """A response with a complete body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as one chunk."""
        yield self.body


@dataclass
class Backend:
    """A transport that acts as a backend in this process and records its requests.

    Args:
        latency: Seconds until an answer.
        down: Seconds after the first request during which every answer has status 529.
        capacity: Maximum number of concurrent requests. Further requests get status 429.
        asked, answered: Times of requests and of successful answers.
        by: Tenants of the requests, in order.
        refused: Number of answers with status 429.
        here, most: Current and maximum number of concurrent requests.
    """

    latency: float = 0.5
    down: float = 0.0
    capacity: float = inf
    headers: Mapping[str, str] = field(default_factory=dict)
    asked: list[float] = field(default_factory=list)
    answered: list[float] = field(default_factory=list)
    by: list[str] = field(default_factory=list)
    refused: int = 0
    here: int = 0
    most: int = 0

    @asynccontextmanager
    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AsyncIterator[Response]:
        """Answer a request after the latency."""
        self.asked.append(anyio.current_time())
        self.by.append(b"".join(segments).decode())
        self.here += 1
        self.most = max(self.most, self.here)
        try:
            if self.here > self.capacity:
                self.refused += 1
                yield PlainResponse(429, {}, LIMITED)
                return
            await anyio.sleep(self.latency)
            if anyio.current_time() - self.asked[0] < self.down:
                yield PlainResponse(529, {}, DOWN)
                return
            self.answered.append(anyio.current_time())
            yield PlainResponse(200, {**self.headers}, COMPLETE_ANSWER)
        finally:
            self.here -= 1

    async def close(self) -> None:
        """Do nothing: there is no connection."""


@asynccontextmanager
async def provider_for(
    backend: Backend, pace: Pace, retries: Retries | None = None, random: Random | None = None
) -> AsyncIterator[Ref[ProviderCommand]]:
    """Yield the address of a provider actor that sends its requests to a backend."""
    endpoint = Endpoint(BINDING.endpoint, retries=retries or Retries(attempts=4), pace=pace)
    async with System() as system:
        codec = adapter(dialect("openai_chat"))
        make = lambda: ProviderActor(codec, endpoint, backend, random or Random(1))  # noqa: E731  jitter, not secrets
        yield system.spawn(make, "provider/a/1")


async def ask(provider: Ref[ProviderCommand], session: str, number: int = 0, tenant: str = "") -> Generated:
    """Send one request of a session, and return the answer or the failure."""
    request = Request("/chat/completions", (), Segments.of(tenant.encode() or b"{}"))
    key = f"{session}/{number}"
    return await provider.ask(Generate(key, request, BINDING, 1, 1, 1, session=session, tenant=tenant))


UNGUARDED = Pace(concurrency=1_000_000, waiting=1_000_000, failures=1_000_000_000)
"""Limits that are too high to have an effect."""


@dataclass
class OutageResult:
    """The requests that a backend received during and after an outage.

    Args:
        sessions: Number of sessions.
        requests: Number of requests during the outage.
        recovery: Times of successful answers.
        most: Maximum number of concurrent requests.
    """

    sessions: int
    requests: int
    recovery: list[float]
    most: int


async def run_outage(
    sessions: int, *, down: float = 60.0, pace: Pace | None = None, pause: float = 5.0
) -> OutageResult:
    """Let `sessions` sessions send requests to a failing backend, and repeat each request until it is answered."""
    backend, random = Backend(down=down), Random(7)

    async def session(number: int) -> None:
        asked = 0
        while not isinstance(await ask(provider, f"s{number}", asked), Answer):
            asked += 1
            await anyio.sleep(pause * random.uniform(0.8, 1.2))

    async with (
        provider_for(backend, pace or Pace(concurrency=64)) as provider,
        anyio.create_task_group() as tasks,
    ):
        for number in range(sessions):
            tasks.start_soon(session, number)
    during = [at for at in backend.asked if at - backend.asked[0] < down]
    return OutageResult(sessions, len(during), backend.answered, backend.most)


@dataclass
class OverloadResult:
    """The results of sending a backend more requests than it can serve.

    Args:
        came: Number of requests by result: "answered", or the kind of failure.
        served, refused: Seconds until each answer and each failure.
        most: Maximum number of concurrent requests at the backend.
    """

    came: Counter[str]
    served: list[float]
    refused: list[float]
    most: int


async def run_overload(rate: int, *, seconds: int, pace: Pace, latency: float = 1.0) -> OverloadResult:
    """Send `rate` requests per second to a backend, without waiting for its answers."""
    backend, offered = Backend(latency=latency), OverloadResult(Counter(), [], [], 0)

    async def session(number: int) -> None:
        begun = anyio.current_time()
        generated = await ask(provider, f"s{number}")
        took = anyio.current_time() - begun
        kind = generated.failure.kind if isinstance(generated, BrokenAnswer) else "answered"
        offered.came[kind] += 1
        (offered.served if kind == "answered" else offered.refused).append(took)

    async with provider_for(backend, pace) as provider, anyio.create_task_group() as tasks:
        for number in range(rate * seconds):
            tasks.start_soon(session, number)
            await anyio.sleep(1 / rate)
    offered.most = backend.most
    return offered


async def tenant_order(
    tenants: Mapping[str, int], *, requests: int, pace: Pace, latency: float = 0.1
) -> list[str]:
    """Run busy sessions for each tenant, and return the tenants of the first requests, in order."""
    backend = Backend(latency=latency)

    async def session(tenant: str, number: int) -> None:
        asked = 0
        while len(backend.by) < requests:
            await ask(provider, f"{tenant}{number}", asked, tenant)
            asked += 1

    async with provider_for(backend, pace) as provider, anyio.create_task_group() as tasks:
        for tenant, sessions in tenants.items():
            for number in range(sessions):
                tasks.start_soon(session, tenant, number)
    return backend.by[:requests]


async def run_rate_limit(capacity: int, *, sessions: int, asks: int, pace: Pace) -> Backend:
    """Send requests to a backend whose capacity is below the configured concurrency, and return the backend."""
    backend = Backend(capacity=capacity, latency=0.5)

    async def session(number: int) -> None:
        for asked in range(asks):
            await ask(provider, f"s{number}", asked)

    async with provider_for(backend, pace) as provider, anyio.create_task_group() as tasks:
        for number in range(sessions):
            tasks.start_soon(session, number)
    return backend


async def _storm_figures(down: float) -> list[tuple[str, str]]:
    naive = await run_outage(100, down=down, pace=UNGUARDED)
    kept = await run_outage(1000, down=down)
    spread = kept.recovery[-1] - kept.recovery[0]
    offered = await run_overload(80, seconds=round(down / 2), pace=Pace(concurrency=8, waiting=40))
    weights = {"gold": 3.0}
    served = Counter(
        await tenant_order({"gold": 40, "plain": 400}, requests=800, pace=Pace(8, weights=weights))
    )
    allowed = await run_rate_limit(8, sessions=40, asks=25, pace=Pace(concurrency=64))
    return [
        (f"outage of {down:g} s, 1,000 sessions without limits: requests", f"{10 * naive.requests:,}"),
        ("  with limits: requests", f"{kept.requests:,}"),
        ("  seconds to serve all sessions afterwards", f"{spread:.1f}"),
        (
            "overload, 10 times the capacity: refused",
            f"{offered.came['overloaded']:,} of {offered.came.total():,}",
        ),
        ("  longest wait for a refusal, ms", f"{1000 * max(offered.refused):.1f}"),
        ("  longest wait for an answer, s", f"{max(offered.served):.1f}"),
        (
            "tenants of weight 3 and 1, 40 and 400 sessions: requests of each",
            f"{served['gold']} and {served['plain']}",
        ),
        ("backend that takes 8 at once, 64 allowed: refused", f"{allowed.refused} of {len(allowed.asked):,}"),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures for each event loop."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.storms", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="outages of 10 s instead of 60")
    given = parser.parse_args(arguments)
    backends: tuple[Literal["asyncio", "trio"], ...] = ("asyncio", "trio")
    for backend in backends:
        print(backend)
        for name, figure in anyio.run(_storm_figures, 10.0 if given.quick else 60.0, backend=backend):
            print(f"  {name:<72} {figure:>20}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
