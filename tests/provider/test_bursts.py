"""Bursts of failures with one cause, and backends with little capacity: every request is retried and answered."""

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any

import anyio
import pytest
from trio.testing import MockClock

from actors.config import BackendLimits
from actors.core.data.persistent import Segments
from actors.provider.admission import Pace
from actors.provider.attempts import Answer, BrokenAnswer, Generated, Retries
from actors.runtime.handle import Session
from actors.testing import Disconnect, InjectedFault, OpenAIServer, Say, Status, Turn
from actors.transport import HttpTransport, Response, Timeouts
from benchmarks.storms import COMPLETE_ANSWER, DOWN, Backend, PlainResponse, ask, provider_for
from tests.commands.at_scale import extent
from tests.runtime.hosting_cases import case
from tests.runtime_support import runtime_with

EVERYWHERE = pytest.mark.anyio
BLIP = case("one-blip-many-in-flight")
UNNAMED = case("rate-limit-without-a-wait")
IN_FLIGHT = [int(number) for step in BLIP["steps"] for number in re.findall(r"(\d+) sessions", step)]
"""40 and 12."""
UNNAMED_STATUS, UNNAMED_BODY = UNNAMED["answers"]["for two seconds"]


@pytest.fixture
def same_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let trio run tasks that are ready in the same order each time."""
    monkeypatch.setattr("trio._core._run._r", Random(1))


class GatheringTransport(HttpTransport):
    """The real transport, which holds the first requests until `count` of them have arrived."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._left = count
        self._all = anyio.Event()

    @asynccontextmanager
    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AsyncIterator[Response]:
        self._left -= 1
        if not self._left:
            self._all.set()
        await self._all.wait()
        async with super().send(url, headers, segments, timeouts) as response:
            yield response


@dataclass
class FirstTryFault:
    """A fault for the first try of each request whose text starts with `hits`."""

    fault: InjectedFault
    hits: str = "burst"
    seen: set[str] = field(default_factory=set)

    def __call__(self, number: int, request: Any) -> InjectedFault | None:  # Any: a body under test
        words = request["messages"][-1]["content"]
        words = words if isinstance(words, str) else words[0]["text"]
        if words in self.seen or not words.startswith(self.hits):
            return None
        self.seen.add(words)
        return self.fault


def answer(request: Any) -> Turn:  # Any: as above
    """Return the same answer to every request."""
    return Turn(Say("Here."))


async def ask_and_count(session: Session, words: str, ends: Counter[str]) -> None:
    """Ask once and count the status of the result."""
    ends[(await session.ask(words, check=False)).status] += 1


RESET = Disconnect(after_bytes=0, reset=True)


@EVERYWHERE
@pytest.mark.alternating
@pytest.mark.usefixtures("short_waits")
@pytest.mark.parametrize("count", IN_FLIGHT)
@pytest.mark.parametrize("fault", [RESET, Status(503)], ids=["reset", "503"])
async def test_a_failure_of_all_running_requests_costs_each_request_one_retry(
    count: int, fault: InjectedFault
) -> None:
    server = OpenAIServer(answer, faults=FirstTryFault(fault))
    ends = Counter[str]()
    async with runtime_with(
        a=server, transport=GatheringTransport(count), backend=BackendLimits()
    ) as runtime:
        sessions = [await runtime.open("a") for _ in range(count)]
        async with anyio.create_task_group() as tasks:
            for number, session in enumerate(sessions):
                tasks.start_soon(ask_and_count, session, f"burst {number}", ends)
        await ask_and_count(await runtime.open("a"), "later", ends)
    assert ends == {"complete": count + 1}
    assert server.received == 2 * count + 1


@EVERYWHERE
@pytest.mark.usefixtures("short_waits")
async def test_a_burst_of_failures_does_not_affect_other_sessions() -> None:
    count = extent(IN_FLIGHT[1], IN_FLIGHT[0])
    server = OpenAIServer(answer, faults=FirstTryFault(RESET))
    ends, steady = Counter[str](), Counter[str]()
    async with runtime_with(
        a=server, transport=GatheringTransport(count), backend=BackendLimits()
    ) as runtime:

        async def ask_repeatedly(session: Session) -> None:
            for number in range(8):
                await ask_and_count(session, f"steady {number}", steady)

        async with anyio.create_task_group() as tasks:
            for number in range(count):
                tasks.start_soon(ask_and_count, await runtime.open("a"), f"burst {number}", ends)
            for _ in range(5):
                tasks.start_soon(ask_repeatedly, await runtime.open("a"))
    assert (ends, steady) == ({"complete": count}, {"complete": 40})


@pytest.mark.trio
@pytest.mark.usefixtures("same_order")
async def test_every_request_of_a_burst_can_use_all_its_attempts(autojump_clock: MockClock) -> None:
    backend, ends = Backend(down=1e9, latency=0.0), Counter[str]()
    async with provider_for(backend, Pace(64), Retries(attempts=4)) as provider:

        async def one(number: int) -> None:
            ends[kind(await ask(provider, f"s{number}"))] += 1

        async with anyio.create_task_group() as tasks:
            for number in range(12):
                tasks.start_soon(one, number)
    assert (len(backend.asked), ends) == (48, {"transient": 12})


@pytest.mark.trio
@pytest.mark.usefixtures("same_order")
async def test_a_backend_that_stays_down_is_probed_and_then_avoided(
    autojump_clock: MockClock,
) -> None:
    backend, ends = Backend(down=1e9, latency=0.5), Counter[str]()
    async with provider_for(backend, Pace(64), Retries(attempts=4)) as provider:

        async def one(number: int) -> None:
            ends[kind(await ask(provider, f"s{number}"))] += 1

        async with anyio.create_task_group() as tasks:
            for number in range(200):
                tasks.start_soon(one, number)
            await anyio.sleep(20)
            before = len(backend.asked)
            await ask(provider, "late")
            assert len(backend.asked) == before
    in_doubt = [at for at in backend.asked if at > backend.asked[0] + 0.6]
    assert (
        len(backend.asked) - len(in_doubt) <= 64 + 10
    )  # from the tenth failure on, requests are sent one by one
    assert all(later - earlier >= 0.49 for earlier, later in pairwise(in_doubt))
    assert 9 <= len(in_doubt) <= 20
    assert ends["circuit_open"] >= 100


@pytest.mark.trio
@pytest.mark.usefixtures("same_order")
async def test_a_second_probe_is_sent_one_second_after_a_probe_that_hangs(
    autojump_clock: MockClock,
) -> None:
    backend = Backend(down=1e9, latency=60)
    async with (
        provider_for(backend, Pace(2, failures=2), Retries(attempts=2)) as provider,
        anyio.create_task_group() as tasks,
    ):
        for number in range(2):
            tasks.start_soon(ask, provider, f"s{number}")
        await anyio.sleep(62)
    first, second, third, fourth = [at - backend.asked[0] for at in backend.asked]
    assert (first, second) == (0, 0)
    assert 60 <= third <= 61
    assert 0.99 <= fourth - third <= 1.01


def kind(generated: Generated) -> str:
    """Return the failure kind of a round, or the type of its outcome."""
    return generated.failure.kind if isinstance(generated, BrokenAnswer) else type(generated).__name__


@dataclass
class FirstTryFails(Backend):
    """A backend that answers the first try of each request with 529."""

    seen: set[bytes] = field(default_factory=set)

    @asynccontextmanager
    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AsyncIterator[Response]:
        request = b"".join(segments)
        if request in self.seen:
            yield PlainResponse(200, {}, COMPLETE_ANSWER)
        else:
            self.seen.add(request)
            yield PlainResponse(529, {}, DOWN)


@pytest.mark.trio
@pytest.mark.usefixtures("same_order")
async def test_successful_retries_do_not_use_up_the_retries_of_other_requests(
    autojump_clock: MockClock,
) -> None:
    backend, ends = FirstTryFails(), Counter[str]()
    async with provider_for(backend, Pace(16), Retries(attempts=2)) as provider:

        async def session(name: str) -> None:
            for number in range(40):
                ends[kind(await ask(provider, name, number, f"{name}{number}"))] += 1

        async with anyio.create_task_group() as tasks:
            for name in "abcde":
                tasks.start_soon(session, name)
    assert ends == {"Answer": 200}


# ---- rate limits that name no delay


@dataclass
class RateLimitedBackend(Backend):
    """A backend that rejects all requests for `seconds` with a rate limit that names no delay."""

    seconds: float = 2.0

    @asynccontextmanager
    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AsyncIterator[Response]:
        self.asked.append(anyio.current_time())
        if anyio.current_time() - self.asked[0] < self.seconds:
            yield PlainResponse(UNNAMED_STATUS, {}, json.dumps(UNNAMED_BODY).encode())
        else:
            yield PlainResponse(200, {}, COMPLETE_ANSWER)


@pytest.mark.trio
@pytest.mark.usefixtures("same_order")
@pytest.mark.parametrize("repeat", range(20))
async def test_four_attempts_outlast_a_rate_limit_without_a_retry_delay(
    autojump_clock: MockClock, repeat: int
) -> None:
    backend = RateLimitedBackend()
    async with provider_for(backend, Pace(), Retries(attempts=4), Random(repeat)) as provider:
        assert isinstance(await ask(provider, "s"), Answer)
    assert len(backend.asked) <= 4


@pytest.mark.trio
@pytest.mark.usefixtures("same_order")
async def test_all_requests_are_answered_after_a_rate_limit_that_rejected_every_request(
    autojump_clock: MockClock,
) -> None:
    ends = Counter[str]()
    async with provider_for(RateLimitedBackend(), Pace(64), Retries(attempts=4)) as provider:

        async def one(number: int) -> None:
            ends[kind(await ask(provider, f"s{number}"))] += 1

        async with anyio.create_task_group() as tasks:
            for number in range(100):
                tasks.start_soon(one, number)
    assert ends == {"Answer": 100}


@pytest.mark.trio
@pytest.mark.usefixtures("same_order")
async def test_under_a_permanent_rate_limit_each_request_fails_after_its_attempts(
    autojump_clock: MockClock,
) -> None:
    backend, ends = RateLimitedBackend(seconds=1e9), set[str]()
    async with provider_for(backend, Pace(), Retries(attempts=4)) as provider:

        async def one(number: int) -> None:
            ends.add(kind(await ask(provider, f"s{number}")))

        async with anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(one, number)
    assert (ends, len(backend.asked)) == ({"rate_limit"}, 40)


@pytest.mark.trio
@pytest.mark.usefixtures("same_order")
@pytest.mark.sampled(3)
@pytest.mark.parametrize(("asks", "capacity"), [(80, 4), (400, 2), (300, 40)])
@pytest.mark.parametrize("repeat", range(5))
async def test_a_backend_with_little_capacity_serves_all_requests(
    autojump_clock: MockClock, asks: int, capacity: int, repeat: int
) -> None:
    backend, ends = Backend(capacity=capacity, latency=0.5), Counter[str]()
    async with provider_for(backend, Pace(64), Retries(attempts=4), Random(repeat)) as provider:

        async def one(number: int) -> None:
            ends[kind(await ask(provider, f"s{number}"))] += 1

        async with anyio.create_task_group() as tasks:
            for number in range(asks):
                tasks.start_soon(one, number)
    assert ends == {"Answer": asks}
    assert backend.answered[-1] - backend.asked[0] <= 2 * asks / capacity * 0.5 + 5


@dataclass
class UnfairBackend(Backend):
    """A backend that rejects the first ten tries of tenant `a` with a rate limit, and serves all others."""

    @asynccontextmanager
    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AsyncIterator[Response]:
        await anyio.sleep(0.05)
        self.by.append(b"".join(segments).decode())
        if self.by[-1] == "a" and self.by.count("a") <= 10:
            yield PlainResponse(UNNAMED_STATUS, {}, json.dumps(UNNAMED_BODY).encode())
        else:
            yield PlainResponse(200, {}, COMPLETE_ANSWER)


@pytest.mark.trio
@pytest.mark.usefixtures("same_order")
async def test_a_rate_limit_while_other_requests_are_served_uses_no_attempt(
    autojump_clock: MockClock,
) -> None:
    backend, ended = UnfairBackend(), list[Generated]()
    async with provider_for(backend, Pace(), Retries(attempts=4)) as provider:

        async def last() -> None:
            ended.append(await ask(provider, "a", 0, "a"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(last)
            number = 0
            while not ended:
                await ask(provider, "b", number, "b")
                number += 1
    assert isinstance(ended[0], Answer)
    assert backend.by.count("a") == 11


class LimitedTransport(HttpTransport):
    """The real transport to a host that serves `capacity` requests at once, and rate-limits the others."""

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self._free = capacity

    @asynccontextmanager
    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AsyncIterator[Response]:
        if not self._free:
            yield PlainResponse(UNNAMED_STATUS, {}, json.dumps(UNNAMED_BODY).encode())
            return
        self._free -= 1
        try:
            async with super().send(url, headers, segments, timeouts) as response:
                yield response
        finally:
            self._free += 1


@EVERYWHERE
@pytest.mark.usefixtures("short_waits")
async def test_eighty_sessions_share_a_host_that_serves_four_at_a_time() -> None:
    ends = Counter[str]()
    async with (
        runtime_with(
            a=OpenAIServer(answer), transport=LimitedTransport(4), backend=BackendLimits()
        ) as runtime,
        anyio.create_task_group() as tasks,
    ):
        for number in range(80):
            tasks.start_soon(ask_and_count, await runtime.open("a"), f"ask {number}", ends)
    assert ends == {"complete": 80}
