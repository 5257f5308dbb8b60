"""Commands that are told to end at any moment: a sample of `python -m tests.signals`."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.signals import Trial


@pytest.mark.requirement("PROMISE-6", "PROMISE-12")
def test_a_command_that_is_signalled_ends_with_its_code_and_leaves_a_journal_to_go_on_with(
    tmp_path: Path,
) -> None:
    line = [sys.executable, "-m", "tests.signals", "--count", "4", "--seed", "3"]
    with (tmp_path / "said").open("w+") as said:  # a file, to which what it forks must not hold on
        done = subprocess.run(line, stdout=said, stderr=subprocess.PIPE, text=True, timeout=300, check=False)
        said.seek(0)
        printed = said.read()
    assert (done.returncode, done.stderr) == (0, ""), printed
    assert any(word in printed for word in ("once", "twice")), printed


def test_a_command_that_ends_in_another_way_is_told_with_all_that_it_printed() -> None:
    trial = Trial(7, "trio", [signal.SIGINT], 1, 0.01)
    with pytest.raises(
        AssertionError, match=r"number=7(.|\n)*ended with 3, not with 130(.|\n)*one\n(.|\n)*two\n"
    ):
        trial.judged(3, b"one\n", b"two\n")
