"""A program with uncooperative running tools ends in every way, and leaves nothing behind."""

import gc
import threading

import pytest

from tests.commands.at_scale import extent
from tests.commands.shutdowns import CASES, TOOLS, Calls, Program, descriptors, model, run
from tests.runtime import forked

TIMES = 30
"""The number of runtimes for each way, concurrently in one process, so that they wait for their tools together. By
default there are fewer.
"""


@pytest.fixture(autouse=True)
def _short_waits(short_graces: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the watchdog's thread, which is joined, check more often. Separate programs keep the default."""
    monkeypatch.setattr("actors.scheduler.watchdog.STALL", 0.1)


@pytest.mark.requirement("PROMISE-12", "PROMISE-11")
@pytest.mark.parametrize(("way", "backend"), CASES, ids=["-".join(case) for case in CASES])
def test_a_program_that_ends_leaves_no_task_thread_or_descriptor(way: str, backend: str) -> None:
    threads, open_before = threading.enumerate(), descriptors()
    program = run(way, backend, "http://127.0.0.1:9", TOOLS * (extent(12, TIMES) // len(TOOLS)), Calls)
    assert_left_nothing(program, threads, open_before)


@pytest.mark.requirement("PROMISE-12")
@pytest.mark.parametrize(("way", "backend"), CASES, ids=["-".join(case) for case in CASES])
def test_a_program_that_ends_closes_its_connections(way: str, backend: str) -> None:
    threads, open_before = threading.enumerate(), descriptors()
    with model() as url:
        program = run(way, backend, url, TOOLS)
    assert_left_nothing(program, threads, open_before)  # the server has closed its ends too


@pytest.mark.requirement("PROMISE-12")
@pytest.mark.parametrize("kind", TOOLS)
def test_a_program_cancelled_at_the_earliest_moment_leaves_nothing_behind(kind: str) -> None:
    threads, open_before = threading.enumerate(), descriptors()
    program = run("every_task_cancelled_twice", "asyncio", "http://127.0.0.1:9", [kind], Calls)
    assert_left_nothing(program, threads, open_before)


def assert_left_nothing(program: Program, threads: list[threading.Thread], open_before: int) -> None:
    """Release the blocked tools, and check that the process has no new threads and descriptors."""
    assert program.all_running
    assert program.left == 0
    program.released.set()
    for thread in threading.enumerate():
        if thread.name in ("actors tool", "actors watchdog") and thread not in threads:
            thread.join(60)
    gc.collect()
    new = [thread for thread in threading.enumerate() if thread not in threads]
    assert [
        thread.name for thread in new if "Trio" not in thread.name
    ] == []  # trio keeps its own threads for a while
    assert descriptors() <= open_before  # descriptors of another test may have been closed meanwhile


@pytest.mark.requirement("PROMISE-12")
def test_a_separate_program_ends_correctly_without_error_output(capfd: pytest.CaptureFixture[str]) -> None:
    said = "1 of 1 times: 0 failed\nevery program ended correctly\n"
    assert forked.run("tests.commands.shutdowns", "--count", "1") == (0, said)
    assert capfd.readouterr().err == ""


@pytest.mark.requirement("PROMISE-12")
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_runtime_that_is_never_exited_does_not_keep_the_process_alive(backend: str) -> None:
    status, _ = forked.run("tests.commands.shutdowns", "--one", "never_left", backend, *TOOLS, timeout=60)
    assert status == 0
