"""A forked child runs runtimes of its own, whatever the threads of its parent were doing."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.skipif(sys.platform == "win32", reason="processes are forked elsewhere")
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_forked_child_has_threads_of_its_own(backend: str) -> None:
    command = [sys.executable, "-m", "tests.forked_child", backend]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout.splitlines() == [
        "blocking: ['complete']",
        "large: ['complete']",
        "stall seen: True",
    ], done.stderr
