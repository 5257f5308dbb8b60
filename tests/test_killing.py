"""A process is killed at any place of a write, and another goes on: a sample of `python -m tests.killing`."""

import re
import subprocess
import sys

import pytest

from tests.killing.__main__ import main
from tests.killing.scenarios import SCENARIOS

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
def test_whenever_a_process_is_killed_another_goes_on_and_nothing_is_lost_or_done_twice() -> None:
    line = [sys.executable, "-m", "tests.killing", *SAMPLE]
    done = subprocess.run(line, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    rows = dict(re.findall(r"(\w+) +\d+ kills;.*: (.*)", done.stdout))
    assert rows.keys() == {*SCENARIOS, "load"}
    assert re.search(r"\d outcome_unknown, \d ran again", rows["tools"]), "no kill met calls in their midst"
    assert done.stdout.endswith(" 0 broke a promise\n")


@pytest.mark.parametrize("line", [["--at"], ["--only"], ["--only", "lod"]])
def test_a_sweep_of_nothing_is_refused(
    line: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["tests.killing", *line])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert f"error: argument {line[0]}: " in capsys.readouterr().err.splitlines()[-1]
