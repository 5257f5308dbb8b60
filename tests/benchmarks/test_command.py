"""The command line of the benchmarks: reports on standard output, and refused options."""

import json
from pathlib import Path

import pytest

from benchmarks import command
from benchmarks.__main__ import main
from benchmarks.figures import Extent, Figure, Measure
from benchmarks.goals import MEASURES
from benchmarks.report import measure, read_report

GOALS = [measure.goal for measure in MEASURES]


def test_every_goal_has_a_row_even_if_its_measurement_was_not_requested(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--backend", "trio", "--only", "K1", "--json"]) == 0
    shown, told = capsys.readouterr()
    report = json.loads(shown)
    rows = report["figures"]
    assert {row["goal"] for row in rows} == {*GOALS}
    assert all((row["value"] is None) == (row["goal"] != "K1") for row in rows)
    assert {row["case"] for row in rows if row["goal"] == "K1"} == {"trio"}
    measured = [row for row in rows if row["goal"] == "K1"]
    assert all(row["met"] is not None for row in measured)
    assert all(row["value"] > 0 for row in measured if row["unit"] != "KiB")  # free memory may be used again
    assert {"name", "processor", "cores", "memory_gib", "system", "python"} == report["machine"].keys()
    assert (report["quick"], [line.split()[0] for line in told.splitlines()]) == (True, ["K1"])
    (tmp_path / "run.json").write_text(shown)
    understood = read_report(str(tmp_path / "run.json"))
    assert [(row.score, row.is_met) for row in understood.figures] == [
        (row["judged"], row["met"]) for row in rows
    ]


def test_the_table_is_printed_and_the_exit_code_is_1_after_a_failed_measurement(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(extent: Extent) -> list[Figure]:
        assert not extent.quick
        assert extent.backends == ("asyncio",)
        raise ValueError("the server is gone")

    options = command.parser("bench").parse_args(["--full", "--backend", "asyncio"])
    assert command.main(options, [Measure("B2", "a turn", fail)]) == 1
    shown, told = capsys.readouterr()
    assert "failed: ValueError: the server is gone" in shown
    assert told.splitlines()[-1] == "actors: B2 could not be measured; the table contains the reasons"


def test_an_unknown_goal_is_named_before_any_measurement(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--only", "A1,Z9"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("actors: no goal 'Z9'; the goals are A1, ")
    assert main(["--only", ""]) == 2
    assert capsys.readouterr().err.startswith("actors: no goal ''; the goals are A1, ")


@pytest.mark.parametrize("address", ["sessions.db", "mysql://host/name"])
def test_an_invalid_database_address_is_reported_before_any_measurement(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--postgres", address]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert "postgresql://" in line


def test_goal_names_are_case_insensitive(capsys: pytest.CaptureFixture[str]) -> None:
    row = Figure("A1", "asked", "openai_chat", "ms", 3.0, 2.0, 1.0)
    options = command.parser("bench").parse_args(["--only", "a1, b2", "--json"])
    measures = [Measure(goal, "asked", lambda _: [row]) for goal in ("A1", "A2", "B2")]
    assert command.main(options, measures) == 0
    figures = json.loads(capsys.readouterr().out)["figures"]
    assert [row["goal"] for row in figures if row["note"] == "not selected"] == ["A2"]


def test_two_benchmark_runs_are_compared_only_if_they_ran_on_one_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = Figure("A1", "asked", "openai_chat", "ms", 3.0, 2.0, 1.0)
    report = measure([Measure("A1", "asked", lambda _: [row])], Extent(quick=True))
    told = json.loads(report.json())
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    before.write_text(json.dumps(told))
    told["figures"][0]["value"] = 4.0
    after.write_text(json.dumps(told))
    assert main(["--compare", str(before), str(after)]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[-6:] == ["2", "x", "4", "x", "+100%", "worse"]
    told["machine"]["name"] = "elsewhere"
    after.write_text(json.dumps(told))
    assert main(["--compare", str(before), str(after)]) == 2
    assert "The runs are from two machines" in capsys.readouterr().err
    assert main(["--compare", str(before), str(tmp_path / "none.json")]) == 2
    assert "none.json: no such file" in capsys.readouterr().err


def test_the_table_is_printed_and_the_exit_code_is_2_if_the_picture_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = Figure("A1", "asked", "openai_chat", "ms", 3.0, 2.0, 1.0)
    measures = [Measure("A1", "asked", lambda _: [row])]
    assert command.main(command.parser("bench").parse_args(["--plot", str(tmp_path)]), measures) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["bench.svg"]
    capsys.readouterr()
    taken = tmp_path / "file"
    taken.touch()
    assert command.main(command.parser("bench").parse_args(["--plot", str(taken)]), measures) == 2
    shown, told = capsys.readouterr()
    assert "openai_chat" in shown
    assert told.splitlines()[-1] == f"actors: Cannot write to {taken}: file exists"
