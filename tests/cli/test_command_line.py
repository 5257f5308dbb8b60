"""The command line itself: help that answers at once, one table of exit codes, versions, pipes."""

import re
import shlex
import shutil
import subprocess
import sys
from itertools import takewhile
from pathlib import Path

import pytest

from actors.cli import main
from actors.cli.examples import EXAMPLES, examples
from actors.cli.exits import MEANING, Exit, of_error, of_result
from actors.cli.options import parser
from actors.core.dialects.profiles import ALIASES, PROFILES
from actors.core.stream_events.results import AskStatus, TurnResult
from actors.core.values.identity import Binding
from actors.core.values.progress import Attempt, Cause
from actors.core.values.stream import Usage
from actors.errors import (
    ConfigError,
    MissingKey,
    OverBudget,
    ToolDefinitionError,
    TranscriptError,
    UnknownTarget,
)
from tests.cli.command import actors

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli.md"
COMMANDS = (
    "demo",
    "run",
    "chat",
    "models",
    "doctor",
    "explain",
    "lint",
    "convert",
    "preview",
    "simulate",
    "stress",
    "sessions",
    "replay",
    "fsck",
    "stats",
    "completion",
)

PROBE = """
import sys
from actors.cli import main
try:
    main({arguments!r})
except SystemExit as ended:
    assert ended.code == 0, ended.code
heavy = {{"pydantic", "anyio", "trio", "jsonschema_rs", "structlog", "h11", "asyncio"}}
print("HEAVY", sorted(heavy & sys.modules.keys()))
"""


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)])
def test_help_imports_nothing_that_is_slow(arguments: list[str]) -> None:
    code = PROBE.format(arguments=arguments)
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    assert ended.stdout.splitlines()[-1] == "HEAVY []"


def test_the_version_is_printed_for_programs_that_read_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    out, err = capsys.readouterr()
    assert (ended.value.code, err) == (0, "")
    assert out.startswith("actors ")


def test_each_help_ends_with_examples_that_the_command_line_takes(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(EXAMPLES) == set(COMMANDS)
    for command, lines in EXAMPLES.items():
        with pytest.raises(SystemExit):
            main([command, "--help"])
        assert capsys.readouterr().out.endswith(f"\n\n{examples(command)}\n")
        for line, _ in lines:
            program, *words = shlex.split(line.removeprefix('eval "$(').removesuffix(')"'))
            taken = [*takewhile(lambda word: word not in ("|", "<", ">"), words)]
            assert (program, parser().read(taken).command) == ("actors", command)


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert all(re.search(rf"^    {name}\b", shown, re.MULTILINE) for name in COMMANDS)


@pytest.mark.parametrize("name", ["run", "chat", "explain", "lint", "convert", "preview", "simulate"])
def test_help_names_every_dialect_there_is(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([name, "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    listed = shown.split("Dialects: ")[1].split(". examples:")[0].split(", ")
    others = {there: alias for alias, there in ALIASES.items()}
    assert listed == [f"{one} (or {others[one]})" if one in others else one for one in PROFILES]


def test_the_page_names_every_dialect_there_is() -> None:
    section = PAGE.read_text().split("## Dialects")[1].split("\n\n")[1]
    assert set(re.findall(r"`(\w+)`", section)) == {*PROFILES, *ALIASES}


def test_a_wrong_command_line_is_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["demonstrate"], ["lint"], ["lint", "file"], ["run", "--timeout", "0", "x"]):
        with pytest.raises(SystemExit) as ended:
            parser().read(arguments)
        assert ended.value.code == Exit.USAGE, arguments
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("actors: ")
        assert line.endswith("--help)")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["dmo"], "no command 'dmo'; did you mean 'demo'?"),
        (["demo", "--jsn"], "unknown argument '--jsn'; did you mean '--json'?"),
        (["run", "x", "--modle=m"], "unknown argument '--modle=m'; did you mean '--model'?"),
        (["demo", "--backend", "troi"], "no backend 'troi'; did you mean 'trio'?"),
        (["completion", "tcsh9"], "no shell 'tcsh9'"),
    ],
)
def test_a_slip_of_the_keyboard_is_told_what_was_meant(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == Exit.USAGE
    assert says in capsys.readouterr().err


def test_the_command_alone_shows_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["--help"]):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == Exit.OK
    alone, asked = capsys.readouterr().out.split("usage: actors")[1:]
    assert alone == asked


COMPLETED = """
source /dev/stdin
COMP_WORDS=({words}) COMP_CWORD={at}
_actors
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        (["actors", "de"], ["demo"]),
        (["actors", "chat", "--al"], ["--allow-tool"]),
        (["actors", "doctor", "--n"], ["--network"]),
        (["actors", "lint", "--f"], ["--for", "--from"]),
        (["actors", "convert", "--to", "mi"], ["mistral", "minimax"]),
    ],
)
@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_completes_commands_options_and_dialects(
    words: list[str], completions: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    program = COMPLETED.format(words=" ".join(words), at=len(words) - 1)
    done = subprocess.run(
        ["bash", "-c", program], input=script, capture_output=True, text=True, check=True, timeout=60
    )
    assert sorted(done.stdout.split()) == sorted(completions)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_are_told_every_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(name in script for name in COMMANDS)


@pytest.mark.parametrize("text", ["0", "-1", "abc", "nan", "1e9", ""])
def test_a_timeout_that_is_no_time_is_told_what_it_takes(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parser().read(["run", "x", f"--timeout={text}"])
    assert f"{text} is not a time; give seconds above 0" in capsys.readouterr().err


def test_every_exit_code_is_documented_as_it_is_in_code() -> None:
    rows = re.findall(r"^\| (\d+) \| (.+?) \|$", PAGE.read_text(), re.MULTILINE)
    assert {int(code): text for code, text in rows} == {int(code): text for code, text in MEANING.items()}
    assert set(MEANING) == set(Exit)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_documented(name: str) -> None:
    page = PAGE.read_text()
    with pytest.raises(SystemExit):
        parser().read([name, "--help"])
    section = (
        page.split(f"## actors {name}")[1].split("\n## ")[0]
        + page.split("## Every command")[1].split("\n## ")[0]
    )
    for option in re.findall(r"--[a-z-]+", parser_help(name)):
        assert f"`{option}" in section, option


def parser_help(name: str) -> str:
    """Return the usage line of one command."""
    actions = [action for action in parser()._actions if action.choices]  # argparse keeps them nowhere public
    choices = actions[0].choices
    assert isinstance(choices, dict)
    usage: str = choices[name].format_usage()
    return usage


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (MissingKey("k"), 4),
        (UnknownTarget("t"), 3),
        (ToolDefinitionError("t"), 3),
        (ConfigError("c"), 3),
        (TranscriptError("t"), 2),
        (FileNotFoundError("f"), 2),
        (OverBudget("b"), 7),
        (ZeroDivisionError(), 1),
    ],
)
def test_each_error_has_its_exit_code(error: Exception, code: int) -> None:
    assert of_error(error) == code


@pytest.mark.parametrize(
    ("cause", "code"),
    [
        (None, 1),
        (Cause("transcript", 400), 1),
        (Cause("refusal"), 1),
        (Cause("overflow", 400), 1),
        (Cause("config", 404), 3),
        (Cause("config", 401), 4),
        (Cause("config", 403), 4),
        (Cause("rate_limit", 429), 5),
        (Cause("quota", 429), 5),
        (Cause("transient", 529), 5),
        (Cause("transient"), 6),
        (Cause("limit"), 7),
        (Cause("time"), 124),
    ],
)
def test_each_failure_of_a_provider_has_its_exit_code(cause: Cause | None, code: int) -> None:
    binding = Binding("b", "openai_chat")
    failed = TurnResult("", "failed", binding, (Attempt(binding, "failed", "why", cause),), 1, Usage())
    assert of_result(failed) == code


@pytest.mark.parametrize(("status", "code"), [("complete", 0), ("cancelled", 130), ("awaiting", 8)])
def test_each_way_a_turn_ends_has_its_exit_code(status: AskStatus, code: int) -> None:
    binding = Binding("b", "openai_chat")
    assert of_result(TurnResult("", status, binding, (), 1, Usage())) == code


def test_a_backend_that_is_not_installed_is_said_in_one_line() -> None:
    code = "import sys; sys.modules['trio'] = None; from actors.cli import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, "demo", "--backend", "trio"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stdout) == (Exit.CONFIG, "")
    assert done.stderr.startswith("actors: trio is not installed; pip install")


NO_READER = "import os; reader, writer = os.pipe(); os.close(reader); os.dup2(writer, 1); os.close(writer)"
"""Run before a program, so that nobody reads its output any more."""


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # no server is served here
async def test_a_reader_that_stops_reading_is_no_error() -> None:
    done = await actors("demo", before=NO_READER)
    assert (done.code, done.err) == (0, "")
