"""The command line: `actors demo`, `run`, `lint`, `convert`, `preview`, `simulate`.

Standard output is the answer, standard error everything else. An error is one line with the way out; `--debug`
shows the traceback. This module imports only the standard library, so that `--help` answers at once; what a
command needs is imported when it is run.
"""

import argparse
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeAlias

from actors.cli.screen import complain

if TYPE_CHECKING:
    Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

__all__ = ["main"]

DIALECTS = (
    "openai_chat (or openai)",
    "anthropic",
    "openai_responses (or responses)",
    "gemini",
    "vertex (or vertex_gemini)",
    "gemini_2",
    "bedrock (or converse)",
    "mistral",
    "kimi",
    "deepseek",
    "openrouter",
    "xai",
    "qwen",
    "glm",
    "minimax",
    "groq",
    "vllm",
    "llama_cpp",
    "ollama",
    "openai_compatible",
)
"""As `actors.core.profiles` has them, which help must not import."""

_DIALECTS = f"Dialects: {', '.join(DIALECTS)}."


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line, that of the process by default, and return the exit code.

    Raises:
        SystemExit: The command line is wrong (2), or asks for help (0).
    """
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="backslashreplace")
    options = parser().parse_args(argv)
    if getattr(options, "backend", "") == "trio" and find_spec("trio") is None:
        complain("trio is not installed; pip install 'actors[trio]', or leave --backend out")
        return 3
    try:
        code = import_module(f"actors.cli.{options.module}").main(options)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read our output has seen enough
        sys.stdout = None  # nothing is left to flush at exit
        return 0
    except BaseException as error:
        if options.debug or isinstance(error, SystemExit | GeneratorExit):
            raise
        return _failed(error)
    return int(code)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    top = argparse.ArgumentParser(
        "actors",
        description="Tool-calling LLM conversations that change provider between turns and cannot break.",
        epilog="Exit codes: 0 done, 1 failed, 2 usage, 3 configuration, 4 key, 5 overloaded, 6 unreachable, "
        "124 timeout, 130 interrupted. See docs/reference/cli.md.",
    )
    top.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    _demo(commands)
    _run(commands)
    _lint(commands)
    _convert(commands)
    _preview(commands)
    _simulate(commands)
    return top


def _demo(commands: "Commands") -> None:
    demo = _command(commands, "demo", "demo", "watch one conversation change provider; no key, no network")
    demo.add_argument("--json", action="store_true", help="print one JSON object a line")
    _backend(demo)


def _run(commands: "Commands") -> None:
    run = _command(commands, "run", "run", "ask once and print the answer", _DIALECTS)
    run.add_argument("prompt", nargs="*", help="what to say; `-` or nothing reads standard input")
    run.add_argument(
        "-m", "--model", metavar="TARGET", help="provider:model, or a backend or pool of --config"
    )
    run.add_argument("--config", metavar="FILE", help="an actors.toml; without it, the environment alone")
    run.add_argument("--base-url", metavar="URL", help="any compatible server; -m is then a model name there")
    run.add_argument(
        "--dialect", metavar="DIALECT", help="with --base-url: what it speaks; openai by default"
    )
    run.add_argument("--auth", metavar="VARIABLE", help="with --base-url: environment variable with the key")
    run.add_argument("--tools", metavar="FILE", help="a Python file; its @tool functions are offered")
    run.add_argument("--approve-all", action="store_true", help="run tools that want an approval, unasked")
    run.add_argument("--system", metavar="TEXT", help="system prompt")
    run.add_argument("--timeout", type=_seconds, metavar="SECONDS", help="cancel the turn after this long")
    run.add_argument("--json", action="store_true", help="print each event as one line of JSON")
    _backend(run)


def _lint(commands: "Commands") -> None:
    lint = _command(
        commands, "lint", "transcripts", "say what a provider would refuse in a transcript", _DIALECTS
    )
    lint.add_argument("file", help="a request body or a list of messages, as JSON; `-` is standard input")
    lint.add_argument("--for", dest="to", required=True, metavar="DIALECT", help="whose rules are asked")
    lint.add_argument(
        "--from",
        dest="source",
        metavar="DIALECT",
        help="the file is in this dialect: judge what would be sent of it to the other",
    )


def _convert(commands: "Commands") -> None:
    convert = _command(
        commands, "convert", "transcripts", "make a valid request body of any transcript", _DIALECTS
    )
    convert.add_argument("file", help="a request body or a list of messages, as JSON; `-` is standard input")
    convert.add_argument(
        "--from", dest="source", required=True, metavar="DIALECT", help="what the file is in"
    )
    convert.add_argument("--to", required=True, metavar="DIALECT", help="what to write")
    convert.add_argument("--model", metavar="NAME", help="model name in the body; the file's own by default")


def _preview(commands: "Commands") -> None:
    preview = _command(
        commands,
        "preview",
        "transcripts",
        "show what another provider would be sent, and what not",
        _DIALECTS,
    )
    preview.add_argument("file", help="a request body or a list of messages, as JSON; `-` is standard input")
    preview.add_argument(
        "--from", dest="source", required=True, metavar="DIALECT", help="what the file is in"
    )
    preview.add_argument("--to", required=True, metavar="DIALECT", help="what would be written")
    preview.add_argument("--json", action="store_true", help="print one JSON object, the body in it")


def _simulate(commands: "Commands") -> None:
    simulate = _command(
        commands, "simulate", "simulate", "run a server that refuses what a provider refuses", _DIALECTS
    )
    simulate.add_argument("--dialect", required=True, metavar="DIALECT", help="what it speaks")
    simulate.add_argument(
        "--port", type=_port, default=0, help="on 127.0.0.1; 0, the default, takes a free one"
    )
    simulate.add_argument(
        "--mode", choices=["strict", "hosted"], default="strict", help="hosted takes what the host does"
    )
    simulate.add_argument(
        "--requests", type=_count, metavar="N", help="stop after so many; 1 if any was refused"
    )
    _backend(simulate)


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text} is no port; give a number from 0 to 65535")
    return int(text)


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 10**9:
        raise argparse.ArgumentTypeError(f"{text} is no count; give a whole number from 1")
    return int(text)


def _command(
    commands: "Commands", name: str, module: str, summary: str, more: str = ""
) -> argparse.ArgumentParser:
    about = f"{summary[0].upper()}{summary[1:]}."
    added = commands.add_parser(name, help=summary, description=about, epilog=more)
    added.add_argument("--debug", action="store_true", help="show the traceback of an error")
    added.set_defaults(command=name, module=module)
    return added


def _backend(command: argparse.ArgumentParser) -> None:
    command.add_argument("--backend", choices=["asyncio", "trio"], default="asyncio", help="the event loop")


def _seconds(text: str) -> float:
    with suppress(ValueError):
        if 0 < (seconds := float(text)) < 1e9:
            return seconds
    raise argparse.ArgumentTypeError(f"{text} is no time; give seconds above 0")


class _Version(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        parser.exit(0, f"actors {version('actors')}\n")


def _failed(error: BaseException) -> int:
    """Say in one line what ended the command, and return its exit code."""
    from actors.cli.exits import Exit, of_error

    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, KeyboardInterrupt):
        complain("interrupted")
        return Exit.INTERRUPTED
    from actors.errors import ActorsError

    if not isinstance(error, ActorsError | OSError):
        complain(f"unexpected {type(error).__name__}: {error}; --debug shows where")
    else:
        complain(_words(error))
    return of_error(error)


def _words(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"Cannot read {error.filename}: {error.strerror.lower()}" if error.filename else error.strerror
    return str(error)
