"""Standard streams and signals of a command: byte order marks, closed descriptors, pipes, interrupts."""

import codecs
import json
import os
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import SECONDS, actors_now, command, environ, fork_actors
from tests.commands.at_scale import extent

TRANSCRIPT = [{"role": "user", "content": "Grüße"}]
ASSUMED = "actors: assumed: max_tokens 8192\nactors: assumed: model 'model'\n"


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [(codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")],
)
def test_a_transcript_may_begin_with_a_byte_order_mark(mark: bytes, encoding: str, tmp_path: Path) -> None:
    file = tmp_path / "transcript.json"
    file.write_bytes(mark + json.dumps(TRANSCRIPT, ensure_ascii=False).encode(encoding))
    assert actors_now("lint", str(file), "--for", "openai").code == 0
    done = actors_now("convert", str(file), "--from", "openai", "--to", "anthropic")
    assert (done.code, "Grüße" in done.out) == (0, True)


def test_an_actors_toml_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "actors.toml"
    file.write_bytes(codecs.BOM_UTF8 + b'[backends.a]\nkind = "openai"\nmodel = "m"\n')
    done = actors_now("run", "x", "--config", str(file), "-m", "b")
    assert "No backend 'b'" in done.complaint  # the file was read


CLOSED = (">&-", "2>&-", "<&- >&- 2>&-"), (">&-", "2>&-", "<&-", ">&- 2>&-", "<&- >&- 2>&-")


@pytest.mark.parametrize("closed", extent(*CLOSED))
def test_closed_standard_streams_are_not_errors(closed: str, tmp_path: Path) -> None:
    file = tmp_path / "transcript.json"
    file.write_text(json.dumps(TRANSCRIPT))
    done = _shell(f'"$@" {closed}', "convert", str(file), "--from", "openai", "--to", "anthropic")
    assert (done.returncode, done.stderr) == (0, "" if "2>&-" in closed else ASSUMED)


def test_a_reader_that_closes_the_pipe_early_is_not_an_error(tmp_path: Path) -> None:
    file = tmp_path / "transcript.json"
    file.write_text(json.dumps(TRANSCRIPT * 5000))  # more than a pipe holds
    done = _shell('"$@" | head -c 10', "convert", str(file), "--from", "openai", "--to", "anthropic")
    assert (len(done.stdout), done.stderr) == (10, ASSUMED)


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_reader_that_closes_the_pipe_during_an_answer_is_not_an_error(
    options: list[str], tmp_path: Path
) -> None:
    words, out, err = (tmp_path / name for name in ("words", "out", "err"))
    words.write_text("word " * 100_000)  # more than a pipe holds
    err.touch()
    os.mkfifo(out)
    reader = os.open(out, os.O_RDONLY | os.O_NONBLOCK)
    process = fork_actors([words, out, err], ["run", "--offline", *options], environ())
    assert select.select([reader], [], [], SECONDS)[0]
    assert os.read(reader, 10)
    os.close(reader)
    assert (process.wait(), err.read_text()) == (0, "")


CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@pytest.mark.parametrize(
    "line",
    [
        ["run", "--offline"],
        ["run", "--offline", "--json"],
        ["run", "--offline", "--debug", "please roll"],
        ["chat", "--offline"],
        ["doctor"],
        ["models"],
        ["explain", "overflow"],
        ["stress", "--sessions", "2", "--turns", "1"],
    ],
)
def test_pipes_receive_no_control_characters(line: list[str]) -> None:
    done = actors_now(
        *line, env={"TERM": "xterm-256color"}, stdin="red \x1b[31m bell \x07\n/help\n/history\n"
    )
    assert done.code == 0
    assert done.out.strip()
    assert CONTROLS.findall(done.out + done.err) == []


def test_the_option_color_always_applies_to_pipes_too() -> None:
    line = ("stress", "--sessions", "1", "--turns", "1")
    assert "\x1b[1m" in actors_now(*line, "--color", "always", env={"NO_COLOR": "1"}).out
    assert "\x1b" not in actors_now(*line, "--color", "never").out


def test_a_full_disk_is_reported_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "transcript.json"
    file.write_text(json.dumps(TRANSCRIPT))
    done = _shell('"$@" > /dev/full', "convert", str(file), "--from", "openai", "--to", "anthropic")
    assert (done.returncode, done.stderr) == (2, f"{ASSUMED}actors: No space left on device\n")


def _shell(script: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    line = ["sh", "-c", script, "sh", *command(*arguments)]
    return subprocess.run(
        line,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=environ(),
        check=False,
        stdin=subprocess.DEVNULL,
    )


INTERRUPTED = """
import os, signal, sys
from actors.cli import main
at, seen = int(sys.argv.pop(1)), 0
def count(frame, event, arg):
    global seen
    seen += 1
    if seen >= at and event == "call":
        sys.setprofile(None)
        os.kill(os.getpid(), signal.SIGINT)
def unraisable(told):
    if told.exc_type is KeyboardInterrupt:
        sys.setprofile(count)
    else:
        sys.__unraisablehook__(told)
sys.unraisablehook = unraisable
sys.setprofile(count)
code = main()
sys.setprofile(None)
sys.exit(code)
"""
"""Runs a command and interrupts it at the first call after N events: the same place each time.

In a finalizer, Python swallows the interrupt and the user presses the keys again, as this script does.
"""


@pytest.mark.parametrize("at", [5, 100, 10_000, 100_000])
def test_an_interrupt_at_any_moment_prints_one_line(at: int, tmp_path: Path) -> None:
    file = tmp_path / "transcript.json"
    file.write_text(json.dumps(TRANSCRIPT))
    line = [sys.executable, "-c", INTERRUPTED, str(at), "lint", str(file), "--for", "openai"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=SECONDS, env=environ(), check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "actors: interrupted\n")
