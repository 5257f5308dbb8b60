"""Many sessions and one backend: an outage is not multiplied, overload is refused at once, tenants share."""

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import TypeVar

import anyio
import pytest
import trio
import trio.testing

from actors.core.data.segments import Segments
from actors.core.values.stream import Usage
from actors.provider.admission import Admission, Pace, Ticket
from actors.provider.attempts import Retries
from actors.provider.provider_actor import Abort, Counters, Inspect
from actors.provider.rounds import Answer, Broken, Generated
from actors.transport import Response, Timeouts
from benchmarks.storms import (
    UNGUARDED,
    WHOLE,
    Backend,
    Plain,
    ask,
    limited,
    overload,
    provided,
    shared,
    storm,
)
from tests.at_scale import extent

T = TypeVar("T")

FIRST = b'data: {"choices":[{"index":0,"delta":{"content":"o"},"finish_reason":null}]}\n\n'


def virtual(function: Callable[[], Awaitable[T]]) -> T:
    """Run on a clock that jumps over every wait."""
    return trio.run(function, clock=trio.testing.MockClock(autojump_threshold=0))


@pytest.mark.long
def test_a_thousand_sessions_do_not_multiply_an_outage_and_come_back_one_after_the_other() -> None:
    alone, sessions = 25, extent(250, 1000)
    naive = virtual(lambda: storm(alone, pace=UNGUARDED))
    kept = virtual(lambda: storm(sessions))
    assert kept.requests * 10 <= naive.requests * sessions / alone
    assert kept.requests <= 100  # one wave of places, and a probe for each cooldown
    assert len(kept.recovery) == sessions
    begun = kept.recovery[0]
    assert sum(at - begun < 1 for at in kept.recovery) <= 20
    assert kept.recovery[-1] - begun >= 5


@pytest.mark.long
def test_retries_of_an_outage_are_a_share_of_its_requests() -> None:
    never_open, sessions = Pace(concurrency=1000, failures=1_000_000), extent(500, 3000)

    async def main() -> tuple[int, int]:
        backend = Backend(down=1e9, latency=0.1)
        async with provided(backend, never_open, Retries(attempts=10)) as provider:
            async with anyio.create_task_group() as tasks:
                for number in range(sessions):
                    tasks.start_soon(ask, provider, f"s{number}")
            counters = await provider.ask(Counters())
        return counters["retries"], counters["requests"]

    retries, requests = virtual(main)
    assert requests == sessions + retries
    assert 1000 <= retries <= 1000 + 0.1 * sessions + 60  # its burst, its share, and one a second


def test_a_retry_that_waits_has_no_slot_of_the_queue() -> None:
    async def main() -> Backend:
        backend = Backend(down=0.6, latency=0.5)
        pace = Pace(concurrency=1, waiting=1)
        async with provided(backend, pace, Retries(base=60)) as provider, anyio.create_task_group() as tasks:
            tasks.start_soon(ask, provider, "waits")
            await anyio.sleep(1)
            assert backend.here == 0
            tasks.start_soon(ask, provider, "in its place")
            await anyio.sleep(0.01)
            tasks.start_soon(ask, provider, "in the queue")
        return backend

    assert len(virtual(main).answered) == 3


def test_sessions_that_fail_together_do_not_come_back_together() -> None:
    random = Random(3)
    waits = [Retries().wait(1, asked, random) or 0.0 for asked in (None, 7.0) for _ in range(500)]
    for some in (waits[:500], waits[500:]):
        bins = Counter(int(wait / 0.05) for wait in some)
        assert max(bins.values()) <= 150
        assert max(some) - min(some) >= 0.2


def test_a_breaker_that_is_half_open_lets_one_request_through_and_the_others_fail_at_once() -> None:
    async def main() -> tuple[list[str], int]:
        backend = Backend(down=25, latency=0.5)
        async with provided(backend, Pace(8, failures=3, cooldown=10), Retries(attempts=1)) as provider:
            for number in range(3):
                await ask(provider, f"s{number}")
            await anyio.sleep(10)
            seen, kinds = len(backend.asked), list[str]()

            async def one(number: int) -> None:
                generated = await ask(provider, f"t{number}", 1)
                assert isinstance(generated, Broken)
                kinds.append(generated.failure.kind)

            async with anyio.create_task_group() as tasks:
                for number in range(20):
                    tasks.start_soon(one, number)
            assert isinstance(await ask(provider, "u"), Broken)
            probes = len(backend.asked) - seen
            await anyio.sleep(20)
            assert isinstance(await ask(provider, "v"), Answer)
            assert isinstance(await ask(provider, "w"), Answer)
            return kinds, probes

    kinds, probes = virtual(main)
    assert Counter(kinds) == {"circuit_open": 19, "transient": 1}
    assert kinds[-1] == "transient"  # the others did not wait for the probe
    assert probes == 1


@dataclass
class Slow(Plain):
    """An answer that begins with this piece at once, and ends in a minute."""

    begins: bytes = FIRST

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        yield self.begins
        await anyio.sleep(60)
        yield self.body


@dataclass
class SlowProbe(Backend):
    """A backend whose second answer is slow."""

    begins: bytes = FIRST

    @asynccontextmanager
    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AsyncIterator[Response]:
        is_probe = len(self.asked) == 1
        async with super().send(url, headers, segments, timeouts) as response:
            yield Slow(200, {}, WHOLE, self.begins) if is_probe else response


@pytest.mark.parametrize(
    ("begins", "kinds"), [(FIRST, {"Answer": 20}), (b": wait\n\n", {"circuit_open": 19, "Answer": 1})]
)
def test_a_probe_whose_answer_has_begun_holds_up_nobody(begins: bytes, kinds: dict[str, int]) -> None:
    async def main() -> tuple[Counter[str], float]:
        backend, came = SlowProbe(down=5, latency=0.1, begins=begins), Counter[str]()
        async with provided(backend, Pace(8, failures=1, cooldown=10), Retries(attempts=1)) as provider:
            await ask(provider, "s")
            await anyio.sleep(10)
            at = anyio.current_time()

            async def one(name: str) -> None:
                generated = await ask(provider, name)
                came[generated.failure.kind if isinstance(generated, Broken) else "Answer"] += 1

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(one, "probe")
                await anyio.sleep(1)
                async with anyio.create_task_group() as others:
                    for number in range(19):
                        others.start_soon(one, f"t{number}")
                took = anyio.current_time() - at
        return came, took

    came, took = virtual(main)
    assert came == kinds
    assert took < 10


def test_a_probe_that_is_aborted_leaves_the_next_one_its_place() -> None:
    async def main() -> object:
        backend = Backend(down=5, latency=1)
        async with provided(backend, Pace(8, failures=1, cooldown=10), Retries(attempts=1)) as provider:
            await ask(provider, "s")
            await anyio.sleep(10)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask, provider, "probe")
                await anyio.sleep(0.01)
                await provider.send(Abort("probe/0"))
            return await ask(provider, "next")

    assert isinstance(virtual(main), Answer)


def test_what_is_beyond_the_queue_is_refused_at_once_and_what_was_accepted_is_served() -> None:
    seconds = extent(15, 60)
    offered = virtual(lambda: overload(80, seconds=seconds, pace=Pace(concurrency=8, waiting=40)))
    assert offered.came.total() == 80 * seconds
    assert set(offered.came) == {"answered", "overloaded"}
    assert offered.came["answered"] >= 8 * seconds
    assert max(offered.refused) == 0
    assert max(offered.served) <= 40 / 8 + 2
    assert offered.most == 8


def test_a_refusal_for_overload_says_what_waits_the_limit_and_the_way_out() -> None:
    async def main() -> None:
        pace = Pace(concurrency=1, waiting=1)
        async with provided(Backend(), pace) as provider, anyio.create_task_group() as tasks:
            for number in range(2):
                tasks.start_soon(ask, provider, f"s{number}")
            await anyio.sleep(0.01)
            answers.append(await ask(provider, "s3"))

    answers = list[Generated]()
    virtual(main)
    (refused,) = answers
    assert isinstance(refused, Broken)
    assert (refused.failure.kind, refused.failure.action) == ("overloaded", "next_backend")
    assert refused.failure.message.endswith(
        "1 requests wait for backend 'a', and its limits.waiting is 1; ask later or less at a time, "
        "raise limits.waiting or limits.concurrency, or add a backend to a pool"
    )


def test_tenants_share_by_weight_however_many_sessions_they_have() -> None:
    pace = Pace(concurrency=4, weights={"gold": 3.0})
    served = Counter(virtual(lambda: shared({"gold": 20, "plain": 200}, requests=400, pace=pace))[100:])
    assert 0.7 <= served["gold"] / 300 <= 0.8


def test_one_session_beside_a_tenant_of_hundreds_is_served_every_other_time() -> None:
    served = virtual(lambda: shared({"many": 300, "one": 1}, requests=400, pace=Pace(concurrency=1)))
    assert 150 <= Counter(served)["one"] <= 200


def test_requests_at_once_settle_at_what_the_backend_takes() -> None:
    backend = virtual(lambda: limited(8, sessions=40, asks=25, pace=Pace(concurrency=64)))
    assert backend.most <= 64
    assert backend.refused <= len(backend.asked) * 0.15
    late = backend.asked[-200:]
    assert 200 / (late[-1] - late[0]) >= 0.6 * 8 / 0.5  # and most of what it could serve is served


@pytest.mark.parametrize(("backend", "lowered"), [(Backend(down=1e9), False), (Backend(capacity=1), True)])
def test_a_rate_limit_lowers_concurrency_and_an_outage_does_not(backend: Backend, lowered: bool) -> None:
    async def main() -> int:
        async with provided(backend, Pace(16, failures=1000), Retries(attempts=1)) as provider:
            async with anyio.create_task_group() as tasks:
                for number in range(16):
                    tasks.start_soon(ask, provider, f"s{number}")
                await anyio.sleep(0.1)
            limits.append((await provider.ask(Inspect())).limit)
        return limits[0]

    limits = list[int]()
    assert (virtual(main) < 16) is lowered


@pytest.mark.parametrize(("requests", "tokens"), [(30, None), (None, 1000)])
def test_no_minute_sends_more_than_its_budget(requests: int | None, tokens: int | None) -> None:
    async def main() -> Backend:
        backend = Backend(latency=0.1)
        pace = Pace(requests=requests, tokens=tokens)
        async with provided(backend, pace) as provider, anyio.create_task_group() as tasks:
            for number in range(100):
                tasks.start_soon(ask, provider, f"s{number}", 0, "x" * 133)
        return backend

    backend = virtual(main)
    assert len(backend.answered) == 100
    for start in backend.asked:
        assert sum(start <= at < start + 60 for at in backend.asked) <= 30
    assert backend.asked[-1] - backend.asked[0] <= 3 * 62


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        (
            {
                "x-ratelimit-limit-requests": "60",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "1m0s",
            },
            1.0,
        ),
        (
            {
                "x-ratelimit-limit-tokens": "10",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "20s",
            },
            2.0,
        ),
        ({"x-ratelimit-remaining-requests": "5", "x-ratelimit-reset-requests": "1m0s"}, 0.0),
    ],
)
def test_who_is_told_that_nothing_is_left_waits_for_the_first_of_it(
    headers: dict[str, str], seconds: float
) -> None:
    async def main() -> float:
        backend = Backend(latency=0, headers=headers)
        async with provided(backend, Pace()) as provider:
            await ask(provider, "s")
            await ask(provider, "t")
        return backend.asked[1] - backend.asked[0]

    assert abs(virtual(main) - seconds) < 0.01


def test_a_request_that_is_stopped_while_it_waits_leaves_its_slot_and_no_place_is_lost() -> None:
    async def main() -> tuple[int, object]:
        backend = Backend(latency=1)
        pace = Pace(concurrency=1, waiting=5)
        async with provided(backend, pace) as provider, anyio.create_task_group() as tasks:
            for number in range(6):
                tasks.start_soon(ask, provider, f"s{number}")
                await anyio.sleep(0.01)
            for number in range(1, 6):
                await provider.send(Abort(f"s{number}/0"))
            await anyio.sleep(0.01)
            after = [await ask(provider, f"t{number}") for number in range(3)]
        return len(backend.asked), after

    asked, after = virtual(main)
    assert asked == 4
    assert isinstance(after, list)
    assert all(isinstance(answer, Answer) for answer in after)


def test_when_the_request_that_others_waited_behind_is_stopped_they_do_not_wait_for_it() -> None:
    async def main() -> bool:
        admission = Admission("a", Pace(tokens=1000), trio.current_time, lambda at, look: None)
        first = Ticket("t", "first", 3600)
        await admission.enter(first)
        admission.leave(first, None, Usage(input_tokens=900))
        async with trio.open_nursery() as nursery:
            with trio.move_on_after(1):  # too large for what is left of the minute
                nursery.start_soon(stopped_soon, admission)
                await trio.sleep(0.1)
                await admission.enter(Ticket("t", "small", 200))
                return True
        return False

    async def stopped_soon(admission: Admission) -> None:
        with trio.move_on_after(0.5):
            await admission.enter(Ticket("t", "large", 2000))

    assert virtual(main)
