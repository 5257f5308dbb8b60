"""`actors chat`: hold a conversation with a session at the terminal."""

import argparse

import anyio

from actors.cli.approvals import Approvals
from actors.cli.arguments import add_conversation_options
from actors.cli.chat.loop import Chat
from actors.cli.chat.questions import Questions
from actors.cli.chat.state import ChatState
from actors.cli.chat.terminal import Terminal
from actors.cli.chat.view import ChatView
from actors.cli.conversation import ask_settings, open_conversation
from actors.cli.exits import Exit
from actors.cli.parser import Parser
from actors.cli.screen import screen

EXAMPLES = (
    ("actors chat --offline", "chat with stand-ins; enter `please roll`, then /switch claude"),
    ("actors chat --config actors.toml -m mine --tools app.tools:all", "use your own backends and tools"),
)


def add_arguments(parser: Parser) -> None:
    add_conversation_options(parser)
    parser.add_argument("--hide-thinking", action="store_true", help="do not show the model's thinking")


def run(options: argparse.Namespace) -> Exit:
    """Open the session, chat until the user leaves, and return the exit code."""
    return anyio.run(_run_chat, options, backend=options.backend)


async def _run_chat(options: argparse.Namespace) -> Exit:
    terminal = Terminal(screen(color=options.color))
    questions = Questions(terminal)
    approve = Approvals(options.approve, questions.approve)
    try:
        async with open_conversation(options, approve) as (session, config):
            view = ChatView(terminal, anyio.current_time, config, thinking=not options.hide_thinking)
            approve.while_asking = view.mark_waiting
            state = ChatState(session, config, terminal, ask_settings(options))
            return await Chat(state, view, questions, approve).run()
    finally:
        terminal.end_line()
