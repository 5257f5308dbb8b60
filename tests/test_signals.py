"""Commands that are told to end at any moment: a sample of `python -m tests.signals`."""

import subprocess
import sys

import pytest


@pytest.mark.requirement("PROMISE-6", "PROMISE-12")
def test_a_command_that_is_signalled_ends_with_its_code_and_leaves_a_journal_to_go_on_with() -> None:
    line = [sys.executable, "-m", "tests.signals", "--count", "4", "--seed", "3"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert any(word in done.stdout for word in ("once", "twice"))
