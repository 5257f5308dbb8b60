"""Pools: sessions share their knowledge of each backend, and every failed request is reported."""

from random import Random

import anyio
import anyio.lowlevel
import pytest

from actors import Price, Runtime
from actors.config import BackendLimits, Config, PoolSettings
from actors.core.policy.routing import Policy
from actors.errors import ConfigError
from actors.provider.resolver import StartPositions
from actors.runtime.handle import Session
from actors.testing import QUOTA, SERVER_ERROR, Say, Stall, Status, Turn
from tests.runtime_support import anthropic, openai, runtime_with

pytestmark = pytest.mark.anyio


def pool(*members: str, policy: str = "failover", **more: object) -> dict[str, PoolSettings]:
    return {"pool": PoolSettings.model_validate({"members": members, "policy": policy, **more})}


@pytest.mark.requirement("REQ-915-043")
async def test_all_sessions_avoid_a_backend_that_failed_for_one_session() -> None:
    one, two = openai(faults={0: QUOTA}), anthropic()
    async with runtime_with(a=one, b=two, pools=pool("a", "b", cooldown=600)) as runtime:
        for number in range(5):
            session = await runtime.open("pool", id=f"s{number}")
            assert (await session.ask("Hello.")).binding.backend == "b"
    assert (one.received, two.received) == (1, 5)


async def test_a_pool_with_the_policy_cheapest_requires_prices() -> None:
    one, two = openai(Turn(Say("dear"))), anthropic(Turn(Say("cheap")))
    async with runtime_with(a=one, b=two, pools=pool("a", "b", policy="cheapest")) as runtime:
        with pytest.raises(
            ConfigError, match="Pool 'pool' has the policy 'cheapest', but no member has a price"
        ):
            await runtime.open("pool")
        session = await runtime.open("a")
        with pytest.raises(ConfigError, match="no member has a price"):
            await session.switch("pool")
        settings = runtime.config.settings
        async with Runtime(Config(settings, {}), prices={"claude*": Price(3, 15)}) as priced:
            assert (await (await priced.open("pool")).ask("Hello.")).text == "cheap"


async def test_a_failed_backend_is_used_again_once_it_answers_another_session() -> None:
    one, two = openai(faults={0: QUOTA}), anthropic()
    async with runtime_with(a=one, b=two, pools=pool("a", "b", cooldown=600)) as runtime:
        session, other = await runtime.open("pool"), await runtime.open("a")
        assert (await session.ask("One.")).binding.backend == "b"
        assert (await other.ask("Are you there?")).status == "complete"
        assert (await session.ask("Two.")).binding.backend == "a"


async def test_the_attempts_of_a_result_list_every_failed_request_with_its_wait(
    short_waits: None,
) -> None:
    one, two = openai(faults=lambda number, request: SERVER_ERROR), anthropic(Turn(Say("Here.")))
    limits = BackendLimits(attempts=3)
    async with runtime_with(a=one, b=two, pools=pool("a", "b"), backend=limits) as runtime:
        answer = await (await runtime.open("pool")).ask("Hello.")
    seen = [(each.binding.backend, each.status) for each in answer.attempts]
    assert seen == [("a", "retried"), ("a", "retried"), ("a", "handed_over"), ("b", "complete")]
    assert [each.wait > 0 for each in answer.attempts] == [False, True, True, False]
    for failed in answer.attempts[:3]:
        assert failed.error
        assert failed.cause is not None
        assert (failed.cause.kind, failed.cause.status) == ("transient", 500)
    assert one.received == 3


async def test_a_backend_that_always_fails_is_avoided_by_its_pool() -> None:
    one, two = openai(faults=lambda number, request: SERVER_ERROR), anthropic()
    limits = BackendLimits(attempts=1, failures=2, cooldown=600)
    pools = pool("a", "b", cooldown=0) | {"behind": PoolSettings(members=("a",))}
    async with runtime_with(a=one, b=two, pools=pools, backend=limits) as runtime:
        alone = await runtime.open("a")
        for _ in range(2):
            assert (await alone.ask("Hello.", check=False)).status == "failed"
        refused = await alone.ask("Hello.", check=False)
        assert refused.status == "failed"
        assert refused.attempts[-1].cause is not None
        assert refused.attempts[-1].cause.kind == "circuit_open"
        assert "Backend 'a' accepts no requests for" in refused.error
        passed = await (await runtime.open("pool")).ask("Hello.")
        assert [each.binding.backend for each in passed.attempts] == ["b"]
        refused_again = await (await runtime.open("behind")).ask(
            "Hello.",
            check=False,
        )  # if all members are unavailable, each gives its reason
        assert refused_again.attempts[-1].cause == refused.attempts[-1].cause
    assert (one.received, two.received) == (2, 1)


async def test_a_request_too_long_for_one_member_is_sent_to_another_member() -> None:
    long = Status(
        400, message="This model's maximum context length is 100 tokens.", code="context_length_exceeded"
    )
    one, two = openai(faults={0: long, 1: long}), anthropic(Turn(Say("I can.")))
    async with runtime_with(a=one, b=two, pools=pool("a", "b")) as runtime:
        answer = await (await runtime.open("pool")).ask("Hello.")
        assert (answer.text, answer.binding.backend) == ("I can.", "b")
        answer = await (await runtime.open("a")).ask(
            "Hello.", check=False
        )  # and without another member, this is reported
        assert answer.status == "failed"
        assert "nothing is left to shorten" in answer.error
        assert answer.attempts[-1].cause is not None
        assert answer.attempts[-1].cause.kind == "overflow"
    assert (one.received, two.received) == (2, 1)


async def test_a_sticky_session_stays_with_the_member_that_took_over() -> None:
    one, two = openai(faults={0: QUOTA}), openai(faults={0: QUOTA})
    async with runtime_with(a=one, b=two, pools=pool("a", "b", policy="sticky", cooldown=0)) as runtime:
        session = await runtime.open("pool")
        served = [(await session.ask("Hello.", check=False)) for _ in range(4)]
    assert [answer.status for answer in served[1:]] == ["complete"] * 3
    assert len({answer.binding.backend for answer in served[1:]}) == 1


async def test_the_least_busy_member_of_a_pool_serves_the_ask() -> None:
    one, two = openai(faults={0: Stall()}), openai()
    async with runtime_with(a=one, b=two, pools=pool("a", "b", policy="least_in_flight")) as runtime:
        first, second = await runtime.open("pool"), await runtime.open("pool")
        async with first.stream("Hello."), anyio.create_task_group():
            with anyio.fail_after(60):
                while not one.received:
                    await anyio.lowlevel.checkpoint()
            for _ in range(3):
                assert (await second.ask("Hello.")).binding.backend == "b"
            await first.cancel()


async def test_a_weighted_pool_serves_each_member_its_share() -> None:
    one, two = openai(), openai()
    shares = pool("a", "b", policy="weighted", weights={"a": 3})
    async with runtime_with(a=one, b=two, pools=shares) as runtime:
        session = await runtime.open("pool")
        for _ in range(8):
            assert (await session.ask("Hello.")).status == "complete"
    assert (one.received, two.received) == (6, 2)


@pytest.mark.parametrize(
    ("policy", "weights", "shares"),
    [("round_robin", {}, (4, 4, 4)), ("sticky", {}, (4, 4, 4)), ("weighted", {"a": 2}, (6, 3, 3))],
)
async def test_new_sessions_are_spread_over_a_pool(
    policy: Policy, weights: dict[str, int], shares: tuple[int, ...]
) -> None:
    one, two, three = openai(), openai(), openai()
    pools = pool("a", "b", "c", policy=policy, weights=weights)
    async with runtime_with(a=one, b=two, c=three, pools=pools) as runtime:

        async def ask_once(number: int) -> None:
            session = await runtime.open("pool", id=f"s{number}")
            assert (await session.ask("Hello.")).status == "complete"

        async with anyio.create_task_group() as tasks:
            for number in range(12):
                tasks.start_soon(ask_once, number)
    assert (one.received, two.received, three.received) == shares


async def test_a_session_keeps_its_position_in_a_pool_across_hibernation() -> None:
    pools = pool("a", "b", "c", policy="round_robin")
    async with runtime_with(a=openai(), b=openai(), c=openai(), pools=pools) as runtime:

        async def serving_backend(session: Session) -> str:
            return (await session.ask("Hello.")).binding.backend

        first, second = await runtime.open("pool"), await runtime.open("pool")
        assert [
            await serving_backend(first),
            await serving_backend(second),
            await serving_backend(second),
        ] == ["a", "b", "c"]
        assert first._lifecycle.passivate()
        first._lifecycle.evict()
        assert await serving_backend(first) == "b"
        third = await runtime.open("a")  # joins the pool later, so its place is after the others
        await serving_backend(third)
        await third.switch("pool")
        assert [await serving_backend(third), await serving_backend(third)] == ["c", "a"]


def test_the_first_position_in_a_pool_is_random_unless_the_runtime_is_seeded() -> None:
    drawn = {StartPositions(Random(seed), is_seeded=False).next_position("pool") % 3 for seed in range(20)}
    assert drawn == {0, 1, 2}
    positions = StartPositions(Random(1), is_seeded=True)
    assert [positions.next_position(name) for name in ("pool", "pool", "other", "pool")] == [0, 1, 0, 2]
