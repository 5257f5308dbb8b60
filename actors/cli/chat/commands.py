"""What a line that begins with a slash does. One table: `/help` prints it, the input line completes from it."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from actors.cli.chat.face import Row
from actors.cli.chat.state import ChatState
from actors.cli.screen import one_line, safe
from actors.core.stream_events.results import Deferred
from actors.core.values.content import Code, Media, Message, Native, Text, Thinking, ToolCall, ToolResult
from actors.errors import ActorsError

Run: TypeAlias = Callable[[ChatState, str], Awaitable[None]]

_WIDTH = 100
_NEWEST = 200
"""Rows of a table; older ones are counted."""


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """A command: what it takes, what it does."""

    takes: str
    summary: str
    run: Run


async def run_command(chat: ChatState, line: str) -> None:
    """Run a command. What it cannot do is one line."""
    name, _, rest = line.partition(" ")
    try:
        await COMMANDS[name].run(chat, rest.strip())
    except ActorsError as error:
        chat.face.put(f"  {safe(str(error))}", "red")


async def _switch(chat: ChatState, target: str) -> None:
    if not target:
        chat.face.put(f"  /switch wants a target: {_targets(chat)}", "yellow")
        return
    outcome = await chat.session.switch(target)
    if isinstance(outcome, Deferred):
        chat.face.put(f"  deferred: {safe(target)} takes over when turn {outcome.turn} has ended", "yellow")
    else:
        chat.face.put(f"  switched: {safe(target)} is next", "yellow")


def _targets(chat: ChatState) -> str:
    return ", ".join(chat.config.targets) or "provider:model, as openai:gpt-5.2"


async def _backends(chat: ChatState, _: str) -> None:
    now = chat.session.target
    rows = []
    for name in dict.fromkeys((*chat.config.targets, now)):
        members = chat.config.resolve(name).members
        who = ", ".join(f"{member.model} ({member.dialect})" for member in members)
        rows.append((safe(name), safe(who), "now" if name == now else ""))
    chat.face.table(("target", "asks", "state"), rows)


async def _history(chat: ChatState, _: str) -> None:
    history = await chat.session.history()
    rows = [
        (message.speaker, one_line("; ".join(_said(message)), _WIDTH), _turn_of(message))
        for message in history
    ]
    _rows(chat, ("who", "says", "turn"), rows)


def _turn_of(message: Message) -> str:
    """Return the number of the turn in which a model spoke."""
    return str(message.turn) if message.speaker == "model" else ""


def _said(message: Message) -> Iterator[str]:
    """Give each block of a message in a few words."""
    for block in message.blocks:
        match block:
            case Text(text=text):
                yield text
            case Thinking(text=text):
                yield f"(thinks: {text})"
            case ToolCall():
                yield f"(calls {block.name})"
            case ToolResult():
                yield f"(result: {block.content if block.error is None else block.error})"
            case Media() | Code() | Native():
                yield f"({type(block).__name__.lower()})"


async def _ledger(chat: ChatState, _: str) -> None:
    ledger = await chat.session.ledger()
    rows = [
        (known.call_id, safe(known.tool or ""), known.status, known.reason or "")
        for known in ledger.interactions()
    ]
    _rows(chat, ("call", "tool", "state", "why"), rows)


def _rows(chat: ChatState, columns: Row, rows: Sequence[Row]) -> None:
    if not rows:
        chat.face.put("  nothing yet", "dim")
        return
    if len(rows) > _NEWEST:
        chat.face.put(f"  {len(rows) - _NEWEST} older ones are not shown", "dim")
    chat.face.table(columns, rows[-_NEWEST:])


async def _preview(chat: ChatState, target: str) -> None:
    made = await chat.session.preview(target or chat.session.target)
    lost = ", ".join(f"{count} x {kind}" for kind, count in made.losses.items()) or "nothing"
    chat.face.put(f"  {safe(str(made.binding))}: {made.size:,} bytes, {made.kept:,} of the lane as before")
    chat.face.put(f"  synthetic results: {len(made.report.synthetic)}; left out: {safe(lost)}")
    if made.compacts:
        chat.face.put("  the next ask makes the history shorter first", "yellow")
    if made.over:
        chat.face.put(f"  nothing is sent: {safe(made.over)}", "yellow")


async def _cost(chat: ChatState, _: str) -> None:
    usage = chat.usage
    tokens = f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"
    cost = "an unknown cost: [prices] lacks one" if chat.cost is None else f"{chat.cost:.6g} in money"
    chat.face.put(f"  {chat.turns} turns, {tokens}, {cost}")


async def _compact(chat: ChatState, _: str) -> None:
    made = await chat.session.compact()
    done = f"{made.messages} messages became a summary, {made.results} results a mark"
    chat.face.put(f"  {done}{'; ' if made.why else ''}{safe(made.why)}", "yellow")


async def _rewind(chat: ChatState, turn: str) -> None:
    if not turn.isdecimal():
        chat.face.put(
            "  /rewind wants the number of a turn, as /history shows it; 0 for the beginning", "yellow"
        )
        return
    count = await chat.session.rewind(int(turn))
    chat.face.put(f"  {count} messages left the history; the ledger has their calls still", "yellow")


async def _help(chat: ChatState, _: str) -> None:
    chat.face.table(
        ("command", "does"),
        [(f"{name} {command.takes}".strip(), command.summary) for name, command in COMMANDS.items()],
    )
    chat.face.put("A line that ends in \\ goes on in the next one.", "dim")


async def _quit(chat: ChatState, _: str) -> None:
    chat.leave()


COMMANDS: dict[str, SlashCommand] = {
    "/switch": SlashCommand(
        "TARGET", "send the next ask to another target; in mid-turn when the turn has ended", _switch
    ),
    "/backends": SlashCommand("", "the targets there are, and which is asked now", _backends),
    "/history": SlashCommand("", "the conversation so far, a line for each message", _history),
    "/ledger": SlashCommand("", "every tool call and how it ended", _ledger),
    "/preview": SlashCommand("[TARGET]", "what would be sent to a target now", _preview),
    "/cost": SlashCommand("", "turns, tokens and, by the prices of the configuration, money so far", _cost),
    "/compact": SlashCommand("", "make the history shorter: older turns become a summary", _compact),
    "/rewind": SlashCommand(
        "TURN", "go back to where a turn ended; what was said since is forgotten", _rewind
    ),
    "/help": SlashCommand("", "these lines", _help),
    "/quit": SlashCommand("", "leave; so do Ctrl-D and, with no turn in flight, Ctrl-C", _quit),
}
