"""`actors replay`: the requests of a conversation that is kept, as another provider would have been sent them.

With `--to` nothing is asked: each request of the log is rendered for the dialect, with what was known when it was sent,
and judged by that dialect's rules. With `--send` another target is asked (`replaying.py`).
"""

import argparse
import json
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, closing
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from msgspec import Struct, to_builtins

from actors.cli.exits import Exit
from actors.cli.journal import kept
from actors.cli.logs import show_logs
from actors.cli.screen import complain, safe
from actors.cli.targets import target
from actors.config import Config, load
from actors.core.check import check
from actors.core.dialects.profiles import dialect
from actors.core.log.events import Compacted, EpochBegan, Event, RequestSent, Rewound, Shortened
from actors.core.session.exported import imported
from actors.core.session.state import SessionState
from actors.errors import SessionUnknown
from actors.transcripts import encode, render

if TYPE_CHECKING:
    from actors.cli.replaying import AskedAnew


class Replayed(Struct, frozen=True):
    """One request as it would have been.

    Args:
        seq: Its number in the log.
        turn, round: Which it was.
        bytes: How long its body is.
        faults: What the dialect's rules say against it.
        losses: What it would not have shown, by kind.
        omitted: Parameters that it left out when it was sent, because its provider had refused them.
    """

    seq: int
    turn: int
    round: int
    bytes: int
    faults: list[str]
    losses: dict[str, int]
    omitted: list[str] = []


def main(options: argparse.Namespace) -> Exit:
    """Print a line for each request; 1 if a rule is broken. Or have each ask made anew; 1 if one does not complete.

    Raises:
        SessionUnknown: There is no such session.
        UnknownTarget: There is no such dialect.
        ConfigError: There is no such target.
    """
    if options.send == (options.to is not None):
        complain("`actors replay` takes --to DIALECT, or --send and -m TARGET")
        return Exit.USAGE
    if options.send:
        return anyio.run(_sent, options)
    is_right = True
    for request in replayed(_events(options), options.to):
        is_right &= not request.faults
        print(safe(_line(request, options)))
    return Exit.OK if is_right else Exit.FAILED


async def _sent(options: argparse.Namespace) -> Exit:
    from actors.cli.replaying import sent

    show_logs(debug=options.debug)
    events, is_complete = _events(options), True
    async with _asked(options) as (config, name), aclosing(sent(events, config, name)) as answers:
        async for answer in answers:
            is_complete &= answer.status == "complete"
            print(json.dumps(to_builtins(answer)) if options.json else safe(_told(answer)))
    return Exit.OK if is_complete else Exit.FAILED


@asynccontextmanager
async def _asked(options: argparse.Namespace) -> AsyncIterator[tuple[Config, str]]:
    """Give whom the options name."""
    if not options.offline:
        yield target(options)
        return
    from actors.cli.offline import stand_ins

    async with stand_ins(options.model) as made:
        yield made


def _told(answer: "AskedAnew") -> str:
    missing = "".join(f"\n  not on record: {call}" for call in answer.missing)
    why = f" ({answer.why})" if answer.why else ""
    return f"[ask {answer.ask}] {answer.status}{why}, {answer.calls} calls from the record: {answer.text}{missing}"


def replayed(events: Sequence[Event], to: str) -> Iterator[Replayed]:
    """Give each request of a log as this dialect would have been sent it."""
    state, lane, target = SessionState(), None, dialect(to)
    for seq, event in enumerate(events, 1):
        if isinstance(event, RequestSent) and not event.aside:
            history = state.history.upto(event.cursor)
            rendered = render(history, state.ledger, target, lane)
            body = encode(rendered, model="model", system=history.system)
            found = [str(each) for each in check(body, target)]
            losses = dict(rendered.report.losses)
            omitted = [omission.name for omission in event.omitted]
            yield Replayed(seq, event.turn, event.round, len(body), found, losses, omitted)
            lane = rendered.lane
        elif isinstance(event, Compacted | Shortened | Rewound | EpochBegan):
            lane = None
        state = state.apply(event)


def _events(options: argparse.Namespace) -> list[Event]:
    if Path(options.id).is_file():
        return imported(Path(options.id).read_bytes())[0]
    with closing(kept(options, load(options.config, os.environ))) as storage:
        storage.open()
        if not (events := storage.read(options.id)):
            raise SessionUnknown(
                f"No session {options.id[:80]!r} is kept here; `actors sessions list` says which are"
            )
        return events


def _line(request: Replayed, options: argparse.Namespace) -> str:
    if options.json:
        return json.dumps({name: getattr(request, name) for name in Replayed.__struct_fields__})
    lost = ", ".join(f"{count} {kind}" for kind, count in request.losses.items())
    how = "; ".join(request.faults) or "accepted"
    place = f"[{request.seq}] turn {request.turn}, round {request.round}"
    refused = ", ".join(request.omitted)
    return (
        f"{place}: {request.bytes:,} bytes for {options.to}: {how}"
        + (f"; left out: {lost}" if lost else "")
        + (f"; was sent without {refused}, which was refused" if refused else "")
    )
