"""The garbage collector is tuned on request or by our own commands, and otherwise left alone."""

import argparse
import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from actors import Runtime
from actors.cli import simulate
from actors.errors import ConfigError
from actors.runtime import residency
from actors.runtime.collector import MANY_SESSIONS, TUNED, CollectorTuning
from actors.testing import Call, OpenAIServer, Say, Turn, serve
from benchmarks.turn import TARGET, open_runtime
from tests.cli.command import actors, actors_now

DEFAULT = (700, 10, 10)

TOOLS = '''
import gc
from pathlib import Path

from actors import tool

@tool
def thresholds() -> str:
    """Thresholds of the garbage collector."""
    said = str(gc.get_threshold())
    Path(__file__).with_name("said").write_text(said)
    return said
'''


FORKING = """
import gc, os
from actors.runtime.collector import TUNED, TUNING

before = gc.get_threshold()
TUNING.begin_tuning("tuned")
if (child := os.fork()) == 0:
    found = [gc.get_threshold()]
    with TUNING.tuning():
        found.append(gc.get_threshold())
    found.append(gc.get_threshold())
    os._exit(found != [before, TUNED, before])
assert os.waitpid(child, 0)[1] == 0
assert gc.get_threshold() == TUNED
"""


@pytest.fixture(autouse=True)
def default_thresholds() -> Iterator[None]:
    """Set Python's default thresholds, and restore the previous ones afterwards."""
    before = gc.get_threshold()
    gc.set_threshold(*DEFAULT)
    yield
    gc.set_threshold(*before)


@pytest.mark.anyio
async def test_a_runtime_does_not_change_garbage_collection_unless_asked() -> None:
    async with Runtime(environ={}):
        assert gc.get_threshold() == DEFAULT
        async with Runtime(environ={}, gc="tuned"):
            assert gc.get_threshold() == TUNED
            async with Runtime(environ={}, gc="tuned"), Runtime(environ={}):
                assert gc.get_threshold() == TUNED
            assert gc.get_threshold() == TUNED
        assert gc.get_threshold() == DEFAULT


@pytest.mark.parametrize("before", [(0, 10, 10), (100_000, 50, 50), (100_000, 5, 50)])
def test_tuning_never_lowers_a_threshold_or_enables_a_disabled_collector(
    before: tuple[int, int, int],
) -> None:
    gc.set_threshold(*before)
    with CollectorTuning().tuning():
        assert gc.get_threshold() == (before if not before[0] else tuple(map(max, before, TUNED)))
    assert gc.get_threshold() == before


def test_thresholds_set_by_the_program_during_tuning_are_kept() -> None:
    with CollectorTuning().tuning():
        gc.set_threshold(1000, 20, 20)
    assert gc.get_threshold() == (1000, 20, 20)


def test_an_unknown_garbage_collection_policy_raises_a_config_error() -> None:
    given: Any = "fast"
    with pytest.raises(ConfigError, match=r"gc= takes 'tuned', or None to leave .* unchanged, not 'fast'"):
        Runtime(environ={}, gc=given)


def test_a_forked_child_starts_with_the_original_thresholds() -> None:
    subprocess.run([sys.executable, "-c", FORKING], check=True)


def test_advice_to_tune_the_collector_is_logged_once_and_only_if_useful(
    caplog: pytest.LogCaptureFixture,
) -> None:
    CollectorTuning().advise(MANY_SESSIONS - 1)
    with CollectorTuning().tuning():
        CollectorTuning().advise(MANY_SESSIONS)
    gc.disable()
    CollectorTuning().advise(MANY_SESSIONS)
    gc.enable()
    assert "collector_untuned" not in caplog.text
    tuning = CollectorTuning()
    tuning.advise(MANY_SESSIONS)
    tuning.advise(MANY_SESSIONS)
    assert caplog.text.count("collector_untuned") == 1
    assert "gc='tuned'" in caplog.text


@pytest.mark.anyio
async def test_a_runtime_with_many_sessions_logs_advice_to_tune_the_collector(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuning = CollectorTuning()
    monkeypatch.setattr(
        tuning, "advise", lambda sessions: CollectorTuning().advise(sessions * MANY_SESSIONS // 3)
    )
    monkeypatch.setattr(residency, "TUNING", tuning)
    monkeypatch.setattr(residency, "MANY_SESSIONS", 3)
    async with open_runtime() as runtime:
        for number in range(1, 5):
            await (await runtime.open(TARGET)).ledger()
            assert caplog.text.count("collector_untuned") == (number >= 3)


@pytest.mark.anyio
async def test_the_run_command_tunes_the_collector(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    server = OpenAIServer([Turn(Call("thresholds")), Turn(Say("Done."))])
    async with serve(server):
        line = ("run", "What are they?", "-m", "openai:gpt", "--tools", str(tmp_path / "tools.py"))
        done = await actors(*line, env={"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.base_url})
    assert (done.code, done.err) == (0, "")
    assert (tmp_path / "said").read_text() == str(TUNED)


def test_the_stress_command_tunes_the_collector(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    sizes = ("--sessions", "1", "--turns", "1", "--cancelling", "0")
    assert actors_now("stress", "--tools", str(tmp_path / "tools.py"), *sizes).code == 0
    assert (tmp_path / "said").read_text() == str(TUNED)


def test_the_simulate_command_tunes_the_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anyio.run", lambda *_, **__: gc.get_threshold())
    options = argparse.Namespace(
        dialect="openai_chat", script=None, fault=[], mode="strict", backend="asyncio"
    )
    seen: object = simulate.run(options)
    assert (seen, gc.get_threshold()) == (TUNED, DEFAULT)
