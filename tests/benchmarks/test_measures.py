"""The benchmarks run and report their figures. These tests do not check any speed."""

import json
from pathlib import Path

import anyio
import pytest

from actors.adapters.adapter import adapter
from actors.core.dialects.profiles import PROFILES, dialect
from benchmarks import dialects, many, memory, render, waking
from benchmarks.__main__ import main
from benchmarks.dialects import decoding_works, encoding_works
from benchmarks.figures import Extent, Figure, table
from benchmarks.goals import MEASURES
from benchmarks.loop import recorded_rows
from benchmarks.turn import open_runtime
from benchmarks.workload import (
    FAMILIES,
    Author,
    LiveConversation,
    content_bytes,
    conversation_steps,
    dialect_binding,
    imported_messages,
)
from tests.renderer.marks import without_marks

QUICK = Extent(quick=True, backends=("asyncio",))


def test_measurements_of_the_repository_appear_as_rows_of_the_same_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    goals = [measure.goal for measure in MEASURES]
    assert len({*goals}) == len(goals)
    assert main(["--backend", "asyncio", "--only", "T1", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["figures"]
    assert [row["goal"] for row in rows if row["note"] == "not selected"] == [g for g in goals if g != "T1"]
    assert {row["case"] for row in rows if row["goal"] == "T1"} == {
        "The README's tests",
        "All",
        'pytest -m "not long"',
    }


@pytest.mark.parametrize("goal", ["A4", "D2", "E2", "P2D"])
def test_a_measurement_gives_figures_that_are_compared_with_its_goal(
    goal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dialects, "ANSWERS", 1)
    monkeypatch.setattr(render, "MESSAGES", 100)
    monkeypatch.setattr(memory, "_BEFORE", 50)
    monkeypatch.setattr(waking, "ASKS", 2)
    monkeypatch.setattr(
        waking, "measure", lambda *_: anyio.run(memory.hibernated_sessions, 100, backend="asyncio")
    )
    measure = next(measure for measure in MEASURES if measure.goal == goal)
    measured = [row for row in measure.figures(QUICK) if row.value is not None]
    assert measured
    compared = [row for row in measured if row.case != "first answer"]  # compared with other libraries only
    assert all(row.goal == goal for row in measured)
    assert all(row.limit and row.is_met is not None for row in compared)


@pytest.mark.parametrize("name", many.WORKS)
def test_measuring_many_sessions_waits_for_the_end_of_every_turn(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many, "MODEL_LATENCY", 0.0001)
    monkeypatch.setattr(many, "TOOL_SECONDS", 0.0001)
    monkeypatch.setattr(many, "CONNECTIONS", 4)
    monkeypatch.setattr(many, "EARLY", 3)
    monkeypatch.setattr(many, "LATE", 9)
    sample = anyio.run(many.WORKS[name], 3, backend="asyncio")
    assert sample.ms > 0
    assert sample.failed == 0
    assert (sample.early_ms > 0) if name == "rotation" else (0 < sample.first <= sample.middle <= sample.last)


def test_figures_of_many_sessions_are_compared_with_their_goals(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = many.TurnFigures(ms=3.0, early_ms=2.0, lag_ms=260.0, first=2.1, middle=4.0, last=9.0, failed=1)
    monkeypatch.setattr(many, "measure", lambda work, count, backend: sample)
    rows = [
        row
        for measure in MEASURES
        if measure.goal in ("H1", "H2", "H3", "H4", "H5")
        for row in measure.figures(QUICK)
    ]
    ratios = {(row.goal, row.score, row.is_met) for row in rows}
    assert ratios == {
        ("H1", 1.5, False),
        ("H2", 1.0, True),
        ("H2", 1, False),
        ("H3", 260.0, False),
        ("H4", 2.1, False),
        ("H4", 4.0 / (150 * 0.3 / 64), False),
        ("H4", 1, False),
        ("H5", 1.0, True),
        ("H5", 1, False),
    }


def test_the_memory_of_idle_sessions_is_measured_after_their_actors_were_dropped() -> None:
    """One actor alone has more tracked objects than this limit, and each session used to have four actors."""
    assert memory.measure("asked_sessions", 10, "asyncio").tracked < 10


def test_the_reported_duration_of_the_tests_comes_from_the_last_full_run(tmp_path: Path) -> None:
    times = tmp_path / "times"
    assert [(row.value, row.is_met) for row in recorded_rows(times)] == [(None, None), (None, None)]
    times.write_text("299\tThe README's tests\n60\tStyle\n1201\tAll\n")
    assert [(row.case, row.value, row.is_met) for row in recorded_rows(times)] == [
        ("The README's tests", 299, True),
        ("All", 1201, False),
    ]


def test_the_ratio_of_a_figure_to_its_baseline_is_compared_with_its_goal() -> None:
    over = Figure("A1", "asked", "case", "ms", limit=2.0, value=3.0, baseline=1.0)
    assert (over.score, over.is_met) == (3.0, False)
    assert Figure("A1", "asked", "case", "ms", limit=2.0, value=3.0, baseline=1.5).is_met is True
    assert Figure("E1", "asked", "case", "objects", limit=10, value=11).is_met is False
    assert Figure("E1", "asked", "case", "objects", limit=10).is_met is None
    assert "NO" in table([over])


@pytest.mark.parametrize("target", FAMILIES)
def test_the_measured_request_equals_a_cold_render(target: str) -> None:
    live = LiveConversation(target, target, 40)
    live.next_request()
    live.append(live.author.turn())
    assert without_marks(b"".join(live.next_request()), target) == without_marks(
        b"".join(live.first_request()), target
    )


def test_a_generated_block_has_the_documented_number_and_size_of_messages() -> None:
    steps = Author(dialect_binding("anthropic")).block()
    messages = imported_messages(steps)
    assert [sum(m.role == who for m in messages) for who in ("user", "assistant")] == [5, 8]
    results = [result for message in messages for result in message.results]
    assert len(results) == 7
    assert all(1000 <= len(str(result.content)) <= 2000 for result in results)
    assert content_bytes(messages) > 10_000


def test_no_two_generated_conversations_share_a_text() -> None:
    said = [
        {
            block.json
            for step in conversation_steps(Author(dialect_binding("anthropic"), seed), 20)
            for block in step.message.blocks
            if hasattr(block, "json")
        }
        for seed in (1, 2)
    ]
    assert not said[0] & said[1]


@pytest.mark.anyio
async def test_the_in_process_model_serves_complete_turns() -> None:
    from benchmarks.turn import SEARCH, TARGET

    async with open_runtime() as runtime:
        session = await runtime.open(TARGET, tools=[SEARCH])
        for _ in range(2):
            result = await session.ask("Settle it.")
            assert (result.status, result.rounds) == ("complete", 2)
        ends = [item.status for item in (await session.ledger()).interactions()]
    assert ends == ["complete"] * 10


@pytest.mark.parametrize("name", PROFILES)
def test_a_codec_measurement_and_its_json_baseline_encode_the_same_value(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dialects, "MESSAGES", 100)  # every kind of message occurs
    ours, baseline = encoding_works(name)
    encoded, dumped = ours(), baseline()
    assert isinstance(encoded, bytes)
    assert isinstance(dumped, bytes)
    closing = adapter(dialect(name)).encoder.closing
    assert json.loads(b"[" + encoded + closing + b"]") == json.loads(dumped)
    for work in decoding_works(name):
        work()
