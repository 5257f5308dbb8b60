"""Lanes: one session's rendered transcript for one binding, append-only within an epoch.

A lane is where its rendering stands, the encoded text so far, and what the judge knows of it. A request
renders, encodes and judges only the messages past the cursor, so it costs what is new. The text is kept as
a few immutable segments: neighbours are joined while they are small, so a lane of any length has few, and a
byte is copied only a bounded number of times.

A lane is a cache of a fold over the log: dropped, it is rebuilt to the same bytes (`actors.core.state`).
"""

from dataclasses import dataclass

from actors.core.check import CheckState, canonical, extend, finish, start
from actors.core.diagnostics import Notes, Report
from actors.core.dialect import Dialect
from actors.core.events import EpochBegan, Reason
from actors.core.history import History
from actors.core.identity import CallId
from actors.core.ledger import Ledger
from actors.core.render import Reader, Walk
from actors.core.transcript import Encoder, Shown, Standing
from actors.errors import CanonicalFault, Fault

SEGMENT = 128 * 1024
"""Bytes up to which neighbouring segments are joined."""


@dataclass(frozen=True, slots=True)
class Lane:
    """A lane at one point of its life.

    Args:
        standing: Where its rendering stands.
        segments: The encoded messages, without what closes the last one.
        judge: What the judge knows after these bytes.
    """

    standing: Standing
    segments: tuple[bytes, ...]
    judge: CheckState

    @property
    def size(self) -> int:
        """Bytes of the encoded messages."""
        return sum(map(len, self.segments))


@dataclass(frozen=True, slots=True)
class Rendered:
    """What a render gives.

    Args:
        lane: The lane's next version. Adopt it only when the request is sent.
        report: What was done, and why.
        dialect: The profile rendered for.
        closing: Bytes that close the last message.
        before: Bytes of the lane that had been sent before; they stay as they are.
    """

    lane: Lane
    report: Report
    dialect: Dialect
    closing: bytes
    before: int

    @property
    def segments(self) -> tuple[bytes, ...]:
        """The whole lane's text with its last message closed: what a request carries."""
        return (*self.lane.segments, self.closing) if self.closing else self.lane.segments

    @property
    def transcript(self) -> bytes:
        """The messages the provider is shown, as the JSON array of a request."""
        return b"[%b]" % b"".join(self.segments)

    @property
    def shown(self) -> Shown:
        """What the request around the transcript must know of it."""
        loop = self.lane.standing.loop
        return Shown(self.lane.standing.tools, not (loop.answered and loop.thinks is False), self.before)


def empty(dialect: Dialect, floor: int = 0) -> Lane:
    """Return a lane in which nothing has been sent.

    Args:
        dialect: Its dialect.
        floor: How many messages at the history's head were imported: provider state in them was bound to a
            prefix that this lane never sent.
    """
    return Lane(Standing(floor=floor), (), start(dialect))


def begun(lane: Lane, event: EpochBegan, dialect: Dialect, floor: int) -> Lane:
    """Return the lane at the beginning of an epoch: nothing sent, every id kept.

    Args:
        lane: The lane as it was.
        event: The epoch's number and manner.
        dialect: The lane's dialect.
        floor: Length of the history now. Provider state in older messages was bound to the old prefix; reasoning in
            the clear is bound to none, and who remembers it wants it back (DSK-05, KIM-03).
    """
    old = lane.standing
    if dialect.reasoning.carrier == "reasoning_content" and event.reason != "thinking":
        floor = min(floor, old.floor)
    standing = Standing(event.epoch, floor, event.plain, calls=old.calls, used=old.used, index=old.index)
    return Lane(standing, (), start(dialect))


def advanced(
    lane: Lane, history: History, ledger: Ledger, dialect: Dialect, encoder: Encoder, reader: Reader
) -> Rendered:
    """Render, encode and judge what `lane` has not seen of `history`.

    Args:
        lane: The lane as it was last adopted, or `empty(dialect)`.
        history, ledger: The canonical state.
        dialect, encoder: The rules, and how their family writes.
        reader: Whom the transcript is for.

    The outcome depends on the arguments alone. Faults the judge finds are in the report, not raised.

    Raises:
        CanonicalFault: The lane is of another dialect, or has rendered more than the history holds: a history
            that was shortened needs a new epoch (`begun`).
    """
    if lane.judge.dialect.family != dialect.family:
        raise CanonicalFault(
            f"This lane is of dialect {lane.judge.dialect.name!r}, not {dialect.name!r}; begin one"
        )
    if lane.standing.cursor > history.length:
        raise CanonicalFault(
            f"This lane has rendered {lane.standing.cursor} messages of a history of {history.length}; begin an epoch"
        )
    notes = Notes()
    walk = Walk(lane.standing, history, ledger, dialect, encoder, reader, notes)
    segments, judge = lane.segments, lane.judge
    faults: list[Fault] = []
    anew = lane.standing.epoch > 0 and not lane.segments  # what opens an epoch again is read by every rule
    for fragment in walk.fragments():
        judge, found = extend(judge, fragment, whole=anew)
        faults += found
        segments = appended(segments, fragment)
    standing = walk.standing()
    faults = canonical([*faults, *finish(judge)], standing.used.get, lambda: _called(history))
    report = notes.report(dialect.name, tuple(faults))
    grown = Lane(standing, segments, judge)
    return Rendered(grown, report, dialect, encoder.closing, lane.size)


def _called(history: History) -> list[CallId]:
    """Return the calls of a lane's epoch: all that its history holds, in order."""
    return [call.id for message in history.since(0) for call in message.calls]


def appended(segments: tuple[bytes, ...], fragment: bytes) -> tuple[bytes, ...]:
    """Return `segments` with one more, small neighbours joined geometrically."""
    if not fragment:
        return segments
    kept = len(segments)
    size = len(fragment)
    while kept and len(segments[kept - 1]) <= 2 * size and size + len(segments[kept - 1]) <= SEGMENT:
        kept -= 1
        size += len(segments[kept])
    if kept == len(segments):
        return (*segments, fragment)
    return (*segments[:kept], b"".join((*segments[kept:], fragment)))


def seals(rendered: Rendered, ledger: Ledger) -> tuple[tuple[CallId, Reason], ...]:
    """Return the synthetic results that this request sends for the first time."""
    return tuple(
        (call_id, reason)
        for call_id, reason in rendered.report.synthetic
        if (known := ledger.get(call_id)) is None or known.sealed is None
    )
