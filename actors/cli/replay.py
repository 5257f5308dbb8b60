"""`actors replay`: the requests of a conversation that is kept, as another provider would have been sent them.

Nothing is asked: each request of the log is rendered for the dialect, with what was known when it was sent, and judged
by that dialect's rules.
"""

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from actors.cli.exits import Exit
from actors.cli.journal import kept
from actors.cli.screen import safe
from actors.config import load
from actors.core.check import check
from actors.core.events import Compacted, EpochBegan, Event, RequestSent, Shortened
from actors.core.exported import imported
from actors.core.profiles import dialect
from actors.core.state import SessionState
from actors.errors import SessionUnknown
from actors.pure import encode, render


class Replayed(Struct, frozen=True):
    """One request as it would have been.

    Args:
        seq: Its number in the log.
        turn, round: Which it was.
        bytes: How long its body is.
        faults: What the dialect's rules say against it.
        losses: What it would not have shown, by kind.
    """

    seq: int
    turn: int
    round: int
    bytes: int
    faults: list[str]
    losses: dict[str, int]


def main(options: argparse.Namespace) -> Exit:
    """Print a line for each request; 1 if a rule is broken.

    Raises:
        SessionUnknown: There is no such session.
        UnknownTarget: There is no such dialect.
    """
    is_right = True
    for request in replayed(_events(options), options.to):
        is_right &= not request.faults
        print(safe(_line(request, options)))
    return Exit.OK if is_right else Exit.FAILED


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
            yield Replayed(seq, event.turn, event.round, len(body), found, losses)
            lane = rendered.lane
        elif isinstance(event, Compacted | Shortened | EpochBegan):
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
    return f"{place}: {request.bytes:,} bytes for {options.to}: {how}" + (
        f"; left out: {lost}" if lost else ""
    )
