"""The cost of asks and the budgets of sessions: unknown prices are not guessed, and a budget ends at a boundary."""

import pytest

from actors import Budget, Price, Runtime
from actors.config import Config, FileSettings, PoolSettings
from actors.core.log.events import Opened, TurnEnded
from actors.core.session.state import SessionState
from actors.core.settings.spending import checked_budget, checked_prices, price_of
from actors.core.values.identity import Binding
from actors.core.values.stream import Usage
from actors.errors import ConfigError, OverBudget
from actors.testing import SERVER_ERROR, Call, Say, Turn, serve
from tests.runtime_support import Gate, assert_paired, backend_at, bodies, log, openai, runtime_with
from tests.scripted import scripted

GPT = Binding("a", "openai_chat", model="gpt-5")
PRICES = {"gpt*": Price(2.0, 10.0, 0.5), "gpt-5": Price(1.0, 4.0, 0.1, 1.5)}


def test_the_cost_of_an_ask_counts_each_token_once() -> None:
    usage = Usage(1_000_000, 500_000, 400_000, 100_000)
    assert PRICES["gpt-5"].of(usage) == pytest.approx(0.5 * 1.0 + 0.5 * 4.0 + 0.4 * 0.1 + 0.1 * 1.5)


def test_the_cost_of_an_ask_is_unknown_if_a_price_is_missing() -> None:
    assert PRICES["gpt*"].of(Usage(10, 10, 5, 0)) is not None
    assert PRICES["gpt*"].of(Usage(10, 10, 0, 5)) is None


def test_an_exact_price_takes_precedence_over_a_price_pattern() -> None:
    assert price_of(PRICES, GPT) == PRICES["gpt-5"]
    assert price_of(PRICES, Binding("a", "openai_chat", model="gpt-6")) == PRICES["gpt*"]
    assert price_of(PRICES, Binding("a", "openai_chat", model="claude")) is None


@pytest.mark.parametrize(
    "budget",
    [
        Budget(rounds=0),
        Budget(tokens=-1),
        Budget(money=float("inf")),
        Budget(money=-1.0),
        Budget(rounds=1, per="day"),
    ],
)
def test_an_invalid_budget_raises_a_config_error(budget: Budget) -> None:
    with pytest.raises(ConfigError, match="budget="):
        checked_budget(budget)


def test_a_negative_price_raises_a_config_error() -> None:
    with pytest.raises(
        ConfigError, match=r"The price of 'm' has input=-1, but input must be a finite number of at least 0$"
    ):
        checked_prices({"m": Price(-1, 1)})


@pytest.mark.anyio
async def test_a_result_reports_its_cost_and_losses() -> None:
    server = openai(Turn(Say("one"), usage=(1000, 100)), Turn(Say("two"), cached=(500, 0), usage=(1000, 100)))
    async with serve(server):
        config = Config(FileSettings(backends={"a": backend_at(server)}), {})
        async with Runtime(config, prices={"gpt": Price(2.0, 10.0)}, seed=1) as runtime:
            session = await runtime.open("a")
            first = await session.ask("Hello?")
            assert first.cost == pytest.approx((1000 * 2.0 + 100 * 10.0) / 1_000_000)
            assert first.report is not None
            assert first.losses == {}
            second = await session.ask("And now?", thinking="adaptive")
            assert second.cost is None or second.usage.cache_read_tokens == 0
            assert second.report is not None


@pytest.mark.anyio
async def test_an_answer_without_usage_counts_as_a_round_and_has_no_cost() -> None:
    server = openai(*[Turn(Say("Hello."), usage=(0, 0))] * 2)
    async with serve(server):
        config = Config(FileSettings(backends={"a": backend_at(server)}), {})
        budgets = {"tenants.t": Budget(tokens=1)}
        async with Runtime(config, prices={"gpt": Price(2.0, 10.0)}, budgets=budgets, seed=1) as runtime:
            session = await runtime.open("a", tenant="t", budget=Budget(tokens=1, rounds=2))
            answers = [await session.ask("Hello?") for _ in range(2)]
            assert [(each.status, each.usage, each.cost) for each in answers] == [
                ("complete", Usage(), None)
            ] * 2
            with pytest.raises(OverBudget, match="budget of 2 rounds is used up"):
                await session.ask("Hello?")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("prices", "cost"),
    [({"*": Price(1.0, 1.0)}, 1650 / 1_000_000), ({"gpt": Price(1.0, 1.0)}, None)],
    ids=["known", "half"],
)
async def test_the_cost_of_a_failover_is_the_sum_of_its_attempts_or_unknown(
    prices: dict[str, Price], cost: float | None
) -> None:
    work, gate = Turn(Call("work", {"name": "a"}), usage=(1000, 100)), Gate()
    first, second = openai(work, faults={1: SERVER_ERROR}), openai(Turn(Say("two"), usage=(500, 50)))
    gate.open("a")
    pools = {"both": PoolSettings(members=("a", "b"))}
    async with serve(first, second):
        backends = {"a": backend_at(first), "b": backend_at(second).model_copy(update={"model": "other"})}
        config = Config(FileSettings(backends=backends, pools=pools), {})
        async with Runtime(config, prices=prices, seed=1) as runtime:
            session = await runtime.open("both", tools=[gate.tool])
            answer = await session.ask("Work!")
            assert len(answer.attempts) == 2
            assert answer.cost == (None if cost is None else pytest.approx(cost))


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("budget", "why"),
    [
        (Budget(rounds=1), "the session's budget of 1 rounds is used up"),
        (Budget(tokens=10), "the session's budget of 10 tokens is used up (18 were used)"),
    ],
    ids=str,
)
async def test_a_used_up_budget_ends_a_turn_between_rounds_and_rejects_later_asks(
    budget: Budget, why: str
) -> None:
    server, gate = openai(Turn(Call("work", {"name": "a"}), usage=(11, 7)), Turn(Say("never"))), Gate()
    gate.open("a")
    async with runtime_with(a=server) as runtime:
        session = await runtime.open("a", tools=[gate.tool], budget=budget, tenant="blue")
        answer = await session.ask("Work!", check=False)
        assert (answer.status, answer.error) == ("failed", why)
        ledger = await session.ledger()
        assert [item.status for item in ledger.interactions()] == ["complete"]
        with pytest.raises(OverBudget, match="is used up"):
            await session.ask("More?")
        assert len(bodies(server)) == 1
        (opened,) = [event for event in log(runtime, session) if isinstance(event, Opened)]
        assert (opened.tenant, opened.budget) == ("blue", budget)


@pytest.mark.anyio
async def test_an_ask_that_exceeds_a_budget_of_seconds_ends() -> None:
    """The tool never returns, so only the budget can end the ask."""
    gate = Gate()
    async with runtime_with(a=openai(Turn(Call("work", {"name": "a"})))) as runtime:
        session = await runtime.open("a", tools=[gate.tool], budget=Budget(seconds=0.2))
        answer = await session.ask("Work!", check=False)
        assert (answer.status, answer.error) == ("failed", "the session's budget of 0.2 seconds is used up")
        (ended,) = [event for event in log(runtime, session) if isinstance(event, TurnEnded)]
        assert ended.seconds > 0


@pytest.mark.anyio
async def test_the_setting_token_limit_limits_the_tokens_of_an_ask() -> None:
    server, gate = openai(Turn(Call("work", {"name": "a"}), usage=(11, 7)), Turn(Say("next"))), Gate()
    gate.open("a")
    async with scripted(server, tools=[gate.tool]) as (_, _, session):
        answer = await session.ask("Work!", token_limit=10, check=False)
        assert answer.error == "the ask used 18 tokens, but its token_limit is 10"
        assert (await session.ask("And now?", token_limit=10)).text == "next"
        assert_paired(bodies(server)[1])


@pytest.mark.anyio
async def test_a_budget_of_money_requires_every_price() -> None:
    server, other = openai(Turn(Say("one"), usage=(1000, 1000))), openai()
    async with serve(server, other):
        backends = {"a": backend_at(server), "b": backend_at(other).model_copy(update={"model": "other"})}
        config = Config(
            FileSettings.model_validate(
                {"backends": backends, "prices": {"gpt": {"input": 1.0, "output": 1.0}}}
            ),
            {},
        )
        async with Runtime(config, seed=1) as runtime:
            with pytest.raises(ConfigError, match="needs the price of model 'other'"):
                await runtime.open("b", budget=Budget(money=1))
            session = await runtime.open("a", budget=Budget(money=0.001))
            with pytest.raises(ConfigError, match="needs the price of model 'other'"):
                await session.switch("b")
            answer = await session.ask("Hello?")
            assert answer.cost == pytest.approx(0.002)
            with pytest.raises(OverBudget, match=r"of 0\.001 is used up"):
                await session.ask("More?")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("cached", "price", "says"),
    [
        ((400, 0), {"cache_write": 1.0}, "cannot be enforced without the price cache_read of model 'gpt'"),
        ((0, 400), {"cache_read": 1.0}, "cannot be enforced without the price cache_write of model 'gpt'"),
        ((400, 400), {"cache_read": 0.5, "cache_write": 2.0}, ""),
    ],
)
async def test_a_missing_cache_price_is_named_if_cached_tokens_were_used(
    cached: tuple[int, int], price: dict[str, float], says: str
) -> None:
    server = openai(Turn(Say("one"), usage=(1000, 100), cached=cached), Turn(Say("two")))
    async with serve(server):
        backend = backend_at(server).model_dump() | {"price": {"input": 1.0, "output": 1.0, **price}}
        settings = FileSettings.model_validate({"backends": {"a": backend}})
        async with Runtime(Config(settings, {}), seed=1) as runtime:
            session = await runtime.open("a", budget=Budget(money=1))
            first = await session.ask("Hello?")
            if says:
                assert first.cost is None
                with pytest.raises(OverBudget, match=says):
                    await session.ask("More?")
            else:
                assert first.cost == pytest.approx((200 + 100 + 400 * 0.5 + 400 * 2.0) / 1e6)
                assert (await session.ask("More?")).text == "two"


@pytest.mark.anyio
async def test_an_invalid_tenant_name_raises_a_config_error() -> None:
    async with runtime_with(a=openai()) as runtime:
        with pytest.raises(ConfigError, match="at most 64"):
            await runtime.open("a", tenant="x" * 65)


def test_without_a_budget_no_usage_is_counted() -> None:
    assert SessionState().apply(Opened("s", "t")).used is None
