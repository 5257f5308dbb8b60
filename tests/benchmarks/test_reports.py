"""Reports of `python -m benchmarks`: the format of a run's report, and the runs that can be compared."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from benchmarks.comparing import IncomparableReports, change_lines, compare
from benchmarks.figures import Extent, Figure, Measure, NotMeasured, Peer, require_module, table
from benchmarks.machine import Machine, MachineLoad, this_machine
from benchmarks.plotting import plot, render_svg
from benchmarks.report import BenchReport, UnreadableReport, measure, read_report
from benchmarks.timing import Passes

MACHINE = Machine("a1", "Some CPU", 2, 8.0, "Linux 6.1", "CPython 3.11.9")
ROW = Figure("A1", "asked", "case", "ms", limit=3.0, value=2.0, baseline=1.0, spread=0.01)


def report(*rows: Figure, machine: Machine = MACHINE, quick: bool = True) -> BenchReport:
    """A report of these rows."""
    return BenchReport(
        began="2026-01-01T00:00:00+00:00",
        quick=quick,
        machine=machine,
        load=MachineLoad(0.5),
        libraries={},
        figures=rows,
    )


def measurement(goal: str, *rows: Figure) -> Measure:
    """Return a measurement that returns `rows`."""
    return Measure(goal, "asked", lambda _: list(rows))


def test_a_report_survives_a_round_trip(tmp_path: Path) -> None:
    written = report(replace(ROW, peers=(Peer("other 1.0", 4.0), Peer("gone", None, "not installed"))))
    (tmp_path / "a.json").write_text(written.json())
    assert read_report(str(tmp_path / "a.json")) == written
    (row,) = json.loads(written.json())["figures"]
    assert (row["judged"], row["met"]) == (2.0, True)


@pytest.mark.parametrize("text", ["", "[]", '{"format": 2}', "{"])
def test_the_error_about_an_unreadable_report_names_the_file_and_suggests_a_fix(
    text: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(UnreadableReport, match=r"a\.json is not a report.*python -m benchmarks --json"):
        read_report(str(path))


def test_a_missing_report_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnreadableReport, match=r"Cannot read .*none\.json: no such file"):
        read_report(str(tmp_path / "none.json"))


def test_a_failed_measurement_appears_as_a_row_with_the_reason() -> None:
    def missing(extent: Extent) -> list[Figure]:
        raise NotMeasured("needs orjson")

    def failing(extent: Extent) -> list[Figure]:
        raise ValueError("the stub is gone")

    told: list[str] = []
    measures = [
        Measure("B1", "b", missing),
        Measure("B2", "c", failing),
        measurement("A1", ROW),
        measurement("C1"),
    ]
    found = measure(measures, Extent(quick=True), ("B1", "B2", "A1"), told.append)
    assert [(row.goal, row.value, row.note) for row in found.figures] == [
        ("B1", None, "needs orjson"),
        ("B2", None, "failed: ValueError: the stub is gone"),
        ("A1", 2.0, ""),
        ("C1", None, "not selected"),
    ]
    assert (found.failed, found.quick, found.machine) == (("B2",), True, this_machine())
    assert [line.split()[0] for line in told] == ["B1", "B2", "A1"]


def test_a_missing_library_is_not_measured() -> None:
    with pytest.raises(NotMeasured, match=r"needs no_such_library: pip install 'llm-actors\[bench\]'"):
        require_module("no_such_library.module")


def test_a_row_has_the_median_and_the_spread_of_its_passes() -> None:
    passes = Passes.of([(2.0, 1.0), (4.0, 1.0), (3.0, 1.0), (12.0, 4.0), (30.0, 10.0)])
    row = passes.fill(Figure("A1", "asked", "case", "ms", 3.0))
    assert (row.value, row.baseline, row.spread) == (4.0, 1.0, 0.0)  # the ratios are 2, 4, 3, 3 and 3
    assert Passes.of([(1.0,), (2.0,), (3.0,)]).fill(ROW, 0, None).spread == 0.25
    assert Passes.of([(1.0,), (2.0,)]).spread(0, None) is None


@pytest.mark.parametrize(
    "other",
    [
        msgspec.structs.replace(MACHINE, name="b2"),
        msgspec.structs.replace(MACHINE, processor="Another CPU"),
        msgspec.structs.replace(MACHINE, cores=4),
    ],
)
def test_runs_on_two_different_machines_are_not_compared(other: Machine) -> None:
    with pytest.raises(IncomparableReports, match="two machines: Some CPU"):
        compare(report(ROW), report(ROW, machine=other))


def test_runs_on_one_machine_are_compared_even_if_software_versions_differ() -> None:
    newer = msgspec.structs.replace(MACHINE, python="CPython 3.12.1", system="Linux 6.2")
    (change,) = compare(report(ROW), report(ROW, machine=newer))
    assert (change.factor, change.verdict) == (1.0, "same")


def test_a_quick_run_is_not_compared_with_a_full_run() -> None:
    with pytest.raises(IncomparableReports, match="quick and the other is full"):
        compare(report(ROW), report(ROW, quick=False))


@pytest.mark.parametrize(
    ("value", "spread", "verdict"),
    [
        (3.0, 0.01, "worse"),
        (1.0, 0.01, "better"),
        (2.04, 0.0, "same"),  # below the reporting limit
        (3.0, 0.3, "same"),  # within the passes' own differences
        (2.3, 0.01, "worse"),
    ],
)
def test_a_difference_counts_only_beyond_the_spread_of_the_passes(
    value: float, spread: float, verdict: str
) -> None:
    (change,) = compare(report(ROW), report(replace(ROW, value=value, spread=spread)))
    assert change.verdict == verdict


def test_rows_are_compared_by_ratio_and_unmatched_rows_are_named() -> None:
    slower = replace(ROW, value=4.0, baseline=2.0)  # a slower moment: the ratio is the same
    gone, new = replace(ROW, goal="B1"), replace(ROW, goal="B2")
    skipped = replace(ROW, goal="C1", value=None)
    changes = compare(report(ROW, gone, skipped), report(slower, new, skipped))
    assert [change.verdict for change in changes] == ["same", "new", "gone"]
    shown = _rows("\n".join(change_lines(changes)))
    assert [row[0] for row in shown] == ["goal", "A1", "B2", "B1"]
    assert shown[1][-1] == "same"


def test_the_table_names_the_best_peer_or_its_absence() -> None:
    row = replace(ROW, peers=(Peer("slow 1", 9.0), Peer("fast 2", 4.0), Peer("gone", None, "no wheel")))
    assert "fast 2 4 ms (2 x ours)" in table([row])
    assert "none could be measured" in table([replace(ROW, peers=(Peer("gone"),))])


def test_the_picture_of_a_report_shows_goals_and_the_figures_of_other_libraries(tmp_path: Path) -> None:
    drawn = replace(ROW, question="the <first>", peers=(Peer("other 1.0", 4.0), Peer("gone")))
    rows = (drawn, replace(ROW, question="no goal", limit=None), replace(ROW, question="skipped", value=None))
    path = plot(report(*rows), tmp_path / "new" / "pictures")
    assert path == tmp_path / "new" / "pictures" / "bench.svg"
    texts = [element.text for element in _elements(path.read_text(), "text")]
    assert [text for text in texts if text and text[0] in "Aom0123456789S"] == [
        f"{MACHINE}; 2026-01-01T00:00:00+00:00",
        "0.1",
        "1",
        "10",
        "multiples of the goal: left of the line is met",
        "A1  the <first>, case",
        "2 x, goal 3",
        "other 1.0",
    ]


def test_the_bar_of_a_missed_goal_ends_right_of_the_goal_line() -> None:
    picture = render_svg(report(ROW, replace(ROW, value=6.0), replace(ROW, value=3.0)))
    _, *bars = _elements(picture, "rect")
    ends = [float(bar.attrib["x"]) + float(bar.attrib["width"]) for bar in bars]
    line = _elements(picture, "path")[-1].attrib["d"]
    goal = float(line[1:].split()[0])
    assert ends[0] < goal < ends[1]
    assert abs(ends[2] - goal) < 1
    assert [bar.attrib["fill"] for bar in bars] == ["#2a7f62", "#b5483a", "#2a7f62"]


def test_the_position_of_the_dot_of_a_library_matches_the_ratio_of_the_figures() -> None:
    tenfold = replace(ROW, peers=(Peer("other 1.0", 20.0), Peer("same 1.0", 2.0)))
    picture = render_svg(report(tenfold))
    _, bar = _elements(picture, "rect")
    ours = float(bar.attrib["x"]) + float(bar.attrib["width"])
    other, same, *legend = (float(dot.attrib["cx"]) for dot in _elements(picture, "circle"))
    decade = 500 / 2  # the chart is 500 pixels wide and shows 0.1 to 10
    assert abs(same - ours) < 1
    assert abs(other - ours - decade) < 1
    assert len(legend) == 2


def test_a_report_without_rows_can_be_plotted() -> None:
    assert len(_elements(render_svg(report()), "rect")) == 1


def _elements(picture: str, name: str) -> list[ElementTree.Element]:
    return ElementTree.fromstring(picture).findall(f"{{http://www.w3.org/2000/svg}}{name}")


def _rows(text: str) -> Sequence[list[str]]:
    return [line.split() for line in text.splitlines()]
