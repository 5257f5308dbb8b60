"""`actors stats` of events from `actors run --json`."""

import json
from pathlib import Path

import pytest

from actors.testing import Call, OpenAIServer, Say, Turn, serve
from tests.cli.command import actors, actors_now

pytestmark = pytest.mark.anyio

TOOLS = '''
from actors import tool

@tool
def weather(city: str) -> str:
    """Weather of a city."""
    return f"{city}: 21 C"
'''
COUNTED = {
    "tool_calls_total": 3,
    "tool_calls_invalid_args": 1,
    "tool_calls_repaired": 0,
    "tool_api_400_total": 0,
    "tool_loop_max_iterations": 0,
    "tool_calls_repeated": 0,
    "answers_repaired": 0,
    "invalid_rate": 0.3333,
    "repaired_rate": 0.0,
}


@pytest.mark.requirement("U-14")
async def test_the_stats_command_counts_the_output_of_the_run_command_by_backend(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    calls = Turn(Call("weather", {"city": "Oslo"}), Call("weather", {"town": "Oslo"}))
    server = OpenAIServer([calls, Turn(Call("weather", {"city": "Rome"})), Turn(Say("21 C."))])
    async with serve(server):
        env = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.base_url}
        line = ("run", "Weather?", "-m", "openai:gpt", "--tools", str(tmp_path / "tools.py"), "--json")
        ran = await actors(*line, env=env)
    kept = tmp_path / "events.jsonl"
    kept.write_text(f"{ran.out}\n{ran.out}", encoding="utf-8-sig")  # two sessions, one after the other
    once, twice = actors_now("stats", "-", "--json", stdin=ran.out), actors_now("stats", str(kept), "--json")
    assert json.loads(once.out) == {"openai": COUNTED}
    assert json.loads(twice.out)["openai"]["tool_calls_total"] == 6
    assert json.loads(twice.out)["openai"]["invalid_rate"] == 0.3333
    shown = actors_now("stats", str(kept)).out.splitlines()
    assert shown[0].split()[0] == "calls"
    assert shown[1].split() == ["openai", "6", "2", "0", "0", "0", "0", "0", "33.3%", "0.0%"]


def test_the_stats_command_sums_the_figures_of_all_backends() -> None:
    def began(backend: str) -> str:
        return json.dumps({"type": "turn_started", "binding": f"{backend}:m"})

    call = {"id": "1", "name": "look", "arguments": {}, "raw": '{"a": 1,}'}
    said = json.dumps({"type": "message", "message": {"calls": [call]}})
    shown = actors_now("stats", "-", stdin="\n".join([began("a"), said, began("b"), said, said])).out
    rows = [line.split() for line in shown.splitlines()[1:]]
    assert [(row[0], row[1]) for row in rows] == [("a", "1"), ("b", "2"), ("all", "3")]


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("", "- has no events; `actors run --json` prints them, one per line"),
        ('{"type": "text"}\n\nnonsense', "-, line 3: the line is not JSON; see docs/reference/events.md"),
        ("[1]", "-, line 1: the line is not an event; see docs/reference/events.md"),
        (
            '{"type": "message", "message": {"calls": [{"id": "1"}]}}',
            "-, line 1: the event lacks a field; see docs/reference/events.md",
        ),
    ],
)
def test_an_invalid_line_is_reported_by_its_number(given: str, complaint: str) -> None:
    done = actors_now("stats", "-", stdin=given)
    assert (done.code, done.complaint) == (2, complaint)


def test_a_missing_file_is_reported() -> None:
    done = actors_now("stats", "no.jsonl")
    assert (done.code, done.complaint) == (2, "Cannot use no.jsonl: no such file or directory")
