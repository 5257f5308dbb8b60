"""Steps of `.ci/run` beside one another: whichever fails, its name and all output are shown, and nothing runs on."""

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
    """Run steps; return the status and all that they say."""
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


def test_what_runs_beside_a_step_that_fails_is_ended_with_all_its_processes(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    os.mkfifo(begun)
    reader, writer = os.pipe()
    status, said = output('beside Other long\nread < "$begun"\nstep This bad', given=writer, begun=str(begun))
    os.close(writer)
    with os.fdopen(reader) as pipe:
        ready, _, _ = select.select([pipe], [], [], 30)
        assert ready, "a process still holds the other end"
    assert status == 1
    assert "It is bad." in said
    assert "It begins." in said
    assert "It goes on." not in said
    assert said.endswith("== FAILED: This\n")


def test_a_step_that_fails_beside_another_is_named_and_its_output_is_shown() -> None:
    status, said = output("beside Other bad\nstep This true\njoined\nstep Last true")
    assert status == 1
    assert "== This: " in said
    assert "It is bad." in said
    assert "It goes on." not in said
    assert "== Last" not in said
    assert said.endswith("== FAILED: Other\n")


def test_steps_that_end_well_say_how_long_they_took() -> None:
    status, said = output("beside Other true\nstep This true\njoined")
    assert status == 0
    assert "== This: " in said
    assert "== Other: " in said
