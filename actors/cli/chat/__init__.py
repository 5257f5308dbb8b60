"""`actors chat`: a session at the terminal.

Two faces show the same conversation: `terminal`, with an input line that stays usable while a turn runs, and `plain`,
which only ever writes whole lines, for screen readers, dumb terminals and pipes. What is said, asked and switched is
the same code for both.
"""

import argparse
import os
import sys

import anyio

from actors.cli.approvals import Approvals
from actors.cli.arguments import add_conversation
from actors.cli.chat.commands import COMMANDS
from actors.cli.chat.face import Face
from actors.cli.chat.loop import Chat
from actors.cli.chat.plain import PlainFace
from actors.cli.chat.questions import Questions
from actors.cli.chat.state import ChatState
from actors.cli.chat.view import View
from actors.cli.conversation import ask_settings, conversation
from actors.cli.exits import Exit
from actors.cli.parser import Parser
from actors.cli.screen import complain

_TO_INSTALL = "pip install 'llm-actors[chat]'"


EXAMPLES = (
    ("actors chat --offline", "talk to stand-ins; say `please roll`, then /switch claude"),
    ("actors chat --config actors.toml -m mine --tools app.tools:all", "your backends and tools"),
    ("actors chat --offline --plain", "whole lines only, for screen readers"),
)


def add_arguments(parser: Parser) -> None:
    add_conversation(parser)
    parser.add_argument("--plain", action="store_true", help="whole lines only: no redrawing, no colour")
    parser.add_argument("--hide-thinking", action="store_true", help="do not show the model's thinking")


def run(options: argparse.Namespace) -> Exit:
    """Chat until the person leaves."""
    face = _face(options)
    if face is None:
        complain(f"prompt_toolkit and rich are not installed; {_TO_INSTALL}, or give --plain")
        return Exit.CONFIG
    return anyio.run(_chat, options, face, backend=options.backend)


def _face(options: argparse.Namespace) -> Face | None:
    """Return where the conversation is shown; None if what that takes is not installed."""
    on_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if options.plain or not on_terminal or os.environ.get("TERM", "dumb") == "dumb":
        return PlainFace()
    try:
        from actors.cli.chat.terminal import TerminalFace
    except ModuleNotFoundError:
        return None
    return TerminalFace(COMMANDS, options.color)


async def _chat(options: argparse.Namespace, face: Face) -> Exit:
    questions = Questions(face)
    approve = Approvals(options.approve, questions.ask)
    async with conversation(options, approve) as (session, config), face:
        view = View(face, anyio.current_time, config, thinking=not options.hide_thinking)
        approve.while_asking = view.waiting
        return await Chat(
            ChatState(session, config, face, ask_settings(options)), view, questions, approve
        ).run()
