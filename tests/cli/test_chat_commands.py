"""The commands of a chat that reads a pipe."""

from pathlib import Path

import pytest

from actors.cli.chat.commands import COMMANDS
from actors.testing import Call, OpenAIServer, Say, Turn, serve
from tests.cli.command import Done, actors, actors_now


def chat_output(*lines: str, options: tuple[str, ...] = ()) -> Done:
    """Run a chat with a stand-in on these lines."""
    done = actors_now("chat", "--offline", *options, stdin="\n".join((*lines, "")))
    assert (done.code, done.err) == (0, "")
    return done


def test_the_help_command_of_a_chat_lists_every_chat_command_with_its_summary() -> None:
    lines = chat_output("/help").out.splitlines()
    for name, command in COMMANDS.items():
        (line,) = [line for line in lines if line.startswith(f"{name} ")]
        assert line.split() == f"{name} {command.argument} {command.summary}".split()


@pytest.mark.parametrize("line", ["/history", "/ledger"])
def test_an_empty_table_is_printed_as_none_yet(line: str) -> None:
    assert "  none yet" in chat_output(line).out.splitlines()


def test_the_history_command_lists_messages_and_the_ledger_command_lists_tool_calls() -> None:
    lines = chat_output("please roll", "/history", "/ledger").out.splitlines()
    at = lines.index("turn  role       content")
    assert lines[at + 1 : at + 3] == ["      user       please roll", "1     assistant  (calls roll)"]
    assert any(line.startswith("1     assistant  The result is: ") for line in lines)
    assert lines[-1].split() == ["hist_tool_1", "roll", "complete"]


def test_a_preview_shows_the_next_request_to_another_provider() -> None:
    before = chat_output("/preview claude").out
    after = chat_output("please roll", "/preview claude", "/preview").out
    assert "claude" in before
    assert "bytes, 0 of them unchanged" in before
    assert after.count("synthetic results: 0; dropped: nothing") == 2


def test_the_compact_command_reports_the_replaced_messages() -> None:
    nothing = "  0 messages replaced by a summary, 0 results trimmed; nothing is left to shorten"
    assert nothing in chat_output("/compact").out.splitlines()
    lines = chat_output("one", "two", "three", "/compact", "/history").out.splitlines()
    assert "  2 messages replaced by a summary, 0 results trimmed" in lines
    history = lines[lines.index("turn  role       content") + 1 :]
    assert history[0].startswith("      user       [Summary of the conversation so far.]")
    assert len(history) == 5


def test_the_rewind_command_removes_a_turn_from_the_history() -> None:
    lines = chat_output("one", "two", "/rewind 1", "/history", "/rewind", "/rewind 2").out.splitlines()
    assert "  2 messages removed from the history; the ledger keeps their calls" in lines
    at = lines.index("turn  role       content")
    assert lines[at + 1 : at + 3] == ["      user       one", "1     assistant  You said: one"]
    assert any(line.startswith("  /rewind takes the number of a turn") for line in lines)
    assert any("cannot be rewound to turn 2" in line for line in lines)


@pytest.mark.parametrize("line", ["/preview nobody", "/switch nobody"])
def test_switching_to_an_unknown_target_prints_one_line_and_changes_nothing(line: str) -> None:
    lines = chat_output(line, "hello", "/backends").out.splitlines()
    assert "No backend 'nobody'" in lines[1]
    assert lines[2] == "You said: hello"
    assert ["gpt", "stand-in-gpt", "(openai_chat)", "current"] in [line.split() for line in lines]


def test_the_switch_command_without_a_target_lists_the_targets() -> None:
    assert "  /switch takes a target: gpt, claude" in chat_output("/switch").out.splitlines()


def test_an_unknown_command_is_not_sent_to_the_model() -> None:
    lines = chat_output("/swich claude", "/history").out.splitlines()
    assert lines[1:] == ["  no command '/swich'; /help lists the commands", "  none yet"]


CONFIG = """
[backends.a]
kind = "openai"
model = "m"
base_url = "{url}"
[backends.b]
kind = "openai"
model = "other"
base_url = "{url}"
[prices.m]
input = 1.0
output = 2.0
"""


@pytest.mark.anyio
async def test_the_displayed_cost_is_unknown_once_a_price_is_missing(tmp_path: Path) -> None:
    server = OpenAIServer([Turn(Say("one"), usage=(1000, 500)), Turn(Say("two"), usage=(10, 10))])
    async with serve(server):
        (tmp_path / "actors.toml").write_text(CONFIG.format(url=server.base_url))
        lines = ("/cost", "x", "/cost", "/switch b", "y", "/cost", "")
        line = ("chat", "--config", str(tmp_path / "actors.toml"), "-m", "a")
        done = await actors(*line, env={"OPENAI_API_KEY": "k"}, stdin="\n".join(lines))
    assert [line for line in done.out.splitlines() if " turns, " in line] == [
        "  0 turns, 0 tokens in, 0 out, cost 0",
        "  1 turns, 1,000 tokens in, 500 out, cost 0.002",
        "  2 turns, 1,010 tokens in, 510 out, unknown cost: a price is missing in [prices]",
    ]


@pytest.mark.anyio
async def test_chat_limits_apply_to_each_turn_and_the_budget_applies_to_the_session(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(LOOK)
    asks_on = Turn(Call("look", {"n": 1}), usage=(1000, 500))
    server = OpenAIServer([asks_on, Turn(Say("So far."), usage=(0, 0)), asks_on, asks_on])
    async with serve(server):
        (tmp_path / "actors.toml").write_text(CONFIG.format(url=server.base_url))
        line = ("chat", "--config", str(tmp_path / "actors.toml"), "-m", "a", "--max-rounds", "2")
        bounds = ("--max-cost", "0.003", "--tools", str(tmp_path / "tools.py"))
        stdin = "\n".join(("x", "21", "y", "22", "z", ""))
        done = await actors(*line, *bounds, env={"OPENAI_API_KEY": "k"}, stdin=stdin)
    assert "So far." in done.out.splitlines()
    assert "  stopped: the session's budget of 0.003 is used up (0.004 was paid)" in done.out.splitlines()
    assert "accepts no ask: the session's budget of 0.003 is used up" in done.out.splitlines()[-1]
    assert len(server.requests) == 3


@pytest.mark.anyio
async def test_a_preview_reports_a_compaction_and_an_exhausted_budget(
    tmp_path: Path,
) -> None:
    server = OpenAIServer([Turn(Say("one"), usage=(1000, 500))])
    pool = '[pools.p]\nmembers = ["a"]\nbudget = { tokens = 1200 }\n'
    async with serve(server):
        config = CONFIG.format(url=server.base_url).replace('model = "m"', 'model = "m"\ncontext = 1200')
        (tmp_path / "actors.toml").write_text(config + pool)
        line = ("chat", "--config", str(tmp_path / "actors.toml"), "-m", "p")
        long = "word " * 160  # a shorter summary would not be worth its request
        done = await actors(*line, env={"OPENAI_API_KEY": "k"}, stdin=f"/preview\n{long}\n/preview\ny\n")
    lines = done.out.splitlines()
    whose = "the budget of pool 'p' of 1200 tokens is used up (1500 were used)"
    assert lines.count("  the next ask compacts the history first") == 1
    assert lines.count(f"  no request is sent: {whose}") == 1
    assert f"accepts no ask: {whose}" in lines[-1]
    assert len(server.requests) == 1


LOOK = """
from actors import Tool
look = Tool.external("look", "Look it up.", {"type": "object"}, read_only=True)
"""
