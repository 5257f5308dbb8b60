"""The command line itself: fast help, complete documentation, exit codes, completion, pipes."""

import ast
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from itertools import takewhile
from pathlib import Path

import pytest

from actors.cli import main
from actors.cli.exits import MEANING, Exit, exit_for_error, exit_for_result
from actors.cli.parser import COMMANDS, Parser, parse, parser_for
from actors.core.dialects.profiles import ALIASES, PROFILES
from actors.core.stream_events.ask_events import AskResult, AskStatus
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

PROBE = """
import sys
from actors.cli import main
try:
    main({arguments!r})
except SystemExit as ended:
    assert ended.code == 0, ended.code
heavy = {{"pydantic", "anyio", "trio", "jsonschema_rs", "structlog", "h11", "asyncio", "msgspec"}}
commands = [f"actors.cli.{{name}}" for name in {commands!r}]
print("IMPORTED", sorted({{*heavy, *commands}} & sys.modules.keys()))
"""


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_top_level_help_imports_no_command_and_no_dependency(arguments: list[str]) -> None:
    code = PROBE.format(arguments=arguments, commands=tuple(COMMANDS))
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    assert ended.stdout.splitlines()[-1] == "IMPORTED []"


def leaves(name: str) -> list[tuple[str, Parser]]:
    """Return the parsers of a command: one, or one for each of its actions, with their names."""
    (action,) = (each for each in parser_for([name])._actions if each.choices)
    command = dict(action.choices or {})[name]
    nested = [each.choices for each in command._actions if isinstance(each.choices, dict)]
    return [*nested[0].items()] if nested else [(name, command)]


def parsers() -> Iterator[tuple[str, Parser]]:
    """Yield every parser that runs a command, with the section of the page that documents it."""
    for name in COMMANDS:
        for _, leaf in leaves(name):
            yield name, leaf


def section(name: str) -> str:
    """Return the page's section about a command, together with the section about all commands."""
    page = PAGE.read_text()
    titles = (f"## actors {name}\n", "## Every command\n")
    return "".join(page.split(title)[1].split("\n## ")[0] for title in titles)


def test_each_command_module_defines_its_parser_and_its_run_function() -> None:
    for name in COMMANDS:
        module = import_module(f"actors.cli.{name}")
        assert callable(module.add_arguments), name
        assert all(callable(leaf.get_default("run")) for _, leaf in leaves(name)), name


def test_every_command_and_every_action_is_covered_by_a_test() -> None:
    """A test counts as running a command if it has a list, a tuple or a call that starts with the command's name."""
    run: set[tuple[str, ...]] = set()
    texts = (path.read_text() for path in Path(__file__).parents[1].rglob("test_*.py"))
    for text in texts:
        runs_commands = "tests.cli.command import" in text or "actors.cli import main" in text
        for node in ast.walk(ast.parse(text if runs_commands else "")):
            words = node.args if isinstance(node, ast.Call) else getattr(node, "elts", [])
            constants = [word.value for word in words if isinstance(word, ast.Constant)]
            strings = [value for value in constants if isinstance(value, str)]
            run.update({tuple(strings[:1]), tuple(strings[:2]), ("sessions", *strings[:1])})
    for name in COMMANDS:
        for action, _ in leaves(name):
            assert ((name,) if action == name else (name, action)) in run, (name, action)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_every_option_is_documented(name: str) -> None:
    text = section(name)
    for action, leaf in leaves(name):
        assert action == name or f"`{action}" in text, f"actors {name} {action}"
        for option in re.findall(r"--[a-z-]+", leaf.format_usage()):
            assert f"`{option}" in text, f"actors {name}: {option}"


@pytest.mark.parametrize("name", COMMANDS)
def test_each_help_text_ends_with_examples_that_the_command_line_accepts(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([name, "--help"])
    _, listed = capsys.readouterr().out.split("\nexamples:\n")
    lines = re.findall(r"^  (\S.+)\n      \S", listed, re.MULTILINE)
    assert lines == [line for line, _ in import_module(f"actors.cli.{name}").EXAMPLES] != []
    for line in lines:
        words = shlex.split(line.rpartition("| ")[2] if line.startswith("curl") else line)
        accepted = [*takewhile(lambda word: word not in ("|", "<", ">"), words)]
        assert accepted[:2] == ["actors", name]
        assert callable(parse(accepted[1:]).run)


def test_the_version_is_printed_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    out, err = capsys.readouterr()
    assert (ended.value.code, err) == (0, "")
    assert out.startswith("actors ")


def test_the_help_text_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert all(re.search(rf"^    {name}\b", shown, re.MULTILINE) for name in COMMANDS)


@pytest.mark.parametrize(
    "name", ["run", "chat", "explain", "lint", "convert", "preview", "simulate", "replay"]
)
def test_the_help_text_names_every_dialect(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([name, "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    listed = shown.split("Dialects: ")[1].split(". examples:")[0].split(", ")
    others = {there: alias for alias, there in ALIASES.items()}
    assert listed == [f"{one} (or {others[one]})" if one in others else one for one in PROFILES]


def test_the_command_line_page_names_every_dialect() -> None:
    section = PAGE.read_text().split("## Dialects")[1].split("\n\n")[1]
    assert set(re.findall(r"`(\w+)`", section)) == {*PROFILES, *ALIASES}


def test_an_invalid_command_line_gives_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["demonstrate"], ["lint"], ["lint", "file"], ["run", "--timeout", "0", "x"]):
        with pytest.raises(SystemExit) as ended:
            parse(arguments)
        assert ended.value.code == Exit.USAGE, arguments
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("actors: ")
        assert line.endswith("--help)")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["dmo"], "no command 'dmo'; did you mean 'demo'?"),
        (["models", "--confg"], "unknown argument '--confg'; did you mean '--config'?"),
        (["run", "x", "--modle=m"], "unknown argument '--modle=m'; did you mean '--model'?"),
        (["demo", "--backend", "troi"], "no backend 'troi'; did you mean 'trio'?"),
        (["sessions", "lsit"], "no action 'lsit'; did you mean 'list'?"),
        (["sessions", "list", "--limt", "3"], "unknown argument '--limt'; did you mean '--limit'?"),
    ],
)
def test_an_error_suggests_the_nearest_word(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == Exit.USAGE
    assert says in capsys.readouterr().err


def test_actors_without_a_command_shows_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["--help"]):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == Exit.OK
    alone, asked = capsys.readouterr().out.split("usage: actors")[1:]
    assert alone == asked


@pytest.mark.parametrize(
    ("line", "completions"),
    [
        ("actors de", {"demo "}),
        ("actors chat --al", {"--allow-tool "}),
        ("actors doctor --n", {"--network "}),
        ("actors lint --f", {"--for ", "--from "}),
        ("actors convert --to mi", {"mistral", "minimax"}),
        ("actors sessions fs", {"fsck "}),
        ("actors sessions delete --o", {"--older-than "}),
    ],
)
def test_shell_completion_covers_commands_and_options_and_dialects(
    line: str, completions: set[str], tmp_path: Path
) -> None:
    pytest.importorskip("argcomplete")
    out = tmp_path / "completions"
    asked = {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE_IFS": "\n"}
    env = {**os.environ, **asked, "_ARGCOMPLETE_STDOUT_FILENAME": str(out)}
    subprocess.run([sys.executable, "-m", "actors"], env=env, check=True, timeout=300)
    assert {word.strip() for word in out.read_text().splitlines()} == {word.strip() for word in completions}


@pytest.mark.parametrize("text", ["0", "-1", "abc", "nan", "1e9", ""])
def test_a_timeout_must_be_a_number_of_seconds(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["run", "x", f"--timeout={text}"])
    assert f"expected a number of seconds above 0, not {text!r}" in capsys.readouterr().err


def test_every_exit_code_is_documented_with_its_meaning() -> None:
    rows = re.findall(r"^\| (\d+) \| (.+?) \|$", PAGE.read_text(), re.MULTILINE)
    assert {int(code): text for code, text in rows} == {int(code): text for code, text in MEANING.items()}
    assert set(MEANING) == set(Exit)


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
    assert exit_for_error(error) == code


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
    failed = AskResult("", "failed", binding, (Attempt(binding, "failed", "why", cause),), 1, Usage())
    assert exit_for_result(failed) == code


@pytest.mark.parametrize(("status", "code"), [("complete", 0), ("cancelled", 130), ("awaiting", 8)])
def test_each_ask_status_has_its_exit_code(status: AskStatus, code: int) -> None:
    binding = Binding("b", "openai_chat")
    assert exit_for_result(AskResult("", status, binding, (), 1, Usage())) == code


def test_a_missing_backend_is_reported_in_one_line() -> None:
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
"""Code that runs before a program and closes the reader of its output."""


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # this test needs no server
async def test_output_to_a_closed_pipe_is_not_an_error() -> None:
    done = await actors("demo", before=NO_READER)
    assert (done.code, done.err) == (0, "")
