"""Other libraries in the benchmarks: pinned, each in a separate process, and measured only with complete turns.

These tests install no library. A program that needs only the standard library talks to the same server instead.
"""

import ast
import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import http, live, memory, render
from benchmarks.figures import Extent, Figure, NotMeasured, Peer
from benchmarks.others import OtherLibraries
from benchmarks.peers import environments, process
from benchmarks.peers.__main__ import main
from benchmarks.peers.pins import LIBRARIES, PinnedLibrary
from benchmarks.stub import run_stub as serving
from benchmarks.timing import interleave

PROGRAMS = environments.FOLDER / "programs"
BY_HAND = """
import asyncio, json, urllib.request
from working import Histories, TOOLS, execute_orders, run_tool_loop

HELD = Histories(list, lambda messages: messages)

async def prepare_turn(url, stream):
    def asked(messages):
        body = json.dumps({"model": "m", "stream": stream, "tools": TOOLS, "messages": messages}).encode()
        with urllib.request.urlopen(url + "/chat/completions", body) as answer:
            said = answer.read()
        if not stream:
            return json.loads(said)["choices"][0]["message"]
        deltas = [json.loads(line[6:]) for line in said.split(b"\\n\\n") if line.startswith(b"data: {")]
        deltas = [each["choices"][0]["delta"] for each in deltas if each["choices"]]
        calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
        text = "".join(delta.get("content") or "" for delta in deltas)
        return {"content": text, "tool_calls": calls}
    async def complete(messages):
        return await asyncio.to_thread(asked, messages)
    return lambda: run_tool_loop(complete)

execute_orders(prepare_turn, HELD)
"""
"""A client with a loop and without a library; it sends its messages last, as some clients do."""
LAZY = BY_HAND.replace("return lambda: run_tool_loop(complete)", "return lambda: nothing()").replace(
    "execute_orders(prepare_turn, HELD)",
    "async def nothing():\n    return 'An answer.'\n\nexecute_orders(prepare_turn, HELD)",
)
IDLE = """
import working
async def asleep():
    return working.ANSWER

execute_orders(prepare_turn, HELD)
"""
"""A program that returns the expected answer without a turn."""
STAND_IN = PinnedLibrary("stand_in", ("stand-in==1.0",), "import json", "by hand")


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path for a program that replaces a library; the test writes it."""
    folder = tmp_path / "programs"
    folder.mkdir()
    shutil.copy(PROGRAMS / "working.py", folder)
    monkeypatch.setattr(process, "FOLDER", tmp_path)
    monkeypatch.setattr(process, "python_of", lambda pinned: Path(sys.executable))
    monkeypatch.setattr(process, "install", lambda pinned: None)
    return folder / "run_stand_in.py"


@pytest.fixture
def url() -> Iterator[str]:
    """The address of the server for all programs."""
    with serving() as found:
        yield found


def test_each_library_has_a_pinned_version_and_its_program_imports_the_modules_to_measure() -> None:
    assert len(LIBRARIES) == 8
    assert {path.stem for path in PROGRAMS.glob("run_*.py")} == {f"run_{each.name}" for each in LIBRARIES}
    for pinned in LIBRARIES:
        assert all("==" in requirement for requirement in pinned.requirements), pinned
        assert pinned.title.endswith(f" {pinned.version}")
        used = _modules((PROGRAMS / f"run_{pinned.name}.py").read_text())
        assert _modules(pinned.imports) <= used, pinned


def _modules(source: str) -> set[str]:
    found = set[str]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            found.add(str(node.module))
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


@pytest.mark.parametrize("stream", [False, True])
def test_a_program_makes_complete_turns_and_reports_their_time(program: Path, url: str, stream: bool) -> None:
    program.write_text(BY_HAND)
    with process.run_libraries([STAND_IN]) as (library,):
        assert [library.turns(url, 2, stream=stream) > 0 for _ in range(2)] == [True, True]
    assert (library.name, library.note) == ("stand-in 1.0", "by hand")


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (LAZY, "ValueError: the answer is 'An answer.'"),
        (BY_HAND.replace("run_tool_loop(complete)", "None"), "TypeError"),
        ("import no_such_library", "ended without an answer"),
        (BY_HAND.replace('"messages": messages', '"messages": messages[:1]'), ""),
    ],
)
def test_turns_that_the_library_did_not_complete_are_not_measured(
    program: Path, url: str, source: str, why: str
) -> None:
    """The last program never ends, because the model requests tools in every answer. The test shortens its limit."""
    program.write_text(source)
    shared = program.parent / "working.py"
    shared.write_text(
        shared.read_text().replace("SECONDS = 60.0", "SECONDS = 0.5" if not why else "SECONDS = 60.0")
    )
    with (
        process.run_libraries([STAND_IN]) as (library,),
        pytest.raises(NotMeasured, match=why or "TimeoutError"),
    ):
        library.turns(url, 1, stream=False)


def test_concurrent_turns_run_at_the_same_time(program: Path) -> None:
    program.write_text(BY_HAND)
    with serving(together=3) as url, process.run_libraries([STAND_IN]) as (library,):
        assert library.turns(url, 3, stream=True, at_once=True) > 0


def test_a_benchmarked_stream_counts_only_if_its_text_is_complete(program: Path) -> None:
    program.write_text(BY_HAND)
    with serving(words=5) as url, process.run_libraries([STAND_IN]) as (library,):
        assert library.event_us(url, 5) > 0
        with pytest.raises(NotMeasured, match="5 of 6 words"):
            library.event_us(url, 6)


def test_memory_is_measured_while_a_conversation_waits_for_its_second_answer(program: Path) -> None:
    program.write_text(BY_HAND)
    with process.run_libraries([STAND_IN]) as (library,):
        assert isinstance(live._library_kb(2, library), float)
        with serving() as url, pytest.raises(NotMeasured, match="0 calls ran in 2 turns"):
            library.live_bytes(url, "http://127.0.0.1:9/v1", 2)


def test_benchmark_histories_are_stored_in_each_librarys_own_format(program: Path, tmp_path: Path) -> None:
    histories = tmp_path / "histories.jsonl"
    lines = [json.dumps([{"role": "user", "content": f"{number}" * 50_000}]) for number in range(10, 50)]
    histories.write_text("\n".join(lines))
    program.write_text(BY_HAND)
    with process.run_libraries([STAND_IN]) as (library,):
        resident, tracked, took = library.idle_memory(histories)
    assert (resident > 50_000, 0.5 < tracked < 5, took > 0) == (True, True, True)


def test_turns_without_executed_calls_are_not_measured(program: Path, url: str) -> None:
    program.write_text(
        BY_HAND.replace("run_tool_loop(complete)", "asleep()").replace(
            "execute_orders(prepare_turn, HELD)", IDLE
        )
    )
    with (
        process.run_libraries([STAND_IN]) as (library,),
        pytest.raises(NotMeasured, match="0 calls ran in 3 turns"),
    ):
        library.turns(url, 1, stream=False)


def test_a_failed_installation_reports_pips_error_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Uses this interpreter's pip, which finds nothing; a new environment takes seconds to create."""
    ran = environments._run_command
    monkeypatch.setattr(environments, "_run_command", lambda *line: None if "venv" in line else ran(*line))
    monkeypatch.setattr(environments, "python_of", lambda _: Path(sys.executable))
    monkeypatch.setattr(environments, "FOLDER", tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    missing = replace(STAND_IN, requirements=("no-such-library-at-all==1.0",))
    with pytest.raises(NotMeasured, match=r"could not be installed: .*no-such-library-at-all"):
        environments.install(missing)


class Steady:
    """A library with constant figures, or one that cannot be measured."""

    note = "noted"

    def __init__(self, name: str, ms: float | None) -> None:
        self.name, self._ms, self.asked = name, ms, 0

    def turns(self, url: str, count: int, *, stream: bool, at_once: bool = False) -> float:
        self.asked += 1
        if self._ms is None:
            raise NotMeasured("could not be installed")
        return self._ms

    def event_us(self, url: str, words: int) -> float:
        return self.turns(url, words, stream=True)

    def live_bytes(self, warm: str, url: str, count: int) -> float:
        assert warm != url
        return self.turns(url, count, stream=True) * 1e3 + live.HISTORY

    def idle_memory(self, histories: Path) -> tuple[float, float, float]:
        said = [json.loads(line) for line in histories.read_text().splitlines()]
        assert {len(messages) for messages in said} == {50}
        assert len({json.dumps(messages) for messages in said}) == len(said)
        return self.turns("", 1, stream=False) * 1e3, 11.0, 12.0

    def render_ms(self, history: Path, *, more: bool) -> float:
        said = json.loads(history.read_text())
        assert (len(said["messages"]) > 1000, len(said["more"])) == (True, 8 if more else 0)
        return self.turns("", 1, stream=False)

    def import_ms(self) -> float:
        raise NotMeasured("not here")

    import_mb = import_ms

    def size(self) -> tuple[int, float]:
        raise NotMeasured("not here")


def test_a_library_that_cannot_be_measured_is_left_out_with_the_reason() -> None:
    good, gone = Steady("good 1", 7.0), Steady("gone 1", None)
    others = OtherLibraries([good, gone])
    for _ in range(3):
        others.measure_each(lambda library: library.turns("", 1, stream=False))
    assert others.peers() == (Peer("good 1", 7.0, "noted"), Peer("gone 1", None, "could not be installed"))
    assert (good.asked, gone.asked) == (3, 1)


def test_a_turn_over_http_is_compared_with_other_libraries() -> None:
    good = Steady("good 1", 7.0)
    (measure,) = [each for each in http.MEASURES if each.goal == "B2"]
    rows = measure.figures(Extent(quick=True, backends=("asyncio",), libraries=(good,)))
    assert [row.case for row in rows] == ["asyncio, plain", "asyncio, streamed"]
    assert all(row.value and row.best_peer == Peer("good 1", 7.0, "noted") for row in rows)


def test_memory_and_concurrency_are_compared_with_other_libraries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "measure", lambda what, count, backend: memory.Weight(9e3, 8e3, 2.0, 1.0))
    monkeypatch.setattr(live, "_run_in_process", lambda what, count, backend: 9e3)
    crowded = http.CrowdCost(1.0, 1.0, 1.0, 1.0, 0)
    monkeypatch.setattr(http, "_run_crowd", lambda backend, count: crowded)
    libraries = (Steady("good 1", 7.0), Steady("gone 1", None))
    extent = Extent(quick=True, backends=("asyncio",), libraries=libraries)
    found = {
        (row.goal, row.unit): [peer.value for peer in row.peers]
        for module in (memory, live, http)
        for measure in module.MEASURES
        if measure.goal in ("E1", "B4", "B3")
        for row in measure.figures(extent)
        if row.peers
    }
    assert found == {
        ("E1", "KB"): [7.0, None],
        ("E1", "objects"): [11.0, None],
        ("E1", "ms"): [12.0, None],
        ("B4", "KB"): [7.0, None],
        ("B3", "ms"): [7.0, None],
    }


@pytest.fixture
def one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reduce rendering to one pass, because the size of its figures is not checked here."""
    monkeypatch.setattr(render, "interleave", lambda _, *works, **beside: interleave(1, *works, **beside))


@pytest.mark.usefixtures("one_pass")
def test_rendering_is_compared_with_the_fastest_library() -> None:
    libraries = (Steady("slow 1", 9000.0), Steady("fast 1", 7000.0), Steady("gone 1", None))
    extent = Extent(quick=True, backends=("asyncio",), libraries=libraries)
    rows = {(row.goal, row.question, row.case): row for row in (*_rows("A1", extent), *_rows("A3", extent))}
    (appended,) = [row for key, row in rows.items() if key[0] == "A1" and key[2] == "openai_chat"]
    assert appended.best_peer == Peer("fast 1", 7000.0, "noted")
    cold, against = [row for key, row in rows.items() if key[0] == "A3" and key[2] == "openai_chat"]
    assert [peer.value for peer in cold.peers] == [9000.0, 7000.0, None]
    assert (against.value, against.baseline, against.limit, against.is_met) == (cold.value, 7000.0, 1.0, True)
    assert all(not row.peers for key, row in rows.items() if key[2] == "anthropic")


def _rows(goal: str, extent: Extent) -> list[Figure]:
    (measure,) = [each for each in render.MEASURES if each.goal == goal]
    return measure.figures(extent)


@pytest.mark.usefixtures("one_pass")
def test_a_comparison_without_peer_libraries_names_the_command_that_measures_them() -> None:
    *_, against = _rows("A3", Extent(quick=True, backends=("asyncio",)))
    assert (against.value, against.is_met) == (None, None)
    assert "python -m benchmarks.peers" in against.note


@pytest.mark.parametrize("more", [False, True])
def test_a_benchmarked_render_counts_only_if_it_is_complete(
    program: Path, tmp_path: Path, more: bool
) -> None:
    result = {"role": "tool", "tool_call_id": "c1", "content": "x" * 1000}
    history = tmp_path / "history.json"
    history.write_text(json.dumps({"messages": [result] * 10, "more": [result] * 2}))
    program.write_text(BY_HAND)
    with process.run_libraries([STAND_IN]) as (library,):
        assert [library.render_ms(history, more=more) > 0 for _ in range(2)] == [True, True]
    program.write_text(BY_HAND.replace("lambda messages: messages", "lambda messages: messages[1:]"))
    why = "11 of 12 results" if more else "9 of 10 results"
    with process.run_libraries([STAND_IN]) as (library,), pytest.raises(NotMeasured, match=why):
        library.render_ms(history, more=more)


def test_an_unknown_library_is_reported_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--peers", "litellm,nobody"]) == 2
    assert "no library 'nobody'; the libraries are pydantic_ai, " in capsys.readouterr().err


def test_the_help_lists_the_libraries_and_the_options_of_peers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--help"])
    shown = capsys.readouterr().out
    assert (left.value.code, "--peers" in shown, "inspect_ai" in shown, "--compare" in shown) == (
        0,
        *[True] * 3,
    )
