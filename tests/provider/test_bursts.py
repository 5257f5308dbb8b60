"""One cause fails many requests at once, or a host serves few at a time: each request is tried again, and answered."""

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
from actors.core.data.segments import Segments
from actors.provider.admission import Pace
from actors.provider.attempts import Retries
from actors.provider.rounds import Answer, BrokenAnswer, Generated
from actors.runtime.handle import Session
from actors.testing import Disconnect, InjectedFault, OpenAIServer, Say, Status, Turn
from actors.transport import HttpTransport, Response, Timeouts
from benchmarks.storms import DOWN, WHOLE, Backend, Plain, ask, provider_for
from tests.commands.at_scale import extent
from tests.runtime.hosting_cases import case
from tests.runtime_support import hosting

EVERYWHERE = pytest.mark.anyio
BLIP = case("one-blip-many-in-flight")
UNNAMED = case("rate-limit-without-a-wait")
IN_FLIGHT = [int(number) for step in BLIP["steps"] for number in re.findall(r"(\d+) sessions", step)]
"""40 and 12."""
UNNAMED_STATUS, UNNAMED_BODY = UNNAMED["answers"]["for two seconds"]


@pytest.fixture
def same_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let trio run the tasks that are ready in the same order each time."""
    monkeypatch.setattr("trio._core._run._r", Random(1))


class Together(HttpTransport):
    """The real transport, which keeps the first requests until so many have come."""

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
class Blip:
    """Faults of a server that answers the first try of each request which `hits` says with this one."""

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
    """Say the same to everybody."""
    return Turn(Say("Here."))


async def asked(session: Session, words: str, ends: Counter[str]) -> None:
    """Ask once and count how it ended."""
    ends[(await session.ask(words, check=False)).status] += 1


RESET = Disconnect(after_bytes=0, reset=True)


@EVERYWHERE
@pytest.mark.alternating
@pytest.mark.usefixtures("short_waits")
@pytest.mark.parametrize("count", IN_FLIGHT)
@pytest.mark.parametrize("fault", [RESET, Status(503)], ids=["reset", "503"])
async def test_one_cause_that_fails_all_that_is_in_flight_costs_each_request_one_try(
    count: int, fault: InjectedFault
) -> None:
    server = OpenAIServer(answer, faults=Blip(fault))
    ends = Counter[str]()
    async with hosting(a=server, transport=Together(count), backend=BackendLimits()) as runtime:
        sessions = [await runtime.open("a") for _ in range(count)]
        async with anyio.create_task_group() as tasks:
            for number, session in enumerate(sessions):
                tasks.start_soon(asked, session, f"burst {number}", ends)
        await asked(await runtime.open("a"), "later", ends)
    assert ends == {"complete": count + 1}
    assert server.received == 2 * count + 1


@EVERYWHERE
@pytest.mark.usefixtures("short_waits")
async def test_sessions_beside_a_burst_that_fails_notice_nothing() -> None:
    count = extent(IN_FLIGHT[1], IN_FLIGHT[0])
    server = OpenAIServer(answer, faults=Blip(RESET))
    ends, steady = Counter[str](), Counter[str]()
    async with hosting(a=server, transport=Together(count), backend=BackendLimits()) as runtime:

        async def goes_on(session: Session) -> None:
            for number in range(8):
                await asked(session, f"steady {number}", steady)

        async with anyio.create_task_group() as tasks:
            for number in range(count):
                tasks.start_soon(asked, await runtime.open("a"), f"burst {number}", ends)
            for _ in range(5):
                tasks.start_soon(goes_on, await runtime.open("a"))
    assert (ends, steady) == ({"complete": count}, {"complete": 40})


@pytest.mark.trio
@pytest.mark.usefixtures("same_order")
async def test_every_request_of_a_burst_has_all_its_attempts(autojump_clock: MockClock) -> None:
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
async def test_a_backend_that_stays_down_is_asked_by_one_after_the_other_and_then_left_alone(
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
    assert len(backend.asked) - len(in_doubt) <= 64 + 10  # doubt begins with the tenth failure
    assert all(later - earlier >= 0.49 for earlier, later in pairwise(in_doubt))
    assert 9 <= len(in_doubt) <= 20
    assert ends["circuit_open"] >= 100


@pytest.mark.trio
@pytest.mark.usefixtures("same_order")
async def test_while_one_request_hangs_in_doubt_another_goes_out_a_second_later(
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
    """Return how a round ended."""
    return generated.failure.kind if isinstance(generated, BrokenAnswer) else type(generated).__name__


@dataclass
class FirstTryFails(Backend):
    """A backend that answers 529 to the first try of each request."""

    seen: set[bytes] = field(default_factory=set)

    @asynccontextmanager
    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AsyncIterator[Response]:
        request = b"".join(segments)
        if request in self.seen:
            yield Plain(200, {}, WHOLE)
        else:
            self.seen.add(request)
            yield Plain(529, {}, DOWN)


@pytest.mark.trio
@pytest.mark.usefixtures("same_order")
async def test_retries_that_are_answered_leave_others_theirs(autojump_clock: MockClock) -> None:
    backend, ends = FirstTryFails(), Counter[str]()
    async with provider_for(backend, Pace(16), Retries(attempts=2)) as provider:

        async def session(name: str) -> None:
            for number in range(40):
                ends[kind(await ask(provider, name, number, f"{name}{number}"))] += 1

        async with anyio.create_task_group() as tasks:
            for name in "abcde":
                tasks.start_soon(session, name)
    assert ends == {"Answer": 200}


# ---- rate limits that name no wait


@dataclass
class Refusing(Backend):
    """A backend that refuses everything for the rate, without a wait, for so many seconds."""

    seconds: float = 2.0

    @asynccontextmanager
    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AsyncIterator[Response]:
        self.asked.append(anyio.current_time())
        if anyio.current_time() - self.asked[0] < self.seconds:
            yield Plain(UNNAMED_STATUS, {}, json.dumps(UNNAMED_BODY).encode())
        else:
            yield Plain(200, {}, WHOLE)


@pytest.mark.trio
@pytest.mark.usefixtures("same_order")
@pytest.mark.parametrize("repeat", range(20))
async def test_a_rate_limit_without_a_wait_is_outlasted_by_four_tries(
    autojump_clock: MockClock, repeat: int
) -> None:
    backend = Refusing()
    async with provider_for(backend, Pace(), Retries(attempts=4), Random(repeat)) as provider:
        assert isinstance(await ask(provider, "s"), Answer)
    assert len(backend.asked) <= 4


@pytest.mark.trio
@pytest.mark.usefixtures("same_order")
async def test_a_rate_limit_that_everybody_meets_leaves_everybody_their_tries(
    autojump_clock: MockClock,
) -> None:
    ends = Counter[str]()
    async with provider_for(Refusing(), Pace(64), Retries(attempts=4)) as provider:

        async def one(number: int) -> None:
            ends[kind(await ask(provider, f"s{number}"))] += 1

        async with anyio.create_task_group() as tasks:
            for number in range(100):
                tasks.start_soon(one, number)
    assert ends == {"Answer": 100}


@pytest.mark.trio
@pytest.mark.usefixtures("same_order")
async def test_a_rate_limit_that_does_not_end_costs_no_more_than_the_attempts(
    autojump_clock: MockClock,
) -> None:
    backend, ends = Refusing(seconds=1e9), set[str]()
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
async def test_a_host_that_serves_few_at_a_time_serves_everybody(
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
class Crowded(Backend):
    """A backend that refuses the first ten tries of tenant `a` for the rate, and serves all others."""

    @asynccontextmanager
    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AsyncIterator[Response]:
        await anyio.sleep(0.05)
        self.by.append(b"".join(segments).decode())
        if self.by[-1] == "a" and self.by.count("a") <= 10:
            yield Plain(UNNAMED_STATUS, {}, json.dumps(UNNAMED_BODY).encode())
        else:
            yield Plain(200, {}, WHOLE)


@pytest.mark.trio
@pytest.mark.usefixtures("same_order")
async def test_a_refusal_for_the_rate_while_others_are_served_is_no_attempt(
    autojump_clock: MockClock,
) -> None:
    backend, ended = Crowded(), list[Generated]()
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


class Narrow(HttpTransport):
    """The real transport to a host that takes so many requests at once and refuses the others for the rate."""

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self._free = capacity

    @asynccontextmanager
    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AsyncIterator[Response]:
        if not self._free:
            yield Plain(UNNAMED_STATUS, {}, json.dumps(UNNAMED_BODY).encode())
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
        hosting(a=OpenAIServer(answer), transport=Narrow(4), backend=BackendLimits()) as runtime,
        anyio.create_task_group() as tasks,
    ):
        for number in range(80):
            tasks.start_soon(asked, await runtime.open("a"), f"ask {number}", ends)
    assert ends == {"complete": 80}
