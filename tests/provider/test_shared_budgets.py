"""Budgets shared by the sessions of a tenant or pool: reserved before a request and settled after it."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry, generate_latest

from actors import AskResult, Budget, Compaction, Price, Runtime, subagent
from actors.config import Config, FileSettings, PoolSettings, load
from actors.core.log.events import RequestSent
from actors.core.settings.spending import SessionUsage, shared_budgets
from actors.core.stats.stats import BudgetStats
from actors.core.values.identity import Binding
from actors.core.values.stream import Usage
from actors.errors import CompactionFailed, ConfigError, OverBudget
from actors.kernel.event_loop import Waiter, event_loop
from actors.provider.budgets import Demand, RuntimeBudgets, Share, SharedBudget, Window
from actors.runtime.handle import Session
from actors.telemetry import PrometheusCollector
from actors.testing import Call, OpenAIServer, Say, Stall, Turn, serve
from tests.runtime_support import Gate, assert_paired, backend_at, bodies, log, openai

pytestmark = pytest.mark.anyio

HUNDRED = Turn(Say("Done."), usage=(90, 10))
WORKS = Turn(Call("work", {"name": "a"}), usage=(90, 10))


@asynccontextmanager
async def runtime_with_budgets(
    budgets: Mapping[str, Budget], server: OpenAIServer, **options: Any
) -> AsyncIterator[Runtime]:
    """Run a runtime with these budgets, backend `a`, and `pool` with `a` as its only member."""
    with anyio.fail_after(60):
        async with serve(server):
            pools = {"pool": PoolSettings(members=("a",))}
            config = Config(FileSettings(backends={"a": backend_at(server)}, pools=pools), {})
            async with Runtime(config, seed=1, budgets=budgets, **options) as runtime:
                yield runtime


@pytest.mark.parametrize(("name", "target", "tenant"), [("tenants.t", "a", "t"), ("pools.pool", "pool", "")])
async def test_a_used_up_shared_budget_ends_a_turn_and_rejects_its_sessions(
    name: str, target: str, tenant: str
) -> None:
    server, gate = openai(HUNDRED, WORKS, HUNDRED, HUNDRED), Gate()
    gate.open("a")
    async with runtime_with_budgets({name: Budget(tokens=150)}, server) as runtime:
        one, other = [await runtime.open(target, tools=[gate.tool], tenant=tenant) for _ in range(2)]
        stranger = await runtime.open("a")
        assert (await one.ask("Hello?")).status == "complete"
        ended = await other.ask("Work!", check=False)
        whose = f"the budget of {name.split('.')[0][:-1]} {name.split('.')[1]!r}"
        assert (ended.status, ended.error) == ("failed", f"{whose} of 150 tokens is used up (200 were used)")
        assert ended.attempts[-1].cause is not None
        assert ended.attempts[-1].cause.kind == "limit"
        assert [item.status for item in (await other.ledger()).interactions()] == ["complete"]
        for session in (one, other):
            with pytest.raises(OverBudget, match="is used up"):
                await session.ask("More?")
            assert (await session.preview(target)).exhausted_budget.startswith(whose)
        assert (await stranger.preview("a")).exhausted_budget == ""
        assert (await stranger.ask("Hello?")).status == "complete"
        assert runtime.stats().budgets[name] == BudgetStats(
            tokens=150, used_rounds=2, used_tokens=200, refused=3
        )
        assert len(server.requests) == 3
        if target == "pool":
            await other.switch("a")
            assert (await other.ask("And now?")).status == "complete"
            assert_paired(bodies(server)[-1])


async def test_a_shared_budget_limits_the_rounds_of_a_tenants_sessions() -> None:
    server = openai(HUNDRED, HUNDRED, HUNDRED)
    async with runtime_with_budgets({"tenants.t": Budget(rounds=2)}, server) as runtime:
        one, other = [await runtime.open("a", tenant="t") for _ in range(2)]
        await one.ask("Hello?")
        await other.ask("Hello?")
        with pytest.raises(OverBudget, match="the budget of tenant 't' of 2 rounds is used up"):
            await one.ask("More?")
        stats = runtime.stats().budgets["tenants.t"]
        assert (stats.rounds, stats.used_rounds, len(server.requests)) == (2, 2, 2)


async def test_requests_wait_while_requests_in_flight_have_reserved_the_budget() -> None:
    """Four requests begin at once. Each reserves more than a thousand tokens until it is answered."""
    held = anyio.Event()

    async def hold(session: Session, results: list[AskResult]) -> None:
        results.append(await session.ask("Hello?"))

    server = OpenAIServer([HUNDRED] * 4, faults=lambda number, request: None if held.is_set() else Stall())
    async with runtime_with_budgets({"tenants.t": Budget(tokens=2000)}, server) as runtime:
        sessions = [await runtime.open("a", tenant="t") for _ in range(4)]
        results: list[AskResult] = []
        async with anyio.create_task_group() as tasks:
            for session in sessions[:2]:
                tasks.start_soon(hold, session, results)
            while server.received < 2:
                await anyio.lowlevel.checkpoint()
            for session in sessions[2:]:
                tasks.start_soon(hold, session, results)
            await anyio.wait_all_tasks_blocked()
            stats = runtime.stats().budgets["tenants.t"]
            assert (server.received, stats.in_flight) == (2, 2)
            assert (
                2000 <= stats.reserved_tokens < 2000 + stats.reserved_tokens / 2
            )  # at most one request above the budget
            assert await sessions[3].cancel()  # a waiting request
            held.set()
            for session in sessions[:2]:
                assert await session.cancel()
        assert sorted(result.status for result in results) == ["cancelled"] * 3 + ["complete"]
        stats = runtime.stats().budgets["tenants.t"]
        assert (stats.used_tokens, stats.reserved_tokens, stats.in_flight) == (100, 0, 0)


async def test_the_request_that_waited_longest_goes_first_unless_another_budget_blocks_it() -> None:
    def budget() -> SharedBudget:
        return SharedBudget(Budget(tokens=100), SessionUsage(), lambda binding, usage: None, event_loop())

    tenant, other, pool = budget(), budget(), budget()
    demand, order = Demand(100), list[str]()
    busy, elsewhere = Share(pool), Share(other)

    async def request(name: str, share: Share) -> None:
        assert await share.admit(demand, lambda: False) is None
        order.append(name)
        share.release()

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            for share in (busy, elsewhere):
                assert await share.admit(demand, lambda: False) is None
            waits = {
                "kept": (other, pool),
                "first": (tenant, pool),
                "second": (tenant, pool),
                "third": (pool,),
            }
            for name, budgets in waits.items():
                tasks.start_soon(request, name, Share(*budgets))
                await anyio.wait_all_tasks_blocked()
            busy.release()
            await request("last", Share(pool))  # it asks before the woken requests have run
            assert order == ["first", "second", "third", "last"]
            elsewhere.release()
    assert order[-1] == "kept"
    assert [*tenant.queue, *other.queue, *pool.queue] == []


async def test_the_end_of_a_request_wakes_only_the_next_waiting_request() -> None:
    count, waits, order = 300, list[object](), list[int]()
    here = event_loop()

    def waiter() -> Waiter:
        waits.append(made := here.waiter())
        return made

    def counting_budget(tokens: int) -> SharedBudget:
        return SharedBudget(
            Budget(tokens=tokens), SessionUsage(), lambda *_: None, replace(here, waiter=waiter)
        )

    budget, roomy = counting_budget(100), counting_budget(100 * count)
    busy = Share(budget)

    async def request(number: int) -> None:
        with Share(roomy, budget) as share:
            assert await share.admit(Demand(100), lambda: False) is None
            order.append(number)
            await anyio.lowlevel.checkpoint()

    with anyio.fail_after(60):
        assert await busy.admit(Demand(100), lambda: False) is None
        async with anyio.create_task_group() as tasks:
            for number in range(count):
                tasks.start_soon(request, number)
            await anyio.wait_all_tasks_blocked()
            assert (len(budget.queue), len(roomy.queue)) == (count, 0)
            busy.release()
    assert sorted(order) == [*range(count)]
    assert len(waits) == count
    assert budget.stats.in_flight == roomy.stats.in_flight == 0


async def test_a_used_up_budget_rejects_all_waiting_requests() -> None:
    budget = SharedBudget(Budget(tokens=100), SessionUsage(), lambda *_: None, event_loop())
    busy, refusals = Share(budget), list[str | None]()

    async def request() -> None:
        refusals.append(await Share(budget).admit(Demand(1), lambda: False))

    with anyio.fail_after(60):
        assert await busy.admit(Demand(100), lambda: False) is None
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(request)
            await anyio.wait_all_tasks_blocked()
            busy.record_usage(Binding("a", "openai_chat"), Usage(90, 10), is_round=True)
    assert refusals == ["the session's budget of 100 tokens is used up (100 were used)"] * 20
    assert budget.queue == []


async def test_budget_granted_to_a_cancelled_request_goes_to_the_next_request() -> None:
    budget, order = (
        SharedBudget(Budget(tokens=100), SessionUsage(), lambda *_: None, event_loop()),
        list[str](),
    )
    busy, scope = Share(budget), anyio.CancelScope()

    async def request(name: str, scope: anyio.CancelScope) -> None:
        with scope:
            share = Share(budget)
            assert await share.admit(Demand(100), lambda: False) is None
            order.append(name)
            share.release()

    with anyio.fail_after(60):
        assert await busy.admit(Demand(100), lambda: False) is None
        async with anyio.create_task_group() as tasks:
            for name, its_scope in (("cancelled", scope), ("next", anyio.CancelScope())):
                tasks.start_soon(request, name, its_scope)
                await anyio.wait_all_tasks_blocked()
            scope.cancel()
            busy.release()
    assert order in (["next"], ["cancelled", "next"])  # trio lets a task that was woken continue
    assert budget.stats.in_flight == 0


async def test_a_request_is_estimated_by_the_reported_usage_of_its_binding() -> None:
    server = openai(HUNDRED, Turn(Say("Done."), usage=(150, 10)))
    server.faults = lambda number, request: Stall() if number == 2 else None
    async with runtime_with_budgets({"tenants.t": Budget(tokens=10_000)}, server) as runtime:
        first, second = [await runtime.open("a", tenant="t") for _ in range(2)]
        await first.ask("word " * 100)
        await first.ask("word")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(second.ask, "word " * 100)
            while server.received < 3:
                await anyio.lowlevel.checkpoint()
            reserved = runtime.stats().budgets["tenants.t"].reserved_tokens
            await second.cancel()
    assert 90 < reserved < 250  # far less than the thousand tokens assumed without a report


async def test_prometheus_shows_the_state_of_a_budget() -> None:
    async with runtime_with_budgets({"tenants.t": Budget(tokens=500)}, openai(HUNDRED)) as runtime:
        await (await runtime.open("a", tenant="t")).ask("Hello?")
        registry = CollectorRegistry()
        registry.register(PrometheusCollector(runtime.stats))
        text = generate_latest(registry).decode()
    assert 'actors_budget_tokens{budget="tenants.t"} 500.0' in text
    assert 'actors_budget_used_tokens{budget="tenants.t"} 100.0' in text
    assert 'actors_budget_refused_total{budget="tenants.t"} 0.0' in text
    assert "actors_budget_money{" not in text


async def test_a_budget_of_money_requires_prices_and_is_counted_by_prices() -> None:
    priced = {"gpt": Price(1.0, 1.0)}
    budgets = {"tenants.t": Budget(money=0.00015)}
    async with runtime_with_budgets(budgets, openai(HUNDRED, HUNDRED), prices=priced) as runtime:
        session = await runtime.open("a", tenant="t")
        await session.ask("Hello?")
        await session.ask("Hello?")
        with pytest.raises(
            OverBudget, match=r"budget of tenant 't' of 0\.00015 is used up \(0\.0002 was paid\)"
        ):
            await session.ask("Hello?")
        assert runtime.stats().budgets["tenants.t"].used_money == pytest.approx(0.0002)
    async with runtime_with_budgets(budgets, openai()) as runtime:
        with pytest.raises(ConfigError, match="needs the price of model 'gpt'"):
            await runtime.open("a", tenant="t")
        await runtime.open("a", tenant="u")


async def test_subagents_and_summaries_count_in_a_shared_budget() -> None:
    """The session sends two requests, its subagent one, and a summary needs one more: 400 tokens in total."""
    delegates = Turn(Call("helper", {"task": "Find it."}), usage=(90, 10))
    server = openai(delegates, HUNDRED, HUNDRED, HUNDRED)
    async with runtime_with_budgets({"tenants.t": Budget(tokens=10_000)}, server) as runtime:
        session = await runtime.open("a", tools=[subagent("helper", "Helps.")], tenant="t")
        assert (await session.ask("Go.")).status == "complete"
        assert runtime.stats().budgets["tenants.t"].used_tokens == 300
        assert (await session.compact()).messages == 3
        assert runtime.stats().budgets["tenants.t"].used_tokens == 400


async def test_no_summary_is_requested_once_the_budget_is_used_up() -> None:
    server, gate = openai(HUNDRED, WORKS, HUNDRED, HUNDRED), Gate()
    async with runtime_with_budgets({"tenants.t": Budget(tokens=250)}, server) as runtime:
        session = await runtime.open("a", tools=[gate.tool], tenant="t")
        await session.ask("Hello?")
        why: list[str] = []

        async def compact() -> None:
            with pytest.raises(CompactionFailed) as failed:
                await session.compact()
            why.append(str(failed.value))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.ask, "Work!")
            await gate.started("a")
            tasks.start_soon(compact)
            await anyio.wait_all_tasks_blocked()
            gate.open("a")
        assert len(server.requests) == 3
        assert "the budget of tenant 't' of 250 tokens is used up" in why[0]
        assert runtime.stats().budgets["tenants.t"].used_tokens == 300


async def test_a_turn_ends_if_the_summary_before_the_turn_used_up_the_budget() -> None:
    server = openai(Turn(Say("Done."), usage=(4000, 10)), Turn(Say("Done."), usage=(4000, 10)), HUNDRED)
    async with serve(server):
        backends = {"a": backend_at(server).model_copy(update={"context": 6000})}
        budgets = {"tenants.t": Budget(tokens=8000)}
        settings = Compaction(threshold=0.5, keep_turns=0)
        async with Runtime(
            Config(FileSettings(backends=backends), {}), seed=1, budgets=budgets, compaction=settings
        ) as runtime:
            session = await runtime.open("a", tenant="t")
            assert (await session.ask("Hello? " * 400)).status == "complete"
            assert (await session.preview("a")).compacts
            ended = await session.ask("And?", check=False)  # a summary is written, which uses up the budget
            assert [attempt.status for attempt in ended.attempts] == ["handed_over", "failed"]
            assert "is used up (8020 were used)" in ended.error
            assert len(server.requests) == 2
            assert [
                event.is_for_summary for event in log(runtime, session) if isinstance(event, RequestSent)
            ] == [
                False,
                True,
            ]


async def test_a_budget_period_ends_by_the_monotonic_clock() -> None:
    now = [1000.0]
    budgets = RuntimeBudgets(
        {"tenants.t": Budget(tokens=100, per="hour"), "pools.p": Budget(tokens=100)},
        lambda binding, usage: None,
        event_loop(),
        lambda: now[0],
    )
    hourly, always = budgets.budgets_of("t", "p")
    assert budgets.budgets_of("u", "q") == ()
    for each in (hourly, always):
        each.record_usage(Binding("a", "m"), Usage(90, 10), is_round=True)
    now[0] += 3599
    assert hourly.used_up_limit() == (
        "the budget per hour of tenant 't' of 100 tokens is used up (100 were used); the budget restarts in 1 s"
    )
    now[0] += 1
    assert (hourly.used_up_limit(), hourly.stats.used_tokens, hourly.stats.left_seconds) == (None, 0, 3600)
    assert always.used_up_limit() is not None
    hourly.record_usage(Binding("a", "m"), Usage(90, 10), is_round=True)
    now[0] += 2.5 * 3600  # complete periods are skipped
    assert (hourly.used_up_limit(), hourly.stats.left_seconds) == (None, 1800)


async def test_a_jump_of_the_wall_clock_does_not_change_a_budget_period(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with runtime_with_budgets(
        {"tenants.t": Budget(tokens=100, per="minute")}, openai(HUNDRED)
    ) as runtime:
        session = await runtime.open("a", tenant="t")
        await session.ask("Hello?")
        for jump in (10**9, -(10**9)):
            monkeypatch.setattr("time.time", lambda jump=jump: 1.7e9 + jump)
            with pytest.raises(OverBudget, match=r"the budget restarts in [1-6]?[0-9] s"):
                await session.ask("More?")


async def test_a_restart_resets_a_shared_budget_but_not_the_budget_of_a_session(
    tmp_path: Path,
) -> None:
    server, path = openai(HUNDRED, HUNDRED), tmp_path / "sessions.db"
    budgets = {"tenants.t": Budget(tokens=100)}
    async with runtime_with_budgets(budgets, server, journal=path) as runtime:
        session = await runtime.open("a", tenant="t", id="one", budget=Budget(tokens=200))
        await session.ask("Hello?")
        with pytest.raises(OverBudget, match="budget of tenant 't'"):
            await session.ask("More?")
    server = openai(HUNDRED, HUNDRED)
    async with runtime_with_budgets(budgets, server, journal=path) as runtime:
        session = await runtime.resume("one")
        assert runtime.stats().budgets["tenants.t"].used_tokens == 0
        assert (await session.ask("Hello?")).status == "complete"
        with pytest.raises(
            OverBudget, match=r"the session's budget of 200 tokens is used up \(200 were used\)"
        ):
            await session.ask("More?")
        fork = await runtime.resume(await runtime.journal.fork("one"))
        with pytest.raises(OverBudget, match=r"200 tokens is used up \(200 were used\)"):
            await fork.ask("More?")


async def test_budgets_of_the_program_override_budgets_of_the_configuration_file(tmp_path: Path) -> None:
    file = tmp_path / "actors.toml"
    file.write_text(
        '[backends.a]\nkind = "ollama"\nmodel = "m"\nbase_url = "http://localhost:1/v1"\n'
        '[pools.p]\nmembers = ["a"]\nbudget = { money = 2.5 }\n'
        '[tenants.t]\nbudget = { tokens = 1000, per = "day" }\n'
    )
    settings = load(file, {}).settings
    filed = shared_budgets({}, settings.budgets, settings.pools)
    assert filed == {"tenants.t": Budget(tokens=1000, per="day"), "pools.p": Budget(money=2.5)}
    given = {"tenants.t": Budget(tokens=5), "tenants.a.b": Budget(tokens=7)}
    assert shared_budgets(given, settings.budgets, settings.pools) == filed | given
    file.write_text('[tenants.t]\nbudget = { per = "day" }\n')
    with pytest.raises(ConfigError, match="must have at least one of rounds, tokens, money"):
        load(file, {})


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("t", Budget(tokens=1), "the form tenants.NAME or pools.NAME"),
        ("pools.q", Budget(tokens=1), "names the pool 'q', which is not configured"),
        ("tenants.t", Budget(), "has no limit"),
        ("tenants.t", Budget(tokens=0), "tokens=0"),
        ("tenants.t", Budget(money=float("inf")), "money=inf"),
        (
            "tenants.t",
            Budget(tokens=1, per="week"),  # type: ignore[arg-type]  # as under test
            "per='week', but per must be one of minute, hour, day, or None",
        ),
        ("tenants.t", Budget(rounds=1, seconds=5), "limits seconds, which only a session's budget"),
        ("tenants.t", 5, "must be a Budget, not int"),
    ],
)
def test_an_invalid_budget_raises_a_config_error(name: str, given: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Runtime(budgets={name: given})


async def test_when_a_budget_period_begins_waiting_requests_go_before_new_requests() -> None:
    now, admitted, ends = [0.0], list[str](), anyio.Event()
    window = Window(10, lambda: now[0])
    budget = SharedBudget(Budget(tokens=100), SessionUsage(), lambda *_: None, event_loop(), window=window)
    busy, used = Share(budget), Share(budget)

    async def request(name: str) -> None:
        with Share(budget) as share:
            assert await share.admit(Demand(60), lambda: False) is None
            admitted.append(name)
            await ends.wait()

    for share, tokens in ((busy, 50), (used, 60)):
        assert await share.admit(Demand(tokens), lambda: False) is None
    used.record_usage(Binding("a", "openai_chat"), Usage(60, 0), is_round=True)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(request, "waits")
            await anyio.wait_all_tasks_blocked()
            now[0] = 11.0
            tasks.start_soon(request, "new")
            await anyio.wait_all_tasks_blocked()
            assert admitted == ["waits"]
            busy.release()
            await anyio.wait_all_tasks_blocked()
            ends.set()
    assert admitted == ["waits", "new"]


def test_a_budget_window_reports_its_end_only_once() -> None:
    now = [0.0]
    window = Window(10, lambda: now[0])
    now[0] = 10
    assert (window.roll_over(), window.roll_over(), window.seconds_left) == (True, False, 10)
