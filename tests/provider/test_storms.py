"""Many sessions on one backend: outages are not multiplied, overload is rejected at once, and tenants share fairly."""

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random

import anyio
import pytest
import trio
from trio.testing import MockClock

from actors.core.data.persistent import Segments
from actors.core.values.stream import Usage
from actors.provider.admission import Admission, Pace, Ticket
from actors.provider.attempts import Answer, BrokenAnswer, Retries
from actors.provider.provider_actor import Abort, Counters, Inspect
from actors.transport import Response, Timeouts
from benchmarks.storms import (
    COMPLETE_ANSWER,
    UNGUARDED,
    Backend,
    PlainResponse,
    ask,
    provider_for,
    run_outage,
    run_overload,
    run_rate_limit,
    tenant_order,
)
from tests.commands.at_scale import extent

FIRST = b'data: {"choices":[{"index":0,"delta":{"content":"o"},"finish_reason":null}]}\n\n'


@pytest.mark.trio
@pytest.mark.long
async def test_many_sessions_do_not_multiply_the_requests_of_an_outage(
    autojump_clock: MockClock,
) -> None:
    alone, sessions = 25, extent(250, 1000)
    naive = await run_outage(alone, pace=UNGUARDED)
    kept = await run_outage(sessions)
    assert kept.requests * 10 <= naive.requests * sessions / alone
    assert kept.requests <= 100  # the requests of one full queue, and a probe for each cooldown
    assert len(kept.recovery) == sessions
    begun = kept.recovery[0]
    assert sum(at - begun < 1 for at in kept.recovery) <= 20
    assert kept.recovery[-1] - begun >= 5


@pytest.mark.trio
@pytest.mark.long
async def test_retries_during_an_outage_are_limited_to_a_share_of_its_requests(
    autojump_clock: MockClock,
) -> None:
    never_open, sessions = Pace(concurrency=1000, failures=1_000_000), extent(500, 3000)

    backend = Backend(down=1e9, latency=0.1)
    async with provider_for(backend, never_open, Retries(attempts=10)) as provider:
        async with anyio.create_task_group() as tasks:
            for number in range(sessions):
                tasks.start_soon(ask, provider, f"s{number}")
        counters = await provider.ask(Counters())
    retries = counters["retries"]
    assert counters["requests"] == sessions + retries
    # the initial burst, the share, and one retry per second
    assert 1000 <= retries <= 1000 + 0.1 * sessions + 60


@pytest.mark.trio
async def test_a_waiting_retry_occupies_no_place_in_the_queue(autojump_clock: MockClock) -> None:
    backend = Backend(down=0.6, latency=0.5)
    pace = Pace(concurrency=1, waiting=1)
    async with (
        provider_for(backend, pace, Retries(first_wait=60)) as provider,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(ask, provider, "waits")
        await anyio.sleep(1)
        assert backend.here == 0
        tasks.start_soon(ask, provider, "in its place")
        await anyio.sleep(0.01)
        tasks.start_soon(ask, provider, "in the queue")
    assert len(backend.answered) == 3


def test_sessions_that_fail_together_retry_at_different_times() -> None:
    random = Random(3)
    waits = [Retries().wait_seconds(1, asked, random) or 0.0 for asked in (None, 7.0) for _ in range(500)]
    for some in (waits[:500], waits[500:]):
        bins = Counter(int(wait / 0.05) for wait in some)
        assert max(bins.values()) <= 150
        assert max(some) - min(some) >= 0.2


@pytest.mark.trio
async def test_a_half_open_circuit_breaker_lets_one_request_through(
    autojump_clock: MockClock,
) -> None:
    backend = Backend(down=25, latency=0.5)
    async with provider_for(backend, Pace(8, failures=3, cooldown=10), Retries(attempts=1)) as provider:
        for number in range(3):
            await ask(provider, f"s{number}")
        await anyio.sleep(10)
        seen, kinds = len(backend.asked), list[str]()

        async def one(number: int) -> None:
            generated = await ask(provider, f"t{number}", 1)
            assert isinstance(generated, BrokenAnswer)
            kinds.append(generated.failure.kind)

        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(one, number)
        assert isinstance(await ask(provider, "u"), BrokenAnswer)
        probes = len(backend.asked) - seen
        await anyio.sleep(20)
        assert isinstance(await ask(provider, "v"), Answer)
        assert isinstance(await ask(provider, "w"), Answer)
    assert Counter(kinds) == {"circuit_open": 19, "transient": 1}
    assert kinds[-1] == "transient"  # the others did not wait for the probe
    assert probes == 1


@dataclass
class SlowAnswer(PlainResponse):
    """An answer that sends its first piece at once, and ends a minute later."""

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
            yield SlowAnswer(200, {}, COMPLETE_ANSWER, self.begins) if is_probe else response


@pytest.mark.trio
@pytest.mark.parametrize(
    ("begins", "kinds"), [(FIRST, {"Answer": 20}), (b": wait\n\n", {"circuit_open": 19, "Answer": 1})]
)
async def test_a_probe_whose_answer_has_begun_delays_no_other_request(
    autojump_clock: MockClock, begins: bytes, kinds: dict[str, int]
) -> None:
    backend, came = SlowProbe(down=5, latency=0.1, begins=begins), Counter[str]()
    async with provider_for(backend, Pace(8, failures=1, cooldown=10), Retries(attempts=1)) as provider:
        await ask(provider, "s")
        await anyio.sleep(10)
        at = anyio.current_time()

        async def one(name: str) -> None:
            generated = await ask(provider, name)
            came[generated.failure.kind if isinstance(generated, BrokenAnswer) else "Answer"] += 1

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one, "probe")
            await anyio.sleep(1)
            async with anyio.create_task_group() as others:
                for number in range(19):
                    others.start_soon(one, f"t{number}")
            took = anyio.current_time() - at
    assert came == kinds
    assert took < 10


@pytest.mark.trio
async def test_an_aborted_probe_makes_room_for_the_next_probe(autojump_clock: MockClock) -> None:
    backend = Backend(down=5, latency=1)
    async with provider_for(backend, Pace(8, failures=1, cooldown=10), Retries(attempts=1)) as provider:
        await ask(provider, "s")
        await anyio.sleep(10)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, provider, "probe")
            await anyio.sleep(0.01)
            await provider.send(Abort("probe/0"))
        assert isinstance(await ask(provider, "next"), Answer)


@pytest.mark.trio
async def test_requests_beyond_the_queue_limit_are_rejected_at_once(
    autojump_clock: MockClock,
) -> None:
    seconds = extent(15, 60)
    offered = await run_overload(80, seconds=seconds, pace=Pace(concurrency=8, waiting=40))
    assert offered.came.total() == 80 * seconds
    assert set(offered.came) == {"answered", "overloaded"}
    assert offered.came["answered"] >= 8 * seconds
    assert max(offered.refused) == 0
    assert max(offered.served) <= 40 / 8 + 2
    assert offered.most == 8


@pytest.mark.trio
async def test_an_overload_error_names_the_limit_and_the_fix(
    autojump_clock: MockClock,
) -> None:
    pace = Pace(concurrency=1, waiting=1)
    async with provider_for(Backend(), pace) as provider, anyio.create_task_group() as tasks:
        for number in range(2):
            tasks.start_soon(ask, provider, f"s{number}")
        await anyio.sleep(0.01)
        refused = await ask(provider, "s3")
    assert isinstance(refused, BrokenAnswer)
    assert (refused.failure.kind, refused.failure.action) == ("overloaded", "next_backend")
    assert refused.failure.message.endswith(
        "The queue of backend 'a' is full: 1 requests wait, and limits.waiting is 1; retry later, "
        "raise limits.waiting or limits.concurrency, or add a backend to a pool"
    )


@pytest.mark.trio
async def test_tenants_share_a_backend_by_weight_regardless_of_their_number_of_sessions(
    autojump_clock: MockClock,
) -> None:
    pace = Pace(concurrency=4, weights={"gold": 3.0})
    served = Counter((await tenant_order({"gold": 20, "plain": 200}, requests=400, pace=pace))[100:])
    assert 0.7 <= served["gold"] / 300 <= 0.8


@pytest.mark.trio
async def test_a_tenant_with_one_session_gets_the_same_share_as_a_tenant_with_hundreds(
    autojump_clock: MockClock,
) -> None:
    served = await tenant_order({"many": 300, "one": 1}, requests=400, pace=Pace(concurrency=1))
    assert 150 <= Counter(served)["one"] <= 200


@pytest.mark.trio
async def test_concurrency_settles_at_the_capacity_of_the_backend(autojump_clock: MockClock) -> None:
    backend = await run_rate_limit(8, sessions=40, asks=25, pace=Pace(concurrency=64))
    assert backend.most <= 64
    assert backend.refused <= len(backend.asked) * 0.15
    late = backend.asked[-200:]
    assert 200 / (late[-1] - late[0]) >= 0.6 * 8 / 0.5  # and most of the capacity is used


@pytest.mark.trio
@pytest.mark.parametrize(("backend", "lowered"), [(Backend(down=1e9), False), (Backend(capacity=1), True)])
async def test_a_rate_limit_lowers_concurrency_and_an_outage_does_not(
    autojump_clock: MockClock, backend: Backend, lowered: bool
) -> None:
    async with provider_for(backend, Pace(16, failures=1000), Retries(attempts=1)) as provider:
        async with anyio.create_task_group() as tasks:
            for number in range(16):
                tasks.start_soon(ask, provider, f"s{number}")
            await anyio.sleep(0.1)
        limit = (await provider.ask(Inspect())).limit
    assert (limit < 16) is lowered


@pytest.mark.trio
@pytest.mark.parametrize(("requests", "tokens"), [(30, None), (None, 1000)])
async def test_requests_and_tokens_in_any_minute_stay_within_the_limits_of_a_backend(
    autojump_clock: MockClock, requests: int | None, tokens: int | None
) -> None:
    backend = Backend(latency=0.1)
    pace = Pace(requests=requests, tokens=tokens)
    async with provider_for(backend, pace) as provider, anyio.create_task_group() as tasks:
        for number in range(100):
            tasks.start_soon(ask, provider, f"s{number}", 0, "x" * 133)
    assert len(backend.answered) == 100
    for start in backend.asked:
        assert sum(start <= at < start + 60 for at in backend.asked) <= 30
    assert backend.asked[-1] - backend.asked[0] <= 3 * 62


@pytest.mark.trio
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
async def test_a_used_up_quota_delays_the_next_request_until_it_refills(
    autojump_clock: MockClock, headers: dict[str, str], seconds: float
) -> None:
    backend = Backend(latency=0, headers=headers)
    async with provider_for(backend, Pace()) as provider:
        await ask(provider, "s")
        await ask(provider, "t")
    assert abs(backend.asked[1] - backend.asked[0] - seconds) < 0.01


@pytest.mark.trio
async def test_a_cancelled_waiting_request_frees_its_place(
    autojump_clock: MockClock,
) -> None:
    backend = Backend(latency=1)
    pace = Pace(concurrency=1, waiting=5)
    async with provider_for(backend, pace) as provider, anyio.create_task_group() as tasks:
        for number in range(6):
            tasks.start_soon(ask, provider, f"s{number}")
            await anyio.sleep(0.01)
        for number in range(1, 6):
            await provider.send(Abort(f"s{number}/0"))
        await anyio.sleep(0.01)
        after = [await ask(provider, f"t{number}") for number in range(3)]
    assert len(backend.asked) == 4
    assert all(isinstance(answer, Answer) for answer in after)


@pytest.mark.trio
async def test_cancelling_a_waiting_request_lets_later_requests_proceed(
    autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    async def enter_briefly() -> None:
        with trio.move_on_after(0.5):
            await admission.wait_to_start(
                Ticket("t", "large", 2000)
            )  # more than the rest of the minute's budget

    admission = Admission("a", Pace(tokens=1000), trio.current_time, lambda at, look: None)
    first = Ticket("t", "first", 3600)
    await admission.wait_to_start(first)
    admission.record_end(first, None, Usage(input_tokens=900))
    nursery.start_soon(enter_briefly)
    await trio.sleep(0.1)
    with trio.fail_after(1):
        await admission.wait_to_start(Ticket("t", "small", 200))
