"""Concurrent steps of `.ci/run`: a failing step is named with its complete output, and no process keeps running."""

import os
import select
import subprocess
from pathlib import Path

from tests.project.source import ROOT

STEPS = """
set -euo pipefail
source .ci/steps
times=/dev/null
trap failed_or_ended EXIT
long() { echo "It begins."; bash -c 'sleep 600 & echo > "$0"; wait' "$begun"; echo "It goes on."; }
bad() { echo "It is bad."; false; echo "It goes on."; }
"""


def output(script: str, *, given: int | None = None, begun: str = "") -> tuple[int, str]:
    """Run steps; return the status and their complete output."""
    done = subprocess.run(
        ["bash", "-c", STEPS + script],
        cwd=ROOT,
        env={**os.environ, "begun": begun},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        pass_fds=() if given is None else (given,),
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout


def test_a_failing_step_ends_concurrent_steps_with_all_their_processes(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    os.mkfifo(begun)
    reader, writer = os.pipe()
    status, said = output('beside Other long\nread < "$begun"\nstep This bad', given=writer, begun=str(begun))
    os.close(writer)
    with os.fdopen(reader) as pipe:
        ready, _, _ = select.select([pipe], [], [], 30)
        assert ready, "a process still has the other end open"
    assert status == 1
    assert "It is bad." in said
    assert "It begins." in said
    assert "It goes on." not in said
    assert said.endswith("== FAILED: This\n")


def test_a_failing_concurrent_step_is_named_with_its_output() -> None:
    status, said = output("beside Other bad\nstep This true\njoined\nstep Last true")
    assert status == 1
    assert "== This: " in said
    assert "It is bad." in said
    assert "It goes on." not in said
    assert "== Last" not in said
    assert said.endswith("== FAILED: Other\n")


def test_successful_steps_report_their_duration() -> None:
    status, said = output("beside Other true\nstep This true\njoined")
    assert status == 0
    assert "== This: " in said
    assert "== Other: " in said
