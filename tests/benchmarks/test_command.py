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


def test_every_goal_is_a_row_whether_or_not_it_was_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--backend", "trio", "--only", "K1", "--json"]) == 0
    shown, told = capsys.readouterr()
    report = json.loads(shown)
    rows = report["figures"]
    assert {row["goal"] for row in rows} == {*GOALS}
    assert all((row["value"] is None) == (row["goal"] != "K1") for row in rows)
    assert {row["case"] for row in rows if row["goal"] == "K1"} == {"trio"}
    assert all(row["value"] > 0 and row["met"] is not None for row in rows if row["goal"] == "K1")
    assert {"name", "processor", "cores", "memory_gib", "system", "python"} == report["machine"].keys()
    assert (report["quick"], [line.split()[0] for line in told.splitlines()]) == (True, ["K1"])
    (tmp_path / "run.json").write_text(shown)
    understood = read_report(str(tmp_path / "run.json"))
    assert [(row.score, row.is_met) for row in understood.figures] == [
        (row["judged"], row["met"]) for row in rows
    ]


def test_a_measurement_that_fails_is_exit_code_1_and_the_table_is_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def failing(extent: Extent) -> list[Figure]:
        assert not extent.quick
        assert extent.backends == ("asyncio",)
        raise ValueError("the server is gone")

    options = command.parser("bench").parse_args(["--full", "--backend", "asyncio"])
    assert command.main(options, [Measure("B2", "a turn", failing)]) == 1
    shown, told = capsys.readouterr()
    assert "failed: ValueError: the server is gone" in shown
    assert told.splitlines()[-1] == "actors: B2 could not be measured; the table says why"


def test_a_goal_that_does_not_exist_is_named_and_nothing_is_measured(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--only", "A1,Z9"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("actors: no goal 'Z9'; there are A1, ")
    assert main(["--only", ""]) == 2
    assert capsys.readouterr().err.startswith("actors: no goal ''; there are A1, ")


@pytest.mark.parametrize("address", ["sessions.db", "mysql://host/name"])
def test_what_is_no_address_of_a_database_is_told_before_anything_is_measured(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--postgres", address]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert "postgresql://" in line


def test_goals_may_be_named_as_they_are_typed(capsys: pytest.CaptureFixture[str]) -> None:
    row = Figure("A1", "asked", "openai_chat", "ms", 3.0, 2.0, 1.0)
    options = command.parser("bench").parse_args(["--only", "a1, b2", "--json"])
    measures = [Measure(goal, "asked", lambda _: [row]) for goal in ("A1", "A2", "B2")]
    assert command.main(options, measures) == 0
    figures = json.loads(capsys.readouterr().out)["figures"]
    assert [row["goal"] for row in figures if row["note"] == "not selected"] == ["A2"]


def test_two_runs_of_one_machine_are_compared_and_of_two_refused(
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


def test_a_picture_that_cannot_be_written_is_exit_code_2_and_the_table_is_there(
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
