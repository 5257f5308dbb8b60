"""The tests are the same ones, in the same order, in every process: they are shared between processes by number."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
COLLECT = (sys.executable, "-m", "pytest", "--collect-only", "-q", "--assert=plain", "-n", "0")


def test_processes_that_hash_strings_differently_collect_the_same_tests_in_the_same_order() -> None:
    running = [
        subprocess.Popen(
            COLLECT, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed}, stdout=subprocess.PIPE, text=True
        )
        for seed in ("1", "2")
    ]
    outputs = [process.communicate(timeout=300)[0] for process in running]
    one, other = [[line for line in output.splitlines() if "::" in line] for output in outputs]
    assert len(one) > 1000
    assert one == other
    assert [process.returncode for process in running] == [0, 0]
