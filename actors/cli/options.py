"""What the command line takes: commands, options, and one line for what it does not.

Only the standard library is imported here, so that `--help` answers at once.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Never, TypeAlias

from actors.cli.examples import examples
from actors.cli.screen import complain
from actors.cli.values import STATES, chance, count, entry, money, port, seconds
from actors.errors import nearest

if TYPE_CHECKING:
    Commands: TypeAlias = "argparse._SubParsersAction[Parser]"

DIALECTS = (
    "openai_chat (or openai)",
    "azure",
    "anthropic",
    "vertex_anthropic",
    "bedrock_anthropic",
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
    "open_models",
    "llama_cpp",
    "ollama",
    "openai_compatible",
)
"""As `actors.core.dialects.profiles` has them, which help must not import."""

_DIALECTS = f"Dialects: {', '.join(DIALECTS)}."


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, and what was probably meant. Its help ends with examples."""

    examples = ""

    def format_help(self) -> str:
        """Return the help, and the examples below it as they are written."""
        text = super().format_help()
        return f"{text}\n{self.examples}\n" if self.examples else text

    def error(self, message: str) -> Never:
        """Complain and exit with 2."""
        complain(f"{message} ({self.prog} --help)")
        sys.exit(2)

    def read(self, words: Sequence[str]) -> argparse.Namespace:
        """Return the options. A word that no command takes is named, with the nearest one it does take."""
        found, unknown = self.parse_known_args(words)
        if unknown:
            known = self._options_of(getattr(found, "command", ""))
            self.error(f"unknown argument {unknown[0]!r}{meant(unknown[0].partition('=')[0], known)}")
        return found

    def _options_of(self, command: str) -> list[str]:
        """Return the options of a command, as they are written."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction) and command in action.choices:
                return [*action.choices[command]._option_string_actions]
        return [*self._option_string_actions]

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        likely = meant(str(value), choices) or f"; give one of {', '.join(choices)}"
        what = action.metavar or "/".join(action.option_strings) or action.dest
        raise argparse.ArgumentError(None, f"no {str(what).lower().lstrip('-')} {value!r}{likely}")


def meant(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'X'?` for the nearest of the known words; nothing if none is near."""
    near = nearest(word, known)
    return f"; did you mean {near!r}?" if near else ""


def parser() -> Parser:
    """Return the parser of the whole command line."""
    top = Parser(
        "actors",
        description="Tool-calling LLM conversations that change provider between turns and cannot break.",
        epilog="Exit codes: 0 done, 1 failed, 2 usage, 3 configuration, 4 key, 5 overloaded, 6 unreachable, "
        "7 limit reached, 8 not approved, 124 timeout, 129 hangup, 130 interrupted, 143 terminated. "
        "See docs/reference/cli.md.",
        allow_abbrev=False,
    )
    top.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    for add in (
        _demo,
        _run,
        _chat,
        _models,
        _doctor,
        _explain,
        _lint,
        _convert,
        _preview,
        _simulate,
        _stress,
        _stats,
        _sessions,
        _replay,
        _fsck,
        _completion,
    ):
        add(commands)
    return top


def _demo(commands: "Commands") -> None:
    demo = _command(commands, "demo", "demo", "watch one conversation change provider; no key, no network")
    demo.add_argument("--all", action="store_true", help="go on through every dialect there is")
    demo.add_argument("--json", action="store_true", help="print one JSON object a line")
    _backend(demo)


def _run(commands: "Commands") -> None:
    run = _command(commands, "run", "run", "ask once and print the answer", _DIALECTS)
    run.add_argument("prompt", nargs="*", help="what to say; a pipe or a file is read behind it, as with `-`")
    _conversation(run)
    run.add_argument("--json", action="store_true", help="print each event as one line of JSON")
    _backend(run)


def _chat(commands: "Commands") -> None:
    chat = _command(commands, "chat", "chat", "talk to a session at the terminal", _DIALECTS)
    _conversation(chat)
    chat.add_argument("--plain", action="store_true", help="whole lines only: no redrawing, no colour")
    chat.add_argument("--hide-thinking", action="store_true", help="do not show what the model thinks")
    _backend(chat)


def _models(commands: "Commands") -> None:
    models = _command(commands, "models", "models", "list whom one can ask")
    _file(models)


def _doctor(commands: "Commands") -> None:
    doctor = _command(commands, "doctor", "doctor", "say what is here, what is missing, and the way out")
    _file(doctor)
    doctor.add_argument("--network", action="store_true", help="see whether the backends' servers answer")
    _journal(doctor)


def _explain(commands: "Commands") -> None:
    explain = _command(
        commands, "explain", "explain", "say what a rule, a code, an error or a refusal means", _DIALECTS
    )
    explain.add_argument(
        "word", help="such as ANT-12, overflow, SessionClosed, 429; or a file with a refusal, `-` for stdin"
    )
    explain.add_argument(
        "--dialect", default="openai", metavar="DIALECT", help="of the refusal; openai by default"
    )


def _file(command: Parser) -> None:
    command.add_argument("--config", metavar="FILE", help="an actors.toml; without it, the environment alone")


def _conversation(command: Parser) -> None:
    """Add what says whom a session asks, and what its model may do."""
    _targets(command)
    _tools(command)
    command.add_argument(
        "--mcp",
        action="append",
        default=[],
        metavar="NAME[=COMMAND|URL]",
        help="an MCP server: of --config by name, a program with its arguments, or an address; may be repeated",
    )
    command.add_argument(
        "--approve",
        choices=["ask", "allow", "deny"],
        default="ask",
        metavar="WORD",
        help="tools that want an approval: ask at the terminal (default), allow or deny them all",
    )
    for word in ("allow", "deny"):
        command.add_argument(
            f"--{word}-tool",
            action="append",
            default=[],
            metavar="NAME",
            help=f"{word} the calls of this tool, whatever it says itself; may be repeated",
        )
    _journal(command)
    command.add_argument("--no-journal", action="store_true", help="keep nothing of this conversation")
    command.add_argument(
        "-c", "--continue", dest="goes_on", action="store_true", help="go on with the last one"
    )
    command.add_argument("-r", "--resume", metavar="ID", help="go on with this one (`actors sessions list`)")
    command.add_argument(
        "--fork", nargs="?", const="", metavar="ID", help="go on with a copy of this one, or of the last"
    )
    command.add_argument("--system", metavar="TEXT", help="system prompt")
    command.add_argument("--id", metavar="NAME", help="the session's id; one is made up otherwise")
    _bounds(command)


def _bounds(command: Parser) -> None:
    """Add what ends a turn that goes on for too long."""
    command.add_argument(
        "--max-rounds",
        type=count,
        metavar="N",
        help="requests of a turn; the last asks for a final text, without tools",
    )
    command.add_argument(
        "--max-cost", type=money, metavar="MONEY", help="of the session; the models need prices in --config"
    )
    command.add_argument("--timeout", type=seconds, metavar="SECONDS", help="stop a turn after this long")


def _tools(command: Parser) -> None:
    command.add_argument(
        "--tools",
        metavar="FILE|MODULE:NAME",
        help="a Python file whose @tool functions are offered, or a tool or list of tools in a module",
    )


def _targets(command: Parser) -> None:
    """Add what says whom to ask."""
    command.add_argument(
        "-m", "--model", metavar="TARGET", help="provider:model, or a backend or pool of --config"
    )
    _file(command)
    command.add_argument(
        "--base-url", metavar="URL", help="any compatible server; -m is then a model name there"
    )
    command.add_argument(
        "--dialect", metavar="DIALECT", help="with --base-url: what it speaks; openai by default"
    )
    command.add_argument(
        "--auth", metavar="VARIABLE", help="with --base-url: environment variable with the key"
    )
    command.add_argument(
        "--offline", action="store_true", help="ask a stand-in on this machine; no key, no network"
    )


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
    _source(convert)
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
    _source(preview)
    preview.add_argument("--to", required=True, metavar="DIALECT", help="what would be written")
    preview.add_argument("--json", action="store_true", help="print one JSON object, the body in it")


def _source(command: Parser) -> None:
    command.add_argument(
        "--from",
        dest="source",
        metavar="DIALECT",
        help="dialect of the file; by default the only one that it fits",
    )


def _simulate(commands: "Commands") -> None:
    simulate = _command(
        commands, "simulate", "simulate", "run a server that refuses what a provider refuses", _DIALECTS
    )
    simulate.add_argument("--dialect", required=True, metavar="DIALECT", help="what it speaks")
    simulate.add_argument("--port", type=port, default=0, help="0, the default, takes a free one")
    simulate.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS", help="where to listen; 127.0.0.1 by default"
    )
    simulate.add_argument("--script", metavar="FILE", help="JSON: what the model says, turn by turn")
    simulate.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="N:FAULT",
        help="how request N (from 0) fails, such as 0:429=1, 2:cut=100 or 3:stall; may be repeated",
    )
    simulate.add_argument(
        "--mode", choices=["strict", "hosted"], default="strict", help="hosted takes what the host does"
    )
    simulate.add_argument(
        "--requests", type=count, metavar="N", help="stop after so many; 1 if any was refused"
    )
    _backend(simulate)


def _stress(commands: "Commands") -> None:
    stress = _command(commands, "stress", "stress", "have many sessions use your tools and backends at once")
    stress.add_argument(
        "target",
        nargs="?",
        metavar="TARGET",
        help="as for `run -m`; without it, strict servers on this machine",
    )
    stress.add_argument("--config", metavar="FILE", help="an actors.toml; without it, the environment alone")
    _tools(stress)
    stress.add_argument("--sessions", type=count, default=100, metavar="N", help="at once; 100 by default")
    stress.add_argument("--turns", type=count, default=10, metavar="N", help="asks of each; 10 by default")
    stress.add_argument(
        "--switch-to", action="append", default=[], metavar="TARGET", help="another target; may be repeated"
    )
    for name, usual, what in (
        ("switching", 0.2, "that a session is switched before an ask"),
        ("cancelling", 0.02, "that an ask is cancelled"),
    ):
        stress.add_argument(
            f"--{name}",
            type=chance,
            default=usual,
            metavar="CHANCE",
            help=f"chance {what}; {usual} by default",
        )
    stress.add_argument("--think", type=seconds, default=0.0, metavar="SECONDS", help="between two asks")
    stress.add_argument(
        "--seconds", type=seconds, metavar="SECONDS", help="begin no more asks after this long"
    )
    stress.add_argument("--seed", type=int, default=0, metavar="N", help="of the chances")
    stress.add_argument(
        "--allow-network",
        action="store_true",
        help="ask targets that are not on this machine; it may cost money",
    )
    stress.add_argument("--json", action="store_true", help="print the report as one JSON object")
    _backend(stress)


def _stats(commands: "Commands") -> None:
    stats = _command(commands, "stats", "stats", "count how asks and tool calls fared")
    stats.add_argument("file", help="events of `run --json`, or what Prometheus gets; `-` is standard input")
    stats.add_argument("--json", action="store_true", help="print one JSON object, by backend")


SESSIONS = ("list", "show", "export", "import", "fork", "delete", "vacuum", "backup")
"""What `actors sessions` does."""


def _sessions(commands: "Commands") -> None:
    sessions = _command(commands, "sessions", "sessions", "list, copy, back up and delete kept sessions")
    sessions.add_argument("what", choices=SESSIONS, metavar="WHAT", help=", ".join(SESSIONS))
    files = "for `import` and `backup` a file; for `delete` several"
    sessions.add_argument("id", nargs="*", metavar="ID|FILE", help=f"which session; {files}")
    sessions.add_argument("--at", type=count, metavar="N", help="fork: behind this event, else the last")
    sessions.add_argument("--to", metavar="NAME", help="fork, import: the id it gets")
    sessions.add_argument("--out", metavar="FILE", help="export: where to; standard output by default")
    sessions.add_argument("--limit", type=count, metavar="N", help="list: how many; 20 by default")
    sessions.add_argument("--all", action="store_true", help="list: all of them")
    sessions.add_argument("--after", metavar="ID", help="list: those behind this one")
    sessions.add_argument("--tenant", metavar="NAME", help="list, delete: those of this tenant")
    sessions.add_argument("--state", choices=STATES, metavar="STATE", help=f"list: {', '.join(STATES)}")
    sessions.add_argument("--title", metavar="WORDS", help="list: those with these words in their titles")
    entries, takes = "KEY=TEXT|KEY:=VALUE", "list: those with this in their metadata; may be repeated"
    sessions.add_argument("--metadata", action="append", type=entry, metavar=entries, help=takes)
    ages = "delete: those not used for '90 days', or since 2026-01-31"
    sessions.add_argument("--older-than", metavar="AGE|DATE", help=ages)
    sessions.add_argument("--export", metavar="DIR", help="delete: export each to a file here before")
    sessions.add_argument("--dry-run", action="store_true", help="delete: only print what would be deleted")
    sessions.add_argument("--json", action="store_true", help="list, show: one JSON object a line")
    _file(sessions)
    _journal(sessions)


def _replay(commands: "Commands") -> None:
    replay = _command(
        commands, "replay", "replay", "say what another provider would have been sent", _DIALECTS
    )
    replay.add_argument("id", metavar="ID|FILE", help="a session that is kept, or an exported file")
    replay.add_argument("--to", metavar="DIALECT", help="whom each request is rendered for")
    replay.add_argument("--send", action="store_true", help="ask -m anew; no tool runs, the record answers")
    replay.add_argument("--json", action="store_true", help="print one JSON object a line")
    _targets(replay)
    _journal(replay)


def _journal(command: Parser) -> None:
    command.add_argument(
        "--journal", metavar="FILE|URL", help="where conversations are kept; by default a file of yours"
    )


def _fsck(commands: "Commands") -> None:
    fsck = _command(commands, "fsck", "fsck", "say what is damaged in a journal, and save what is whole")
    fsck.add_argument("file", metavar="FILE|URL", help="a journal; nothing is written there")
    fsck.add_argument(
        "--salvage", metavar="NEW", help="copy every log to a new file, up to its first damaged record"
    )
    fsck.add_argument("--json", action="store_true", help="print one JSON object")


def _completion(commands: "Commands") -> None:
    completion = _command(
        commands, "completion", "completion", "print what completes this command in a shell"
    )
    completion.add_argument(
        "shell", choices=["bash", "zsh", "fish"], metavar="SHELL", help="bash, zsh or fish"
    )


def _command(commands: "Commands", name: str, module: str, summary: str, more: str = "") -> Parser:
    about = f"{summary[0].upper()}{summary[1:]}."
    added = commands.add_parser(name, help=summary, description=about, epilog=more, allow_abbrev=False)
    added.add_argument(
        "--debug",
        action="store_true",
        help="show what the runtime logs, and the traceback of an error and of what a tool raises",
    )
    added.add_argument(
        "--color",
        choices=["auto", "always", "never"],
        default="auto",
        metavar="WHEN",
        help="auto (default: on terminals only, and not with NO_COLOR), always or never",
    )
    added.examples = examples(name)
    added.set_defaults(command=name, module=module)
    return added


def _backend(command: Parser) -> None:
    command.add_argument("--backend", choices=["asyncio", "trio"], default="asyncio", help="the event loop")


class _Version(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"actors {version('llm-actors')}")  # `exit` would write its message to standard error
        parser.exit()
