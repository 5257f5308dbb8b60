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
from actors.cli.chat.commands import COMMANDS
from actors.cli.chat.face import Face
from actors.cli.chat.loop import Chat
from actors.cli.chat.plain import PlainFace
from actors.cli.chat.questions import Questions
from actors.cli.chat.state import ChatState
from actors.cli.chat.view import View
from actors.cli.conversation import conversation, settings
from actors.cli.exits import Exit
from actors.cli.logs import show_logs
from actors.cli.screen import complain

_TO_INSTALL = "pip install 'llm-actors[chat]'"


def main(options: argparse.Namespace) -> Exit:
    """Chat until the person leaves, and return the exit code."""
    face = _face(options)
    if face is None:
        complain(f"prompt_toolkit and rich are not installed; {_TO_INSTALL}, or give --plain")
        return Exit.CONFIG
    show_logs(debug=options.debug)
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
        approve.while_asked = view.waiting
        return await Chat(ChatState(session, config, face, settings(options)), view, questions, approve).run()
