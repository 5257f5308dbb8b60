"""Kills at any place of a write, with recovery: a sample of `python -m tests.commands.killing`."""

import re
import sys

import pytest

from tests.commands.killing.__main__ import main
from tests.commands.killing.scenarios import SCENARIOS
from tests.runtime.forked import run

SAMPLE = (
    "--at",
    "57",
    "76",
    "--mixed",
    "--random",
    "1",
    "--sessions",
    "5",
    "--events",
    "60",
    "--workers",
    "1",
)


@pytest.mark.requirement("PROMISE-6", "PROMISE-7")
def test_after_a_kill_at_any_point_another_process_continues_without_loss_or_repetition(
    capfd: pytest.CaptureFixture[str],
) -> None:
    status, printed = run("tests.commands.killing", *SAMPLE)
    assert (status, capfd.readouterr().err) == (0, ""), printed
    rows = dict(re.findall(r"(\w+) +\d+ kills;.*: (.*)", printed))
    assert rows.keys() == {*SCENARIOS, "load"}
    assert re.search(r"\d outcome_unknown, \d ran again", rows["tools"]), "no kill interrupted a call"
    assert printed.endswith(" 0 broke a promise\n")


@pytest.mark.parametrize("line", [["--at"], ["--only"], ["--only", "lod"]])
def test_an_empty_or_unknown_selection_of_kill_points_is_refused(
    line: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["tests.commands.killing", *line])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert f"error: argument {line[0]}: " in capsys.readouterr().err.splitlines()[-1]
