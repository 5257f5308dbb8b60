"""`actors completion`: a script that lets a shell complete commands and options.

It is written from the parser, so it knows what this version takes. In bash: `eval "$(actors completion bash)"`.
"""

import argparse
import sys

from actors.cli.exits import Exit
from actors.cli.options import DIALECTS, Parser, parser

_DIALECT_OPTIONS = ("--from", "--to", "--for", "--dialect")


def main(options: argparse.Namespace) -> Exit:
    """Print the script for the shell that the options name."""
    script = {"bash": _bash, "zsh": _zsh, "fish": _fish}[options.shell]
    sys.stdout.write(script(_commands()))
    return Exit.OK


def _commands() -> dict[str, Parser]:
    """Return the parser of each command."""
    return next(
        action.choices for action in parser()._actions if isinstance(action, argparse._SubParsersAction)
    )


def _options(command: Parser) -> list[str]:
    return [option for option in command._option_string_actions if option.startswith("--")]


def _dialects() -> str:
    return " ".join(name.split()[0] for name in DIALECTS)


def _bash(commands: dict[str, Parser]) -> str:
    cases = "\n".join(
        f"    {name}) words='{' '.join(_options(command))}' ;;" for name, command in commands.items()
    )
    return f"""_actors() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} words=
  case $before in
    {"|".join(_DIALECT_OPTIONS)}) COMPREPLY=($(compgen -W '{_dialects()}' -- "$word")); return ;;
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{" ".join(commands)} --help --version' -- "$word")); return
  fi
  case ${{COMP_WORDS[1]}} in
{cases}
  esac
  case $word in
    -*) COMPREPLY=($(compgen -W "$words" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -- "$word")) ;;
  esac
}}
complete -o filenames -F _actors actors
"""


def _zsh(commands: dict[str, Parser]) -> str:
    return f"autoload -U +X bashcompinit && bashcompinit\n{_bash(commands)}"


def _fish(commands: dict[str, Parser]) -> str:
    lines = [f"complete -c actors -n __fish_use_subcommand -f -a '{' '.join(commands)}'"]
    for name, command in commands.items():
        seen = f"-n '__fish_seen_subcommand_from {name}'"
        for option in _options(command):
            takes = f" -x -a '{_dialects()}'" if option in _DIALECT_OPTIONS else ""
            lines.append(f"complete -c actors {seen} -l {option.removeprefix('--')}{takes}")
    return "\n".join(lines) + "\n"
