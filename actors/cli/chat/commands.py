"""Define and run the slash commands of a chat, such as `/switch`. `/help` lists them.

A chat and its slash commands share a `ChatState`.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import anyio

from actors.cli.exits import Exit
from actors.cli.screen import escape_controls, one_line
from actors.cli.terminal import Terminal
from actors.config import Config
from actors.core.settings.asking import AskSettings
from actors.core.settings.spending import sum_costs
from actors.core.stream_events.ask_events import AskResult
from actors.core.values.content import (
    Code,
    Media,
    Message,
    ProviderBlock,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from actors.core.values.stream import Usage
from actors.errors import ActorsError
from actors.runtime.handle import Session

_WIDTH = 100
_MAX_ROWS = 200
"""Maximum number of rows of a table that are shown. Older rows are only counted."""


@dataclass(slots=True)
class ChatState:
    """The state of a chat: its session, its terminal, and the usage of its turns.

    Args:
        settings: Settings of each ask.
        usage: Tokens of all completed turns.
        cost: Cost of all completed turns, or None if a price is unknown.
        turns: Number of completed turns.
        code: The exit code, or None until the user leaves.
        reader_scope: The cancel scope of the task that reads lines, which is cancelled when the user leaves.
    """

    session: Session
    config: Config
    terminal: Terminal
    settings: AskSettings
    usage: Usage = field(default_factory=Usage)
    cost: float | None = 0.0
    turns: int = 0
    code: Exit | None = None
    reader_scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    def add_turn(self, result: AskResult) -> None:
        """Add the usage and cost of a completed turn. A paused turn is added when it ends."""
        if result.status in ("awaiting", "late"):
            return
        self.turns += 1
        self.usage += result.usage
        if result.usage != Usage():
            self.cost = sum_costs((self.cost, result.cost))

    def leave(self, code: Exit = Exit.OK) -> None:
        """End the chat with an exit code, and cancel the current turn."""
        self.code = code if self.code is None else self.code
        self.reader_scope.cancel()


Run: TypeAlias = Callable[[ChatState, str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """A slash command: the name of its argument, its line in `/help`, and the function that runs it."""

    argument: str
    summary: str
    run: Run


async def run_command(chat: ChatState, line: str) -> None:
    """Run the command in a line, such as `/switch claude`. Print an error as one line."""
    name, _, rest = line.partition(" ")
    try:
        await COMMANDS[name].run(chat, rest.strip())
    except ActorsError as error:
        chat.terminal.print(f"  {escape_controls(str(error))}", "red")


async def _switch_target(chat: ChatState, target: str) -> None:
    if not target:
        chat.terminal.print(f"  /switch takes a target: {_target_names(chat)}", "yellow")
        return
    outcome = await chat.session.switch(target)
    if outcome.status == "queued":
        chat.terminal.print(
            f"  deferred: switching to {escape_controls(target)} after turn {outcome.turn}", "yellow"
        )
    else:
        chat.terminal.print(f"  switched to {escape_controls(target)}", "yellow")


def _target_names(chat: ChatState) -> str:
    return ", ".join(chat.config.targets) or "provider:model, such as openai:gpt-5.2"


async def _list_backends(chat: ChatState, _: str) -> None:
    now = chat.session.target
    rows: list[tuple[str, ...]] = []
    for name in dict.fromkeys((*chat.config.targets, now)):
        members = chat.config.resolve(name).members
        models = ", ".join(f"{member.model} ({member.dialect})" for member in members)
        rows.append((escape_controls(name), escape_controls(models), "current" if name == now else ""))
    chat.terminal.print_table(("target", "models", ""), rows)


async def _print_history(chat: ChatState, _: str) -> None:
    history = await chat.session.history()
    rows = [
        (_turn_label(message), message.role, one_line("; ".join(_block_texts(message)), _WIDTH))
        for message in history
    ]
    _print_rows(chat, ("turn", "role", "content"), rows)


def _turn_label(message: Message) -> str:
    """Return the turn number of a model's message, and an empty string for a user's message."""
    return str(message.turn) if message.role == "assistant" else ""


def _block_texts(message: Message) -> Iterator[str]:
    """Yield a short description of each block of a message."""
    for block in message.blocks:
        match block:
            case Text(text=text):
                yield text
            case Thinking(text=text):
                yield f"(thinking: {text})"
            case ToolCall():
                yield f"(calls {block.name})"
            case ToolResult():
                yield f"(result: {block.content if block.error is None else block.error})"
            case Media() | Code() | ProviderBlock():
                yield f"({type(block).__name__.lower()})"


async def _print_ledger(chat: ChatState, _: str) -> None:
    ledger = await chat.session.ledger()
    rows = [
        (known.call_id, escape_controls(known.tool or ""), known.status, known.reason or "")
        for known in ledger.interactions()
    ]
    _print_rows(chat, ("call", "tool", "state", "reason"), rows)


def _print_rows(chat: ChatState, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if not rows:
        chat.terminal.print("  none yet", "dim")
        return
    if len(rows) > _MAX_ROWS:
        chat.terminal.print(f"  {len(rows) - _MAX_ROWS} older rows are not shown", "dim")
    chat.terminal.print_table(header, rows[-_MAX_ROWS:])


async def _print_preview(chat: ChatState, target: str) -> None:
    made = await chat.session.preview(target or chat.session.target)
    lost = ", ".join(f"{count} x {kind}" for kind, count in made.losses.items()) or "nothing"
    chat.terminal.print(
        f"  {escape_controls(str(made.binding))}: {made.size:,} bytes, {made.kept:,} of them unchanged"
    )
    chat.terminal.print(
        f"  synthetic results: {len(made.report.synthetic)}; dropped: {escape_controls(lost)}"
    )
    if made.compacts:
        chat.terminal.print("  the next ask compacts the history first", "yellow")
    if made.exhausted_budget:
        chat.terminal.print(f"  no request is sent: {escape_controls(made.exhausted_budget)}", "yellow")


async def _print_cost(chat: ChatState, _: str) -> None:
    usage = chat.usage
    tokens = f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"
    cost = "unknown cost: a price is missing in [prices]" if chat.cost is None else f"cost {chat.cost:.6g}"
    chat.terminal.print(f"  {chat.turns} turns, {tokens}, {cost}")


async def _compact_history(chat: ChatState, _: str) -> None:
    made = await chat.session.compact()
    done = f"{made.messages} messages replaced by a summary, {made.results} results trimmed"
    chat.terminal.print(f"  {done}{'; ' if made.error else ''}{escape_controls(made.error)}", "yellow")


async def _rewind_history(chat: ChatState, turn: str) -> None:
    if not turn.isdecimal():
        chat.terminal.print(
            "  /rewind takes the number of a turn from /history, or 0 for the beginning", "yellow"
        )
        return
    count = await chat.session.rewind(int(turn))
    chat.terminal.print(
        f"  {count} messages removed from the history; the ledger keeps their calls", "yellow"
    )


async def _print_help(chat: ChatState, _: str) -> None:
    chat.terminal.print_table(
        ("command", "effect"),
        [(f"{name} {command.argument}".strip(), command.summary) for name, command in COMMANDS.items()],
    )
    chat.terminal.print("A line that ends with \\ continues on the next line.", "dim")


async def _quit_chat(chat: ChatState, _: str) -> None:
    chat.leave()


COMMANDS: dict[str, SlashCommand] = {
    "/switch": SlashCommand(
        "TARGET",
        "send the next ask to another target; during a turn, the switch waits for its end",
        _switch_target,
    ),
    "/backends": SlashCommand("", "list the targets and the current one", _list_backends),
    "/history": SlashCommand("", "show the conversation, a line per message", _print_history),
    "/ledger": SlashCommand("", "show every tool call and how it ended", _print_ledger),
    "/preview": SlashCommand("[TARGET]", "show the size and the losses of the next request", _print_preview),
    "/cost": SlashCommand("", "show turns, tokens and cost", _print_cost),
    "/compact": SlashCommand("", "compact the history: older turns become a summary", _compact_history),
    "/rewind": SlashCommand(
        "TURN", "return to the end of a turn; later messages are removed", _rewind_history
    ),
    "/help": SlashCommand("", "show this list", _print_help),
    "/quit": SlashCommand("", "leave; Ctrl-D leaves too, and between turns Ctrl-C", _quit_chat),
}
