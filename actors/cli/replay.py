"""`actors replay`: render a stored conversation for another provider, or ask another provider again.

With `--to DIALECT`, nothing is sent. Each request of the log is rendered for the dialect, from the history and ledger
at the time of the request, and checked against the rules of the dialect.

With `--send`, another target receives the user's messages, and the new conversation is not stored. No tool runs. A call
gets the recorded result of a call with the same tool and arguments; if there are several, they are used in the order of
the log. A call without a recorded result fails. The model sees the failure, and the report lists the call. The log
contains the names of tools but not their schemas, so the model sees only names.
"""

import argparse
import json
import os
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, closing
from pathlib import Path
from typing import Any

import anyio
from msgspec import Struct, to_builtins

from actors.cli.arguments import add_dialect_option, add_journal_option, add_model_options
from actors.cli.exits import Exit
from actors.cli.journal import stored_sessions
from actors.cli.parser import Parser
from actors.cli.screen import escape_controls
from actors.cli.targets import serve_target
from actors.config import Config, load
from actors.core.check import check
from actors.core.data.jsonio import JsonValue, parse
from actors.core.dialects.profiles import dialect
from actors.core.log.call_events import Failed, Returned
from actors.core.log.events import (
    AskStarted,
    Compacted,
    EpochBegan,
    LogEvent,
    Opened,
    RequestSent,
    ResultsTrimmed,
    Rewound,
    RoundEnded,
)
from actors.core.session.export_file import import_logs
from actors.core.session.state import SessionState
from actors.core.values.content import Message, ToolCall
from actors.core.values.identity import CallId
from actors.core.values.packed import unpack
from actors.errors import SessionUnknown
from actors.journal.storage.memory import MemoryStorage
from actors.runtime.runtime import Runtime
from actors.tools import Tool
from actors.transcripts import encode, render

EXAMPLES = (
    ("actors replay trip --to mistral", "check the requests that Mistral would have received"),
    ("actors replay trip.jsonl --to anthropic --json", "check an exported file, and print JSON"),
)


class RenderedRequest(Struct, frozen=True):
    """A request of the log, rendered for another dialect.

    Args:
        seq: Sequence number of the request in the log.
        turn, round: The turn and round of the request.
        bytes: Size of the body.
        faults: Rules of the dialect that the request breaks.
        losses: Number of blocks that the dialect cannot carry, by kind.
        omitted: Parameters that the original request omitted because its provider had refused them.
    """

    seq: int
    turn: int
    round: int
    bytes: int
    faults: list[str]
    losses: dict[str, int]
    omitted: list[str] = []


class RepeatedAskResult(Struct, frozen=True):
    """The result of an ask that was sent to another target.

    Args:
        ask: Number of the ask, from 1.
        status, reason: Status of the result, and the reason if the ask is not complete.
        text: The model's last text.
        calls: Number of the model's calls that got a recorded result.
        missing: The model's other calls, each with its arguments.
    """

    ask: int
    status: str
    reason: str
    text: str
    calls: int
    missing: list[str]


def add_arguments(parser: Parser) -> None:
    parser.add_argument("id", metavar="ID|FILE", help="a stored session, or an exported file")
    mode = parser.add_mutually_exclusive_group(required=True)
    add_dialect_option(parser, "--to", group=mode, help="render each request for this dialect; sends nothing")
    mode.add_argument(
        "--send", action="store_true", help="ask the target -m; recorded results answer its calls"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")
    add_model_options(parser)
    add_journal_option(parser)


def run(options: argparse.Namespace) -> Exit:
    """Print a line per request or ask. The exit code is 1 if a rule is broken or an ask does not complete.

    Raises:
        SessionUnknown: The session does not exist.
        UnknownTarget: The dialect does not exist.
        ConfigError: The target does not exist.
    """
    if options.send:
        return anyio.run(_repeat_asks, options)
    is_valid = True
    for request in rendered_requests(_read_events(options), options.to):
        is_valid &= not request.faults
        print(
            json.dumps(to_builtins(request))
            if options.json
            else escape_controls(_request_line(request, options.to))
        )
    return Exit.OK if is_valid else Exit.FAILED


async def _repeat_asks(options: argparse.Namespace) -> Exit:
    events, is_complete = _read_events(options), True
    async with serve_target(options, needs_target=True) as (config, name):
        assert name is not None
        async with aclosing(repeated_asks(events, config, name)) as asks:
            async for ask in asks:
                is_complete &= ask.status == "complete"
                print(json.dumps(to_builtins(ask)) if options.json else escape_controls(_ask_line(ask)))
    return Exit.OK if is_complete else Exit.FAILED


def _read_events(options: argparse.Namespace) -> list[LogEvent]:
    if Path(options.id).is_file():
        return import_logs(Path(options.id).read_bytes())[0]
    with closing(stored_sessions(options, load(options.config, os.environ))) as storage:
        storage.open()
        if not (events := storage.read(options.id)):
            raise SessionUnknown(
                f"No session {options.id[:80]!r} is stored; `actors sessions list` shows the ids"
            )
        return events


def _request_line(request: RenderedRequest, target: str) -> str:
    lost = ", ".join(f"{count} {kind}" for kind, count in request.losses.items())
    verdict = "; ".join(request.faults) or "accepted"
    place = f"[{request.seq}] turn {request.turn}, round {request.round}"
    omitted = ", ".join(request.omitted)
    return (
        f"{place}: {request.bytes:,} bytes for {target}: {verdict}"
        + (f"; dropped: {lost}" if lost else "")
        + (f"; sent without {omitted}, which the provider had refused" if omitted else "")
    )


def _ask_line(ask: RepeatedAskResult) -> str:
    missing = "".join(f"\n  not recorded: {call}" for call in ask.missing)
    why = f" ({ask.reason})" if ask.reason else ""
    return f"[ask {ask.ask}] {ask.status}{why}, {ask.calls} calls with a recorded result: {ask.text}{missing}"


def rendered_requests(events: Sequence[LogEvent], dialect_name: str) -> Iterator[RenderedRequest]:
    """Yield each request of a log, rendered for the dialect `dialect_name` and checked against its rules."""
    state, lane, target = SessionState(), None, dialect(dialect_name)
    for seq, event in enumerate(events, 1):
        if isinstance(event, RequestSent) and not event.is_for_summary:
            history = state.history.upto(event.cursor)
            rendered = render(history, state.ledger, target, lane)
            body = encode(rendered, model="model", system=history.system)
            faults = [str(each) for each in check(body, target)]
            losses = dict(rendered.report.losses)
            omitted = [omission.name for omission in event.omitted]
            yield RenderedRequest(seq, event.turn, event.round, len(body), faults, losses, omitted)
            lane = rendered.lane
        elif isinstance(event, Compacted | ResultsTrimmed | Rewound | EpochBegan):
            lane = None
        state = state.apply(event)


async def repeated_asks(
    events: Sequence[LogEvent], config: Config, target: str
) -> AsyncGenerator[RepeatedAskResult]:
    """Send the user messages of a log to a target, one after the other, and yield the result of each ask."""
    recorded, first = _RecordedCalls(events), events[0]
    assert isinstance(first, Opened)
    async with Runtime(config, journal=MemoryStorage()) as runtime:
        session = await runtime.open(target, tools=list(recorded.tools()), system=first.system)
        for number, message in enumerate(_user_messages(events), 1):
            recorded.answered, recorded.missing = 0, list[str]()
            result = await session.ask(Message("user", message.blocks), check=False)
            yield RepeatedAskResult(
                number, result.status, result.error, result.text, recorded.answered, recorded.missing
            )


def _user_messages(events: Sequence[LogEvent]) -> list[Message]:
    found = [unpack(event.message) for event in events if isinstance(event, AskStarted)]
    return [message for message in found if message.role == "user" and message.blocks]


class RecordedFailure(Exception):
    """Raised for a call that failed in the log, with the recorded error. The new model receives this error."""


class CallNotRecorded(Exception):
    """Raised for a call without a recorded result. The new model receives this error."""


class _RecordedCalls:
    """The recorded results of a log's calls, by tool and arguments.

    For the current ask, `answered` counts the calls that had a recorded result, and `missing` lists the other calls.
    """

    def __init__(self, events: Sequence[LogEvent]) -> None:
        self._results: defaultdict[tuple[str, str], deque[Returned | Failed]] = defaultdict(deque)
        self.answered, self.missing = 0, list[str]()
        made = dict[CallId, ToolCall]()
        for event in events:
            if isinstance(event, RoundEnded) and event.message is not None:
                made.update({call.id: call for call in unpack(event.message).calls})
            elif isinstance(event, Returned | Failed) and event.call_id in made:
                call = made[event.call_id]
                self._results[_call_key(call.name, call.arguments)].append(event)
        self._names = sorted({call.name for call in made.values()})

    def tools(self) -> Iterator[Tool[..., Any]]:  # Any: a recorded result may have any type
        """Yield a tool for each tool name in the log. Each tool accepts any arguments and returns recorded results."""
        for name in self._names:
            yield Tool.from_schema(
                name, f"{name}, as recorded.", {"type": "object"}, self._replaying_function(name)
            )

    def _replaying_function(self, name: str) -> Callable[..., Awaitable[object]]:
        async def answer(**arguments: JsonValue) -> object:
            return self._recorded_result(name, arguments)

        return answer

    def _recorded_result(self, name: str, arguments: Mapping[str, JsonValue]) -> object:
        results = self._results.get(_call_key(name, arguments))
        if not results:
            self.missing.append(f"{name} {json.dumps(arguments, sort_keys=True)}")
            raise CallNotRecorded("no call with these arguments is recorded, and no tool ran")
        result = results.popleft()
        self.answered += 1
        if isinstance(result, Failed):
            raise RecordedFailure(str(parse(result.error)))
        return parse(result.content)


def _call_key(name: str, arguments: Mapping[str, Any]) -> tuple[str, str]:
    return name, json.dumps(arguments, sort_keys=True)
