"""Parse the command line. Errors are one line, and the help of each command ends with examples.

Each command is a module of this package with `add_arguments` and `run`. Only the module of the requested command is
imported, so `actors --help` imports nothing but the standard library.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Never, TypeAlias

from actors.cli.screen import print_notice
from actors.errors import nearest

if TYPE_CHECKING:
    Commands: TypeAlias = "argparse._SubParsersAction[Parser]"
    Examples: TypeAlias = tuple[tuple[str, str], ...]
    Run: TypeAlias = Callable[[argparse.Namespace], int]

COMMANDS = {
    "demo": "watch one conversation change providers; needs no key and no network",
    "run": "ask once and print the answer",
    "chat": "chat at the terminal",
    "models": "list available models",
    "doctor": "check the environment and suggest fixes",
    "explain": "explain a rule, a code, an error or a provider's refusal",
    "lint": "check a transcript against the rules of a provider",
    "convert": "convert a transcript to another dialect",
    "preview": "show what `convert` would change, without converting",
    "simulate": "run a strict provider server",
    "stress": "run many sessions at once and report failures and leaks",
    "stats": "summarise recorded events or Prometheus metrics",
    "sessions": "list, copy, back up, check and delete stored sessions",
    "replay": "replay a stored conversation for another provider",
}
"""The summary of each command. The command `NAME` is the module `actors.cli.NAME`."""

_EXIT_CODES = (
    "Exit codes: 0 success, 1 failure, 2 usage, 3 configuration, 4 key, 5 overloaded, 6 unreachable, 7 limit reached, "
    "8 not approved, 9 journal, 124 timeout, 129 hangup, 130 interrupted, 143 terminated. See docs/reference/cli.md."
)


class Parser(argparse.ArgumentParser):
    """An argparse parser with one-line errors that suggest the nearest option, and with examples in its help."""

    examples: "Examples" = ()

    def format_help(self) -> str:
        """Return the help, followed by the examples, which are not wrapped."""
        lines = [f"  {line}\n      {explanation}" for line, explanation in self.examples]
        return "\n".join((super().format_help(), "examples:", *lines, "")) if lines else super().format_help()

    def error(self, message: str) -> Never:
        """Print one line on standard error and exit with 2."""
        print_notice(f"{message} ({self.prog} --help)")
        sys.exit(2)

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        hint = suggestion(str(value), choices) or f"; choose from {', '.join(choices)}"
        name = action.metavar or "/".join(action.option_strings) or action.dest
        raise argparse.ArgumentError(None, f"no {str(name).lower().lstrip('-')} {value!r}{hint}")


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'X'?` for the nearest known word, or an empty string if no word is near."""
    near = nearest(word, known)
    return f"; did you mean {near!r}?" if near else ""


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Parse a command line and return its options. `options.run(options)` runs the command.

    Raises:
        SystemExit: The command line is wrong (code 2), or asks for help or the version (code 0).
    """
    options, unknown = parser_for(words).parse_known_args(words)
    if unknown:
        used: Parser = options.parser
        hint = suggestion(unknown[0].partition("=")[0], used._option_string_actions)
        used.error(f"unknown argument {unknown[0]!r}{hint}")
    return options


def parser_for(words: Sequence[str]) -> Parser:
    """Return the parser for a command line.

    For the command on that line, the parser has all options; for other commands, only their names.
    """
    top = Parser(
        "actors",
        description="Tool-calling LLM conversations that can change provider between turns.",
        epilog=_EXIT_CODES,
        allow_abbrev=False,
    )
    top.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands: Commands = top.add_subparsers(metavar="COMMAND", required=True)
    chosen = next((word for word in words if not word.startswith("-")), None)
    for name, summary in COMMANDS.items():
        if name != chosen:
            commands.add_parser(name, help=summary)
            continue
        module = import_module(f"actors.cli.{name}")
        command = commands.add_parser(
            name, help=summary, description=_as_sentence(summary), allow_abbrev=False
        )
        command.examples = module.EXAMPLES
        if hasattr(module, "run"):
            _add_common_options(command, module.run)
        module.add_arguments(command)
    return top


def add_action(commands: "Commands", name: str, summary: str, run: "Run") -> Parser:
    """Add an action to a command, such as `list` to `actors sessions`, and return the parser of the action."""
    action = commands.add_parser(name, help=summary, description=_as_sentence(summary), allow_abbrev=False)
    _add_common_options(action, run)
    return action


def _add_common_options(command: Parser, run: "Run") -> None:
    """Add the options that every command has, and set `run` as the function of the command."""
    command.set_defaults(parser=command, run=run)
    command.add_argument(
        "--debug", action="store_true", help="show the runtime's log and the tracebacks of errors and tools"
    )
    command.add_argument(
        "--color",
        choices=["auto", "always", "never"],
        default="auto",
        metavar="WHEN",
        help="auto (default: on terminals, unless NO_COLOR is set), always or never",
    )


def _as_sentence(summary: str) -> str:
    return f"{summary[0].upper()}{summary[1:]}."


class _Version(argparse.Action):
    """An option that prints the version and exits. Looking up the version is slow, so it is done only on request."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"actors {version('llm-actors')}")  # `parser.exit(message=...)` would write to standard error
        parser.exit()
