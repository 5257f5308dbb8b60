"""A short soak, and the detection of each kind of problem."""

from collections.abc import Mapping

import anyio
import pytest
from msgspec.structs import astuple

from actors.testing import StressReport
from actors.testing.stressing import ResourceCounts
from tests.commands.soak import load
from tests.commands.soak.load import BREAKER, DIALECTS, Loop, Soak, Soaked, run
from tests.commands.soak.servers import Seen

NOTHING = ResourceCounts(1, 1, 10)


@pytest.mark.requirement("PROMISE-1", "PROMISE-8", "PROMISE-11")
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_soak_test_leaks_nothing_and_its_asks_fail_only_because_of_injected_faults(
    backend: str,
) -> None:
    soaked = run(
        Soak(sessions=12, seconds=2, think=0.05, faults=0.1, gather=0.3, cancelling=0.1, seed=3), backend
    )
    assert soaked.problems == []
    assert soaked.faults.total() > 0
    assert soaked.report.asks["complete"] > 0
    assert soaked.report.counters["requests"] >= soaked.report.rounds > 12
    assert len(soaked.counts) == len(DIALECTS)
    assert all(each.requests and each.most for each in soaked.counts)
    before, after = soaked.held
    assert all(left <= was for was, left in zip(astuple(before), astuple(after), strict=True)), soaked.held
    assert soaked.loop.delay(1.0) >= soaked.loop.delay(0.5) >= 0


@pytest.mark.anyio
async def test_the_soak_test_lets_its_servers_answer_even_if_the_descriptor_count_drops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts, answered = iter([100, *[90] * 10_000]), list[str]()

    class Server:
        """A server that records that it may answer."""

        def answer(self) -> None:
            answered.append("now")

    monkeypatch.setattr(load, "_descriptors", lambda: next(counts))
    with anyio.fail_after(30):
        await load._await_connections(Soak(sessions=12, gather=0.02), [Server()])  # type: ignore[list-item]
    assert answered == ["now"]


def _result(
    failures: Mapping[str, int],
    leaks: Mapping[str, int],
    seen: Seen,
    refusals: int = 0,
    asks: Mapping[str, int] | None = None,
) -> Soaked:
    asks = {"complete": 5} if asks is None else asks
    report = StressReport(asks, failures, 9, 0, 1.0, {"p50": 0.1, "p99": 0.2}, refusals, {}, leaks)
    return Soaked(2, report, [seen], (NOTHING, NOTHING), Loop())


CLEAN = Seen(10, {}, {}, 2, 0)
FAULTY = Seen(10, {}, {"transient": 2}, 2, 0)


@pytest.mark.parametrize(
    ("soaked", "problems"),
    [
        (_result({}, {"tasks": 0}, CLEAN), []),
        (_result({"transient": 2}, {}, FAULTY), []),
        (
            _result({"transient": 3}, {}, FAULTY),
            ["3 asks failed for transient, which 2 faults do not explain"],
        ),
        (_result({"circuit_open": 40}, {}, Seen(10, {}, {"transient": BREAKER}, 2, 0)), []),
        (
            _result({"circuit_open": 1}, {}, FAULTY),
            ["1 asks failed for circuit_open, which 0 faults do not explain"],
        ),
        (
            _result({"QueueFull": 1}, {}, FAULTY),
            ["1 asks failed for QueueFull, which 0 faults do not explain"],
        ),
        (_result({}, {"tasks": 2}, CLEAN), ["2 tasks leaked"]),
        (_result({}, {}, Seen(10, {"OAC-05": 1}, {}, 2, 0)), ["1 requests refused by OAC-05"]),
        (_result({}, {}, CLEAN, 1), ["1 refused for structure"]),
        (_result({}, {}, Seen(10, {}, {}, 2, 3)), ["3 connections left at a server"]),
        (_result({}, {}, Seen(10, {}, {}, 1, 0)), ["only 1 connections at once"]),
        (_result({}, {}, CLEAN, 0, {"cancelled": 3}), ["no ask completed"]),
    ],
)
def test_each_problem_of_a_soak_test_is_reported(soaked: Soaked, problems: list[str]) -> None:
    assert soaked.problems == problems
